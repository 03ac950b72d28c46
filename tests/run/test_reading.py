"""One log, both verdicts: what breaks which rule, on which line."""

import gc
from datetime import UTC, datetime

import pytest

from mlperf_pkg.findings import MAX_LINES, Basis, Finding, Pending, Severity, Unordered, Verdict
from mlperf_pkg.log.lines import LineNumbers
from mlperf_pkg.log.reader import LogReader
from mlperf_pkg.run.model import Run
from tests.helpers.logs import (
    doubled,
    edited,
    good_log,
    joined,
    line_of,
    moved,
    records,
    run_of,
    without,
)
from tests.helpers.stored import compared

PASS, FAIL = Verdict.PASS, Verdict.FAIL


def findings_of(run: Run, severity: Severity = Severity.ERROR) -> list[tuple[str, str, int | None]]:
    return [(f.code, f.basis.value, f.line) for f in run.findings if f.severity is severity]


RESNET, SGD, BERT, RNNT = good_log(), good_log(optimizer="sgd"), good_log("bert"), good_log("rnnt")
OPEN = good_log("resnet", "open")
EARLY = {"init_start": 31 * 60_000}
LATE, LATE_OPEN = (
    joined([{**r, "time_ms": r["time_ms"] - EARLY.get(r["key"], 0)} for r in records(log)])
    for log in (RESNET, OPEN)
)


# what was done to the log, the log, its errors: code, basis, key and nth record of it (or no line)
BROKEN = [
    ("nothing", RESNET, []),
    (
        "init twice at odds",
        doubled(RESNET, "init_stop", value=1),
        [("RUN107", "both", "init_stop", 1)],
    ),
    (
        "init after start",
        moved(RESNET, "init_start", "run_start"),
        [("RUN106", "official", "init_start", 0), ("RUN107", "official", "init_stop", 0)],
    ),
    ("no run_stop", without(RESNET, "run_stop"), [("RUN109", "official", None, 0)]),
    (
        "run_stop without status",
        edited(RESNET, "run_stop", metadata={}),
        [("RUN109", "both", "run_stop", 0)],
    ),
    ("31 minutes of init, open", LATE_OPEN, []),
    (
        "division after init",
        moved(RESNET, "submission_division", "run_start"),
        [("RUN123", "official", "init_stop", 0)],
    ),
    (
        "batch size is text",
        edited(RESNET, "global_batch_size", value="8k"),
        [("RN101", "both", "global_batch_size", 0), ("RUN166", "rules", "global_batch_size", 0)],
    ),
    (
        "batch size of true",
        edited(RESNET, "global_batch_size", value=True),
        [("RUN166", "rules", "global_batch_size", 0)],
    ),
    (
        "half a sample",
        edited(BERT, "global_batch_size", value=255.5),
        [("RUN166", "rules", "global_batch_size", 0)],
    ),
    ("batch size as a double", edited(BERT, "global_batch_size", value=256.0), []),
    ("batch size as text", edited(BERT, "global_batch_size", value="256"), []),
    ("no batch size, open", edited(OPEN, "global_batch_size", value="8k"), []),
    (
        "run_stop at no time",
        edited(RESNET, "run_stop", time_ms=float("nan")),
        [("RUN155", "rules", "run_stop", 0)],
    ),
    (
        "another rate as text",
        edited(RESNET, "lars_opt_learning_rate_decay_poly_power", value="3"),
        [("RN113", "both", "lars_opt_learning_rate_decay_poly_power", 0)],
    ),
    (
        "epsilon as text",
        edited(RNNT, "opt_lamb_epsilon", value="1e-9"),
        [("RNNT106", "official", "opt_lamb_epsilon", 0)],
    ),
    (
        "evaluations that name run_stop",
        joined(
            [{**r, "at": "run_stop"} if r["key"] == "eval_accuracy" else r for r in records(RESNET)]
        ),
        [],
    ),
    (
        "accuracy of 1",
        edited(BERT, "eval_accuracy", value=1.0),
        [("BERT111", "both", "eval_accuracy", -1)],
    ),
    (
        "accuracy is text",
        edited(BERT, "eval_accuracy", value="0.8"),
        [("BERT111", "both", "eval_accuracy", 0)],
    ),
]


