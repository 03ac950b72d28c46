"""What differs between the installed mlperf-logging and the verified one."""

from collections.abc import Callable, Iterator
from inspect import unwrap
from pathlib import Path

import pytest

from mlperf_pkg.infra.resources import data_folder
from mlperf_pkg.rulebook import verified as of_rulebook
from mlperf_pkg.rulebook.load import benchmarks_of
from mlperf_pkg.rulebook.verified import (
    CODE,
    FILE,
    Drift,
    digests_of_code,
    digests_of_points,
    digests_of_rules,
    drift,
    installed_name,
    remedy,
    verified_name,
)
from tests.helpers.references import BENCHMARK, OTHER, ROUND, VERIFIED, CopyOf, is_verified
from tests.tools import verified as of_tools

pytestmark = is_verified
ALL = tuple(sorted(benchmarks_of("training", ROUND)))
DIGESTS = (digests_of_code, digests_of_rules, digests_of_points)
RULES = "compliance_checker/training_5.1.0"
NOTHING = Drift("training", ROUND)
SEVERAL = Drift("training", ROUND, code=("a.py",), rules=("bert", "gpt3"), points=("gpt3",))


@pytest.fixture
def forgotten() -> Iterator[None]:
    """Nothing is remembered of what is installed, before and after a test."""
    for digests in DIGESTS:
        digests.cache_clear()
    yield
    for digests in DIGESTS:
        digests.cache_clear()


@pytest.fixture
def install(forgotten: None, copy_of: CopyOf, monkeypatch: pytest.MonkeyPatch) -> CopyOf:
    """Return what installs the copy with a change, and returns its folder."""

    def of(name: str) -> Path:
        package = copy_of(name) / "mlperf_logging"
        monkeypatch.setattr(of_rulebook, "official_folder", lambda: package)
        monkeypatch.setattr(of_rulebook, "installed_version", lambda _: OTHER)
        return package

    return of


def drift_of(usage: str, round_name: str) -> Drift:
    """Return what differs, which is not remembered."""
    function: Callable[[str, str], Drift] = unwrap(drift)
    return function(usage, round_name)


# ---- the digests --------------------------------------------------------------------------


def test_the_stored_digests_are_those_of_the_verified_version() -> None:
    assert (data_folder("rules") / FILE).read_text("utf-8") == of_tools.text()


def test_the_installed_one_is_the_verified_one() -> None:
    assert installed_name() == verified_name() == f"mlperf-logging {VERIFIED}"


def test_the_remedy_installs_the_verified_one() -> None:
    assert remedy() == f"pip install 'mlperf-logging=={VERIFIED}'"


# ---- what differs -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "round_name", "expected"),
    [
        ("none", "5.1", NOTHING),
        ("rules", "5.1", Drift("training", "5.1", rules=(BENCHMARK,))),
        ("rules", "5.0", Drift("training", "5.0")),
        ("points", "5.1", Drift("training", "5.1", points=(BENCHMARK,))),
        ("points", "6.0", Drift("training", "6.0")),
        ("code", "5.1", Drift("training", "5.1", code=("rcp_checker/rcp_checker.py",))),
        ("code", "0.7", Drift("training", "0.7", code=("rcp_checker/rcp_checker.py",))),
        ("new ruleset", "6.1", Drift("training", "6.1")),
    ],
)
def test_what_differs_in_a_round(
    install: CopyOf, name: str, round_name: str, expected: Drift
) -> None:
    install(name)
    assert drift_of("training", round_name) == expected


def test_nothing_differs_in_what_is_installed(forgotten: None) -> None:
    assert drift_of("hpc", "3.0") == Drift("hpc", "3.0")


