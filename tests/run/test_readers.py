"""Tensors that are missing, too many or nameless; what logs say of runs, and their fingerprints."""

from typing import Any

import pytest

from mlperf_pkg.findings import Unchecked
from mlperf_pkg.infra.source import Source
from mlperf_pkg.log.block import Block
from mlperf_pkg.log.record import Record
from mlperf_pkg.rulebook.formula import first_logged
from mlperf_pkg.run import readers
from mlperf_pkg.run.power import PowerFile, PowerLog, unread_power_log
from mlperf_pkg.run.readers import Fingerprint, RunDescription, TensorList, description_of, of_head

NEEDED = frozenset("abcd")


@pytest.mark.parametrize("apart", [False, True], ids=["in one list", "in lists of one"])
@pytest.mark.parametrize(
    ("names", "wrong", "too_many"),
    [
        (list("abcd"), "", False),
        (list("dcba"), "", False),
        (list("abc"), '1 missing ("d")', False),
        ([], '4 missing ("a", "b", "c"...)', False),
        (list("abcdd"), '1 repeated ("d")', True),
        (list("abcc"), '1 missing ("d"), 1 repeated ("c")', True),
        (list("abcdxx"), '2 not in the model ("x")', True),
        ([*"abcd", 1, None], "2 without a name", True),
        ([*"abc", ["d"]], '1 missing ("d"), 1 without a name', True),
    ],
)
def test_what_is_wrong(names: list[Any], wrong: str, too_many: bool, apart: bool) -> None:
    tensor_list = TensorList()
    for part in [[name] for name in names] if apart else [names]:
        tensor_list.add(part)
    assert tensor_list.differences(NEEDED) == wrong
    assert tensor_list.has_too_many(NEEDED) is too_many


@pytest.mark.parametrize("count", range(100, 106))
def test_a_hostile_number_of_names_is_not_kept(monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    monkeypatch.setattr(readers, "_MOST_NAMES", 5)
    tensor_list = TensorList()
    for number in range(count):
        tensor_list.add([f"x{number}"])
    tensor_list.add("abcd")
    assert tensor_list.differences(NEEDED) == (
        f'4 missing ("a", "b", "c"...), {count + 4} not in the model ("...", "x0", "x1"...)'
    )


def digest(start: float, values: list[float], *, stopped: bool = True) -> bytes | None:
    fingerprint = Fingerprint()
    stop = [Record("run_stop", start + 1e6, None, {})] if stopped else []
    evaluations = [Record("eval_accuracy", start + 10.0 * n, v, {}) for n, v in enumerate(values)]
    records = [Record("run_start", start, None, {}), *evaluations, *stop]
    for first in range(0, len(records), 50):
        fingerprint.take_block(Block(b"", first, records[first : first + 50]))
    assert fingerprint.digest == fingerprint.digest
    return fingerprint.digest


# However many there are: few are kept as they are, many are hashed.
@pytest.mark.parametrize("count", [1, 2, 3, 62, 63, 64, 65, 127, 128, 1000])
def test_copies_have_one_fingerprint(count: int) -> None:
    values = [n / 1000 for n in range(count)]
    copy = digest(5.0, values)
    assert copy is not None
    assert digest(7.0, values) == copy
    assert digest(5.0, [*values[:-1], 9.0]) != copy
    assert digest(5.0, [9.0, *values[1:]]) != copy
    assert digest(5.0, values[:-1]) != copy


def nested(depth: int) -> Any:
    value: Any = []
    for _ in range(depth):
        value = [value]
    return value


def said(value: Any) -> RunDescription:
    values = {"submission_org": "Alice", "submission_platform": ["x"], "opt_name": value}
    seen = {key: first_logged(Record(key, 0.0, first, {})) for key, first in values.items()}
    return description_of(seen, frozenset(seen), {"opt_other": 2})


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (1, "1"),
        (1.0, "1"),
        ("1", "1"),
        (10**30, "1e+30"),
        ("\ud800", '"?"'),
        ("x" * (1 << 17), '"xxxx'),
    ],
    ids=["whole", "double", "text", "of 100 bits", "half a pair", "long"],
)
def test_what_a_log_says_of_its_run(value: Any, words: str) -> None:
    description = said(value)
    assert description.described["org"] == "Alice"
    assert description.described["platform"] == description.described["status"] == ""
    assert description.hyperparameters["opt_name"].startswith(words)
    assert description.hyperparameters["opt_other"] == "2"


@pytest.mark.parametrize("depth", [10, 900, 990, 995, 996, 2000])
def test_a_nested_hyperparameter(depth: int) -> None:
    value: Any = []
    for _ in range(depth):
        value = [value]
    assert said(value).hyperparameters["opt_name"].startswith(("[[[[", "a list"))


def test_runs_that_say_the_same_share_it() -> None:
    assert said("sgd") is said("sgd")


def test_the_first_value_of_a_hyperparameter_without_a_rule_counts() -> None:
    values = [("opt_name", "sgd"), ("opt_x", 1), ("opt_x", 2), ("loss", 3)]
    records = [Record(key, 0.0, value, {}) for key, value in values]
    assert of_head(Block(b"", 0, records), frozenset({"opt_name"})) == {"opt_x": 1}


@pytest.mark.parametrize(("values", "stopped"), [([], True), ([0.5] * 100, False), ([], False)])
def test_a_short_run_has_no_fingerprint(values: list[float], stopped: bool) -> None:
    assert digest(5.0, values, stopped=stopped) is None


def test_the_first_losses_are_kept_as_they_are() -> None:
    values: list[Any] = [2.5, "3", {"train_loss": 1.5, "loss_scale": 9.0, "other": 7.0}, None]
    losses = [Record("train_loss", float(n), value, {}) for n, value in enumerate(values)]
    fingerprint = Fingerprint()
    fingerprint.take_block(Block(b"", 0, losses))
    assert fingerprint.losses == [2.5, 1.5]
    fingerprint.take_block(Block(b"", 4, [Record("tracked_stats", 9.0, 0.5, {})] * 30))
    assert fingerprint.losses == [2.5, 1.5, *[0.5] * 12]  # of 16 records


def test_a_power_log_that_cannot_be_read() -> None:
    finding = Unchecked("POW100", "not read", "power.txt")
    log = unread_power_log(PowerFile(Source("power.txt", b""), switch=True), finding)
    assert log == PowerLog("power.txt", switch=True, estimated=True, unchecked=finding)