def test_a_benchmark_that_the_round_does_not_have() -> None:
    run = run_of(edited(good_log(), "submission_benchmark", value="gpt3"))
    (message,) = [finding.text for finding in run.findings if finding.code == "RUN119"]
    assert message.startswith('submission_benchmark is "gpt3"; expected one of "bert", ')
    assert message.endswith("; the first round of gpt3 is 3.0")


@pytest.mark.parametrize(("name", "log", "errors"), BROKEN, ids=[case[0] for case in BROKEN])
def test_broken_logs(name: str, log: bytes, errors: list[tuple[str, str, str | None, int]]) -> None:
    run = compared(run_of(log))
    places = [(c, b, line_of(log, key, nth) if key else None) for c, b, key, nth in errors]
    assert sorted(findings_of(run), key=str) == sorted(places, key=str)
    assert run.verdicts.official is Verdict.of(
        any(b in ("both", "official") for _, b, *_ in errors)
    )
    assert run.verdicts.rules is Verdict.of(any(b in ("both", "rules") for _, b, *_ in errors))


def test_a_finding_says_what_was_found_and_expected() -> None:
    run = run_of(edited(RESNET, "lars_opt_end_learning_rate", value=0.001))
    (finding,) = (f for f in run.findings if f.severity is Severity.ERROR)
    assert finding.text == "lars_opt_end_learning_rate is 0.001; expected 0.0001"
    assert (finding.found, finding.expected) == (0.001, "0.0001")
    assert finding.source == "training_rules, Hyperparameters"


def test_metadata_that_only_name_what_they_should_have() -> None:
    names = "first_epoch_num epoch_count"
    log = edited(good_log("bert", round_="1.0"), "block_start", metadata=names)
    texts = [finding.text for finding in run_of(log, "1.0").findings if finding.code == "RUN110"]
    problem = f'block_start has "{names}" as metadata, which is not a JSON object'
    assert texts == [f"{problem}; expected an object with epoch_count above 0"]


@pytest.mark.parametrize(
    ("log", "code", "crashes"),
    [
        (edited(RESNET, "submission_division", value="Closed"), "RUN103", True),
        (edited(RESNET, "submission_division", value="../../x"), "RUN103", True),
        (edited(RESNET, "submission_benchmark", value="resnet50"), "RUN119", True),
        (edited(RESNET, "opt_name", value="adam"), "RN102", True),
        (edited(RESNET, "eval_accuracy", value=None), "RN103", True),
        (edited(RESNET, "global_batch_size", value=None), "RN101", False),
    ],
)
def test_where_the_official_checker_crashes(log: bytes, code: str, crashes: bool) -> None:
    run = compared(run_of(log))
    assert code in {f.code for f in run.findings}
    assert bool(run.crash) is crashes
    assert run.verdicts.official is FAIL


@pytest.mark.parametrize("failure", ["diverged", "aborted"])
def test_runs_that_do_not_converge(failure: str) -> None:
    log = good_log(failure=failure)
    run = compared(run_of(log))
    assert findings_of(run)[0][0] in ("RN103", "RUN116")
    assert (run.converged, run.status, run.verdicts.official) == (False, "aborted", FAIL)
    assert ("RUN130", "rules", line_of(log, "run_stop")) in findings_of(run, Severity.WARNING)


DIFFUSION = good_log("stable_diffusion", round_="3.1")
LLAMA = good_log("llama31_8b", round_="5.1")


def without_first(log: bytes, key: str) -> bytes:
    fields = records(log)
    first = next(record for record in fields if record["key"] == key)
    return joined([record for record in fields if record != first])


@pytest.mark.parametrize(
    ("round_", "log", "code", "kind"),
    [
        ("2.0", without(RESNET, "run_stop"), "RUN140", Pending),
        ("2.0", edited(RESNET, "run_stop", metadata={"status": "aborted"}), "RUN140", Finding),
        ("3.1", edited(DIFFUSION, "eval_accuracy", value=99.0), "SD109", Pending),
        ("5.1", without_first(LLAMA, "eval_accuracy"), "LLAMAS129", Unordered),
        ("5.1", edited(LLAMA, "opt_learning_rate_decay_steps", value=5), "LLAMAS107", Finding),
    ],
    ids=[
        "no run_stop",
        "aborted",
        "target not reached",
        "an evaluation left out",
        "a wrong value",
    ],
)
def test_what_later_records_may_resolve(
    round_: str, log: bytes, code: str, kind: type[Finding]
) -> None:
    kinds = [type(finding) for finding in run_of(log, round_).findings if finding.code == code]
    assert kinds == [kind]