@pytest.mark.parametrize(
    ("usage", "round_name", "file", "concerned"),
    [
        ("training", "5.1", "common.yaml", ALL),
        ("training", "5.1", "closed_common.yaml", ALL),
        ("training", "5.1", "open_common.yaml", ALL),
        ("training", "5.1", "closed_llama31_8b.yaml", ("llama31_8b",)),
        ("training", "6.0", "closed_llama31_405b.yaml", ("llama31_405b",)),
        ("training", "5.1", "closed_bert.yaml", ALL),  # which the round does not have
        ("training", "2.0", "resnet_lars.yaml", ("resnet",)),
        ("training", "2.0", "open_resnet.yaml", ("resnet",)),
        ("hpc", "3.0", "closed_cosmoflow.yaml", ("cosmoflow",)),
    ],
)
def test_which_benchmarks_a_rule_file_is_about(
    usage: str, round_name: str, file: str, concerned: tuple[str, ...]
) -> None:
    assert of_rulebook._concerned([file], benchmarks_of(usage, round_name)) == concerned


def test_points_of_a_benchmark_that_the_round_lacks_are_about_it_alone() -> None:
    assert of_rulebook._with_points(["rcps_bert.json"]) == ("bert",)


@pytest.mark.parametrize(
    ("names", "concerned"),
    [
        (["llama31_8b"], ("llama31_8b",)),
        (["llama31", "llama31_8b"], ("llama31_8b",)),
    ],
    ids=["the only one", "the longest"],
)
def test_a_file_is_about_the_benchmark_with_the_longest_name(
    names: list[str], concerned: tuple[str, ...]
) -> None:
    assert of_rulebook._concerned(["closed_llama31_8b.yaml"], names) == concerned


def test_a_file_that_is_gone_differs(install: CopyOf, tmp_path: Path) -> None:
    package = install("none")
    (package / RULES / "closed_retinanet.yaml").rename(tmp_path / "gone")
    try:
        assert drift_of("training", ROUND).rules == ("retinanet",)
    finally:
        (tmp_path / "gone").rename(package / RULES / "closed_retinanet.yaml")


# ---- in words -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("difference", "words"),
    [
        (NOTHING, ""),
        (Drift("training", "5.1", rules=("bert",)), "the rules of bert in round 5.1"),
        (Drift("training", "5.1", rules=("bert", "gpt3")), "the rules of bert, gpt3 in round 5.1"),
        (Drift("training", "5.1", points=("bert",)), "the reference points of bert in round 5.1"),
        (Drift("training", "5.1", code=("a.py", "b.py")), CODE),
        (Drift("hpc", "3.0", rules=("deepcam",)), "the rules of deepcam in HPC 3.0"),
        (
            SEVERAL,
            f"{CODE}, the rules of bert, gpt3 in round 5.1,"
            " the reference points of gpt3 in round 5.1",
        ),
    ],
)
def test_in_words(difference: Drift, words: str) -> None:
    assert difference.in_words() == words


@pytest.mark.parametrize(
    ("benchmarks", "rules", "points"),
    [
        ({"bert"}, ("bert",), ()),
        ({"gpt3", "ssd"}, ("gpt3",), ("gpt3",)),
        (set(), (), ()),
    ],
)
def test_of_some_benchmarks(
    benchmarks: set[str], rules: tuple[str, ...], points: tuple[str, ...]
) -> None:
    difference = SEVERAL.of(benchmarks)
    assert difference == Drift("training", ROUND, code=("a.py",), rules=rules, points=points)


@pytest.mark.parametrize(
    ("difference", "benchmark", "concerns"),
    [
        (Drift("training", "5.1", rules=("bert",)), "bert", True),
        (Drift("training", "5.1", rules=("bert",)), "gpt3", False),
        (Drift("training", "5.1", rules=("bert",)), None, False),
        (Drift("training", "5.1", points=("bert",)), "bert", False),
        (Drift("training", "5.1", code=("a.py",)), "bert", True),
        (Drift("training", "5.1", code=("a.py",)), None, True),
    ],
    ids=["its rules", "other rules", "of no benchmark", "its points", "code", "code of all"],
)
def test_whose_official_verdict_is_concerned(
    difference: Drift, benchmark: str | None, *, concerns: bool
) -> None:
    assert difference.concerns(benchmark) is concerns


@pytest.mark.parametrize(
    ("difference", "differs"),
    [(NOTHING, False), (SEVERAL, True), (Drift("training", "5.1", points=("bert",)), True)],
    ids=["nothing", "several", "points"],
)
def test_whether_anything_differs(difference: Drift, *, differs: bool) -> None:
    assert bool(difference) is differs
