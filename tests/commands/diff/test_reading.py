"""Which settings rules name, and what a log says of them."""

import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mlperf_pkg.commands.diff.reading import MAX_VALUES, read_settings, settings_named
from mlperf_pkg.commands.diff.runs import MAX_CHARACTERS
from mlperf_pkg.infra.source import Source
from tests.helpers.archives import in_archive, in_folder_of_archives
from tests.helpers.logs import joined
from tests.helpers.program import call
from tests.helpers.trees import SYSTEM, simulated, write_submission
from tests.helpers.workspaces import lay


@pytest.mark.parametrize(
    ("usage", "round_", "named", "not_named"),
    [
        (
            "training",
            "2.0",
            "global_batch_size opt_name lars_epsilon opt_lamb_beta_1 sgd_opt_momentum",
            "eval_accuracy seed run_start submission_org weights_initialization",
        ),
        ("training", "6.1", "tensor_parallelism", "cache_clear"),
        ("training", "0.7", "lr_rates", "actual_selfplay_games_per_generation epoch_start"),
        ("hpc", "1.0", "opt_betas scheduler_milestones", "eval_error staging_stop"),
    ],
)
def test_settings_named(usage: str, round_: str, named: str, not_named: str) -> None:
    settings = settings_named(usage, round_)
    assert settings.issuperset(named.split())
    assert settings.isdisjoint(not_named.split())


def record(value: Any, key: str = "a") -> dict[str, Any]:
    return {"key": key, "value": value, "time_ms": 1, "metadata": {}}


def settings(log: bytes) -> dict[str, str]:
    return read_settings(Source("log", log), frozenset({"a", "b"}))


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ([1], "1"),
        ([1.0], "1"),
        ([1, 1.0, 1], "1"),
        ([0.5, 2], "0.5, 2"),
        (["1"], '"1"'),
        ([True], "true"),
        ([None], "null"),
        ([{"b": 1, "a": [2]}], '{"a": [2], "b": 1}'),
        (["\x1b[31m"], '"\\u001b[31m"'),
        ([1e300], "1e+300"),
        ([float("nan")], "NaN"),
        (list(range(100)), ", ".join(map(str, range(MAX_VALUES)))),
    ],
)
def test_values(values: Any, text: str) -> None:
    assert settings(joined([record(value) for value in values])) == {"a": text}


def test_other_keys_and_lines_are_passed_over() -> None:
    """Hyperparameters that no rule names are read, too."""
    named = [record(1), record(2, "c"), record(3, "b"), record(4, "opt_new")]
    log = b"noise\n:::MLLOG {\n" + joined(named)
    assert settings(log) == {"a": "1", "b": "3", "opt_new": "4"}


def test_long_values_stay_apart() -> None:
    first, second = (settings(joined([record("x" * MAX_CHARACTERS + end)]))["a"] for end in "yz")
    assert first != second
    assert len(first) < MAX_CHARACTERS + 100


# ---- what is compared with what -----------------------------------------------------------


@pytest.fixture
def a_round(tmp_path: Path) -> Path:
    """A round of two submitters, of which one has a file beside its logs."""
    root = tmp_path / "training_results_v2.0"
    write_submission(root / "ACME")
    write_submission(root / "Beta", seed=8)
    (root / f"ACME/results/{SYSTEM}/resnet/scaling.json").write_text('{"scaling_factor": 1}')
    return root


Form = Callable[[Path, Path], Path]
FORMS: dict[str, Form] = {
    "the round": lambda root, _: root,
    "its archive": in_archive,
    "a folder of archives": in_folder_of_archives,
    "a submission": lambda root, _: root / "ACME",
    "the archive of a submission": lambda root, target: in_archive(root / "ACME", target),
}


@pytest.mark.parametrize(
    ("old", "new", "sets"),
    [
        ("the round", "its archive", "2 result sets"),
        ("a folder of archives", "the round", "2 result sets"),
        ("its archive", "a folder of archives", "2 result sets"),
        ("the round", "the archive of a submission", "1 result set"),
        ("its archive", "a submission", "1 result set"),
        ("a folder of archives", "the archive of a submission", "1 result set"),
        ("the archive of a submission", "a submission", "1 result set"),
    ],
)
def test_forms_of_one_round(old: str, new: str, sets: str, a_round: Path, tmp_path: Path) -> None:
    paths = [FORMS[name](a_round, tmp_path / str(side)) for side, name in enumerate((old, new))]
    result = call("diff", *paths, "--round", "2.0")
    assert f"nothing changed: {sets}, " in result.stdout, result.stdout
    assert (result.exit_code, result.stderr) == (0, "")


def test_archives_of_one_name(a_round: Path, tmp_path: Path) -> None:
    """The files of one are not taken for those of the other."""
    old, new = tmp_path / "old", tmp_path / "new"
    for side in (old, new):
        in_archive(a_round / "ACME", side / "first").rename(side / "first.tar.gz")
        in_archive(a_round / "ACME", side / "second").rename(side / "second.tar.gz")
    (a_round / "ACME/README.md").touch()
    in_archive(a_round / "ACME", new / "first").rename(new / "first.tar.gz")
    assert "1 file added: first.tar.gz/ACME/README.md" in call("diff", old, new).stdout


def test_compressed_logs_of_the_same_content(tmp_path: Path) -> None:
    logs = dict(enumerate(simulated()))
    lay(tmp_path / "old", {f"{number}.log": log for number, log in logs.items()})
    lay(tmp_path / "new", {f"{number}.log.gz": gzip.compress(log) for number, log in logs.items()})
    result = call("diff", tmp_path / "old", tmp_path / "new")
    assert "nothing changed: 1 result set, 5 runs with identical bytes" in result.stdout


def test_a_folder_with_the_only_archive_that_is_left(a_round: Path, tmp_path: Path) -> None:
    """It is a round of one submission, from which the others were withdrawn."""
    old = in_folder_of_archives(a_round, tmp_path / "old")
    new = tmp_path / "new"
    in_archive(a_round / "ACME", new)
    assert "withdrawn" in call("diff", old, new, "--round", "2.0").stdout