def test_success_without_the_target_breaks_the_rules_too() -> None:
    run = run_of(edited(RESNET, "eval_accuracy", value=0.7))
    assert [place[:2] for place in findings_of(run)] == [("RN103", "both")]
    assert not run.converged


def test_equal_values_logged_twice_are_only_noted() -> None:
    log = doubled(RESNET, "global_batch_size")
    note = ("RN101", "advice", line_of(log, "global_batch_size", 1))
    assert (findings_of(run_of(log)), note in findings_of(run_of(log), Severity.NOTE)) == ([], True)


def test_a_record_that_only_we_can_read_is_missing_officially() -> None:
    at = RESNET.index(b"\n", RESNET.index(b'"cache_clear"'))
    run = compared(run_of(RESNET[:at] + b" cleared" + RESNET[at:]))
    official = {("LOG103", "official"), ("RUN105", "official")}
    assert {place[:2] for place in findings_of(run)} == official
    assert run.verdicts.rules is PASS


@pytest.mark.parametrize("key", ["run_start", "run_stop"])
def test_minutes_by_the_rules_and_officially(key: str) -> None:
    """The rules count from the first start to the first stop, which also has the status."""
    fields = records(RESNET)
    start, stop = (next(r for r in fields if r["key"] == k) for k in ("run_start", "run_stop"))
    minute = {"run_start": -60_000, "run_stop": 60_000}[key]
    again = {**start, "key": key, "time_ms": stop["time_ms"] + minute, "metadata": {"status": "x"}}
    at = fields.index(stop) + (key == "run_stop")
    whole = (stop["time_ms"] - start["time_ms"]) / 60_000
    run = compared(run_of(joined([*fields[:at], again, *fields[at:]])))
    assert run.minutes == pytest.approx(whole, rel=1e-12)
    assert run.status == "success"
    official = {"run_start": 1.0, "run_stop": whole}[key]
    assert run.official_minutes == pytest.approx(official, rel=1e-12)


def test_a_run_that_stops_before_it_starts_has_no_time() -> None:
    log = edited(RESNET, "run_stop", time_ms=1000)
    run = run_of(log)
    assert findings_of(run) == [("RUN155", "rules", line_of(log, "run_stop"))]
    assert run.minutes is None
    assert (run.official_minutes or 0) < 0


@pytest.mark.parametrize("key", ["run_stop", "run_start"])
def test_no_minutes_without_start_and_stop(key: str) -> None:
    run = compared(run_of(without(RESNET, key)))
    assert (run.minutes, run.official_minutes) == (None, None)


def test_findings_of_a_kind_are_one_finding() -> None:
    noise = b":::MLLOG {\n" * 1000
    run = run_of(RESNET + noise)
    (alike,) = (f for f in run.findings if f.code == "LOG101")
    (place,) = alike.places
    assert (alike.count, place.count, len(place.lines)) == (1000, 1000, MAX_LINES)
    first = RESNET.count(b"\n") + 1
    assert place.lines == tuple(range(first, first + MAX_LINES))


@pytest.mark.parametrize(
    ("round_", "reason"), [("1.0", "2021-05"), ("1.1", "2021-10"), ("2.0", "2022-05")]
)
def test_the_round_follows_from_the_time(round_: str, reason: str) -> None:
    run = run_of(good_log(round_=round_), None)
    assert run.round == round_
    assert reason in run.round_reason


def test_the_round_follows_from_the_time_of_the_first_record() -> None:
    log = b':::MLLOG {"key": "x"}\n' + RESNET  # the first line is not a record
    assert run_of(log, None).round == "2.0"


@pytest.mark.parametrize(
    ("changes", "seeds", "unreadable"),
    [
        ({}, 1, False),
        ({"value": "12"}, 1, False),
        ({"value": None}, 0, True),
        ({"metadata": {}}, 0, True),
        ({"metadata": {"file": [], "lineno": 1}}, 0, True),
    ],
)
def test_seeds(changes: dict[str, object], seeds: int, unreadable: bool) -> None:
    run = compared(run_of(edited(RESNET, "seed", **changes)))
    assert (len(run.seeds), run.seeds_unreadable is not None) == (seeds, unreadable)


