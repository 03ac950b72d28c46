"""Which round a run is of, where nobody says it."""

from datetime import UTC, date, datetime

import pytest

from mlperf_pkg.rulebook.documents import rounds
from mlperf_pkg.rulebook.model import is_round_name, version_of
from mlperf_pkg.rulebook.rounds import (
    Sureness,
    round_of_run,
    round_of_tree,
    usage_with,
    where_instead,
    window,
)


@pytest.mark.parametrize(
    ("name", "is_name"),
    [
        ("0.7", True),
        ("10.0", True),
        ("2024.1", True),
        ("v2.0", False),
        ("2", False),
        ("2.0.1", False),
        (".0", False),
        ("-1.0", False),
        ("\u0665.1", False),
        ("5.1\n", False),
        (f"{'9' * 5000}.0", False),
    ],
)
def test_the_name_of_a_round(name: str, is_name: bool) -> None:
    assert is_round_name(name) == is_name
    assert not is_name or version_of(name) > (0, 0)


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        (["training_results_v2.0"], ("training", "2.0")),
        (["hpc_results_v3.0-main"], ("hpc", "3.0")),
        (["MLPerf HPC results 3.0 (final)"], ("hpc", "3.0")),
        (["hpc_results_v3.0.1"], None),
        (["training_results_v2.0", "hpc_results_v3.0"], ("training", "2.0")),
        (["v5.1"], (None, "5.1")),
        (["results", "NVIDIA", "v0.7", "v1.0"], (None, "0.7")),
        (["v2"], None),
        ([], None),
    ],
)
def test_round_of_tree(
    parts: list[str], expected: tuple[None, str] | tuple[str, str] | None
) -> None:
    assert round_of_tree(parts) == expected


def milliseconds(day: str) -> float:
    return datetime.fromisoformat(day).replace(tzinfo=UTC).timestamp() * 1000


@pytest.mark.parametrize(
    ("usage", "day", "benchmark", "expected"),
    [
        ("training", "2020-01-01", "resnet", "0.7"),
        ("training", "2020-07-25", "bert", "1.0"),
        ("training", "2020-06-20", "rnnt", "1.0"),
        ("training", "2099-01-01", "resnet", "4.0"),
        ("training", "2099-01-01", "unheard of", rounds("training")[-1]),
        ("training", "2022-05-20", "unheard of", "2.0"),
        ("hpc", "2022-09-01", "deepcam", "2.0"),
    ],
)
def test_round_of_run(usage: str, day: str, benchmark: str, expected: str) -> None:
    assert round_of_run(usage, milliseconds(day), benchmark).name == expected


@pytest.mark.parametrize(
    ("day", "expected"),
    [
        pytest.param("2021-11-12", "1.1", id="the last day"),
        pytest.param("2021-11-13", "2.0", id="a day later"),
    ],
)
def test_the_last_day_of_the_review(day: str, expected: str) -> None:
    assert round_of_run("training", milliseconds(day), "resnet").name == expected


@pytest.mark.parametrize("time_ms", [1e300, float("nan"), float("inf"), -1e300])
def test_times_out_of_this_world(time_ms: float) -> None:
    choice = round_of_run("training", time_ms, "resnet")
    assert choice.name in ("0.7", "4.0")
    assert choice.reason
    assert choice.sureness in (Sureness.INFERRED, Sureness.GUESS)


@pytest.mark.parametrize(
    ("day", "benchmark", "sureness", "reason"),
    [
        (
            "2022-05-20",
            "resnet",
            Sureness.INFERRED,
            "inferred as the first round after the resnet run of 2022-05-20",
        ),
        (
            "2022-05-20",
            "unheard of",
            Sureness.INFERRED,
            "inferred as the first round after the run of 2022-05-20",
        ),
        (
            "2025-08-01",
            "bert",
            Sureness.GUESS,
            "a guess (the newest round), as the bert run of 2025-08-01 is later than every"
            " submission date",
        ),
        (
            "1970-01-01",
            "bert",
            Sureness.GUESS,
            "a guess (the newest round), as no run has a time",
        ),
    ],
)
def test_how_sure_the_round_of_a_run_is(
    day: str, benchmark: str, sureness: Sureness, reason: str
) -> None:
    choice = round_of_run("training", milliseconds(day), benchmark)
    assert (choice.sureness, choice.reason) == (sureness, reason)


@pytest.mark.parametrize(
    ("benchmark", "round_", "usage"),
    [
        ("resnet", None, "training"),
        ("cosmoflow", None, "hpc"),
        ("cosmoflow", "5.1", None),
        ("unheard of", None, None),
        ("", None, None),
    ],
)
def test_the_usage_of_a_benchmark(benchmark: str, round_: str | None, usage: str | None) -> None:
    assert usage_with(benchmark, round_) == usage


@pytest.mark.parametrize(
    ("usage", "round_", "benchmark", "expected"),
    [
        ("training", "5.1", "resnet", "; the last round of resnet was 4.0"),
        ("training", "5.0", "llama31_8b", "; the first round of llama31_8b is 5.1"),
        ("training", "5.1", "cosmoflow", "; cosmoflow is a benchmark of hpc"),
        ("training", "5.1", "llama31_8", "; did you mean llama31_8b?"),
        ("training", "2.0", "RESNET", "; did you mean resnet?"),
        ("training", "2.0", "resnet", ""),
    ],
)
def test_where_a_benchmark_is_instead(
    usage: str, round_: str, benchmark: str, expected: str
) -> None:
    assert where_instead(usage, round_, benchmark) == expected


@pytest.mark.parametrize(
    ("usage", "round_", "first", "last"),
    [
        ("training", "0.7", "2019-06-28", "2020-07-24"),
        ("training", "2.0", "2021-10-16", "2022-06-17"),
        ("hpc", "3.0", "2022-10-15", "2023-11-10"),
    ],
)
def test_the_window_of_a_round(usage: str, round_: str, first: str, last: str) -> None:
    assert window(usage, round_) == (date.fromisoformat(first), date.fromisoformat(last))