def test_advice_never_fails() -> None:
    run = run_of(RESNET + b":::MLLOG{}\n")
    assert {f.basis for f in run.findings if f.code == "LOG108"} == {Basis.ADVICE}
    assert run.verdicts.official is PASS


@pytest.mark.parametrize("train_samples", [False, True])
def test_epochs_only_where_the_run_counts_samples(train_samples: bool) -> None:
    run = compared(run_of(BERT, train_samples=train_samples))
    counted = next(r["value"] for r in records(BERT) if r["key"] == "train_samples")
    reached = [r for r in records(BERT) if r["key"] == "eval_accuracy"][-1]["metadata"]["epoch_num"]
    assert run.convergence.to_converge == (counted if train_samples else reached)
    assert (run.epochs and run.epochs.to_converge) == (reached if train_samples else None)


@pytest.mark.parametrize("count", [1, 2, 3])
def test_seeds_without_end_are_not_kept(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mlperf_pkg.run.readers.MAX_SEEDS", 2)
    seeds = [r for r in records(RESNET) if r["key"] == "seed"] * (count - 1)
    run = run_of(RESNET + joined(seeds), "2.0")
    assert len(run.seeds) == min(count, 2)
    assert (run.seeds_unreadable is None) is (count <= 2)


@pytest.mark.parametrize("round_", ["3.1", "5.0"])
@pytest.mark.parametrize(
    ("room", "crashes", "verdict"), [(0, False, PASS), (-1, True, FAIL)], ids=["enough", "too few"]
)
def test_metrics_without_end_are_not_kept(
    round_: str, room: int, crashes: bool, verdict: Verdict, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = good_log("stable_diffusion", round_=round_)
    most = sum(record["key"] == "eval_accuracy" for record in records(log)) + room
    monkeypatch.setattr("mlperf_pkg.run.readers.MAX_METRICS", most)
    monkeypatch.setattr("mlperf_pkg.run.convergence.MAX_METRICS", most)
    run = run_of(log, round_)
    assert ("more than" in (run.crash or "")) is crashes
    assert (run.convergence.crash is not None) is crashes
    assert run.verdicts.official is verdict


def test_batch_sizes_without_end_are_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mlperf_pkg.run.readers.MAX_DISTINCT", 3)
    size = next(r for r in records(RESNET) if r["key"] == "global_batch_size")
    log = joined([*records(RESNET), *({**size, "value": value} for value in range(5))])
    assert len(run_of(log, "2.0").batch_sizes) == 3


WITH_OUTPUT = BERT.replace(b"\n", b"\nother output\n")


def test_nothing_that_was_read_stays_in_a_circle() -> None:
    """Else all of a log would wait in memory until Python looks for circles."""
    logs = {
        "resnet": RESNET,
        "bert": BERT,
        "no run_stop": without(RNNT, "run_stop"),
        "with other output": WITH_OUTPUT,
    }
    for log in logs.values():
        run_of(log, "2.0")
    while gc.collect():  # what earlier tests left, some of which goes only after the rest
        pass
    gc.disable()
    gc.freeze()
    left = {}
    try:
        for name, log in logs.items():
            run_of(log, "2.0")
            # The collector does not count cycles that it breaks by closing a generator.
            readers = sum(isinstance(o, LogReader | LineNumbers) for o in gc.get_objects())
            left[name] = (readers, gc.collect())
    finally:
        gc.enable()
    assert left == dict.fromkeys(logs, (0, 0))


def test_a_passing_log_needs_few_line_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lines are searched for findings, seeds and a few keys, not for the end of each log."""
    numbers: list[int] = []
    line_of_number = LineNumbers.of

    def recorded(lines: LineNumbers, number: int) -> int:
        numbers.append(number)
        return line_of_number(lines, number)

    monkeypatch.setattr(LineNumbers, "of", recorded)
    run = run_of(good_log())
    assert run.findings == ()
    assert 0 < max(numbers) < run.records // 2


@pytest.mark.parametrize(
    ("day", "codes"),
    [
        pytest.param("2022-07-04", [], id="the last day"),
        pytest.param("2022-07-05", ["RUN158"], id="a day later"),
    ],
)
def test_the_last_day_of_a_round(day: str, codes: list[str]) -> None:
    start = datetime.fromisoformat(day).replace(hour=1, tzinfo=UTC)
    run = run_of(good_log(start_ms=int(start.timestamp()) * 1000))
    assert [finding.code for finding in run.findings if finding.code == "RUN158"] == codes
