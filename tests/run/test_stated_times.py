"""What a log states of its times, against its stamps; and when its initialisation began."""

import math
from collections.abc import Callable
from typing import Any

import pytest

from mlperf_pkg.findings import Basis, Finding, Severity
from tests.helpers.logs import edited, good_log, joined, line_of, records, run_of

Records = list[dict[str, Any]]
Change = Callable[[Records], Records]

LORA = records(good_log("llama2_70b_lora", round_="5.0"))
STABLE_DIFFUSION = records(good_log("stable_diffusion", round_="5.0"))
RESNET = records(good_log("resnet", round_="2.0"))
BATCH_SIZE = next(r["value"] for r in LORA if r["key"] == "global_batch_size")


def statistics(record: dict[str, Any], value: Any, time_ms: float) -> dict[str, Any]:
    """A record of what was measured."""
    return {**record, "key": "tracked_stats", "value": value, "time_ms": time_ms}


def stating(name: str, of: Records = LORA, factor: float = 1.0) -> Records:
    """A log that states ``name`` before each evaluation, ``factor`` times what it is."""
    log: Records = []
    start_ms = 0
    position = 0
    for record in of:
        if record["key"] == "block_start":
            start_ms = record["time_ms"]
        elif record["key"] == "eval_start":
            samples = record["metadata"]["samples_count"] - position
            seconds = (record["time_ms"] - start_ms) / 1000
            rates = {
                "throughput": samples / seconds,
                "train_step_time": seconds / samples * BATCH_SIZE,
            }
            value = {name: rates[name] * factor}
            log.append(statistics(record, value, record["time_ms"]))
            position += samples
        log.append(record)
    return log


def without_positions(log: Records) -> Records:
    """The log whose evaluations do not say how far training has come."""
    return records(edited(joined(log), "eval_start", metadata={}))


def opened_again(log: Records) -> Records:
    """The log with another ``block_start`` before its first statement."""
    first = next(i for i, record in enumerate(log) if record["key"] == "tracked_stats")
    start = next(record for record in log if record["key"] == "block_start")
    return [*log[:first], {**start, "time_ms": log[first]["time_ms"] - 100}, *log[first:]]


def by_epoch(of: Records = RESNET, factor: float = 1.0) -> Records:
    """A log that states the throughput of each epoch, ``factor`` times what it is."""
    log: Records = []
    start_ms = 0
    for record in of:
        log.append(record)
        if record["key"] == "epoch_start":
            start_ms = record["time_ms"]
        elif record["key"] == "epoch_stop":
            rate = 1281167 / (record["time_ms"] - start_ms) * 1000 * factor
            log.append({**record, "key": "throughput", "value": rate})
    return log


def by_statement() -> Records:
    """A log that states the throughput since the statement before, from the second block on."""
    log: Records = []
    since_ms = math.nan
    position = 0
    for record in STABLE_DIFFUSION:
        if record["key"] == "block_start":
            samples = record["metadata"]["samples_count"]
            rate = (samples - position) / (record["time_ms"] - since_ms) * 1000
            value = {"throughput": rate if rate > 0 else 1e-3}
            log.append(statistics(record, value, record["time_ms"]))
            since_ms = record["time_ms"]
            position = samples
        log.append(record)
    return log


def squeezed(log: Records, factor: float) -> Records:
    """The log with a clock that runs slow from ``run_start`` on."""
    start_ms = next(record["time_ms"] for record in log if record["key"] == "run_start")
    changed: Records = []
    for record in log:
        elapsed = record["time_ms"] - start_ms
        time_ms = start_ms + round(elapsed * factor) if elapsed > 0 else record["time_ms"]
        changed.append({**record, "time_ms": time_ms})
    return changed


def without_a_minute(log: Records, block: int = 0) -> Records:
    """The log with a minute less in one of its blocks."""
    start = [i for i, record in enumerate(log) if record["key"] == "block_start"][block]
    cut = [{**record, "time_ms": record["time_ms"] - 60_000} for record in log[start + 1 :]]
    return [*log[: start + 1], *cut]


def with_losses(log: Records) -> Records:
    """The log whose statements are of one step, as they have its loss."""
    changed: Records = []
    for record in log:
        is_statement = record["key"] == "tracked_stats"
        value = {**record["value"], "train_loss": 1.0} if is_statement else record["value"]
        changed.append({**record, "value": value})
    return changed


def warmed_up(part: float) -> Records:
    """A log that states a warm-up which took a part of the time since ``init_start``."""
    index = next(i for i, record in enumerate(LORA) if record["key"] == "init_stop")
    init_ms = next(record["time_ms"] for record in LORA if record["key"] == "init_start")
    stop = LORA[index]
    value = {"warmup_time": part * (stop["time_ms"] - init_ms) / 1000}
    return [*LORA[:index], statistics(stop, value, stop["time_ms"]), *LORA[index:]]


def finding_of(log: Records, code: str, round_: str = "5.0") -> Finding | None:
    """The finding of a code on a log, if there is one."""
    run = run_of(joined(log), round_)
    return next((finding for finding in run.findings if finding.code == code), None)


KINDS = {
    "throughput": stating("throughput"),
    "step time": stating("train_step_time"),
    "throughput of epochs": by_epoch(),
    "throughput since the statement before": by_statement(),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("factor", "is_reported"),
    [
        pytest.param(1.0, False, id="as stated"),
        pytest.param(1.05, False, id="longer than stated"),
        pytest.param(0.999, False, id="a jitter"),
        pytest.param(0.98, True, id="2 % shorter"),
        pytest.param(0.94, True, id="6 % shorter"),
    ],
)
def test_a_clock_that_runs_slow(kind: str, factor: float, is_reported: bool) -> None:
    round_ = "2.0" if kind == "throughput of epochs" else "5.0"
    finding = finding_of(squeezed(KINDS[kind], factor), "RUN180", round_)
    assert (finding is not None) is is_reported


@pytest.mark.parametrize(
    ("log", "is_reported"),
    [
        pytest.param(LORA, False, id="nothing is stated"),
        pytest.param(without_a_minute(stating("throughput")), True, id="a minute less"),
        pytest.param(without_a_minute(stating("throughput"), 1), True, id="in the second block"),
        pytest.param(without_a_minute(by_statement()), True, id="since a statement at 0 samples"),
        pytest.param(stating("throughput", factor=1 / 8), False, id="slower than stated"),
        pytest.param(stating("throughput", factor=4096), False, id="tokens"),
        pytest.param(squeezed(with_losses(stating("throughput")), 0.5), False, id="of one step"),
        pytest.param(without_positions(stating("throughput")), False, id="without a position"),
        pytest.param(opened_again(stating("throughput")), False, id="two blocks in one statement"),
        pytest.param(stating("throughput", factor=0), False, id="a throughput of 0"),
        pytest.param(warmed_up(0.99), False, id="a warm-up"),
        pytest.param(warmed_up(1.1), True, id="a longer warm-up"),
    ],
)
def test_what_is_stated(log: Records, is_reported: bool) -> None:
    assert (finding_of(log, "RUN180") is not None) is is_reported


def test_the_arithmetic() -> None:
    log = squeezed(stating("throughput"), 0.94)
    finding = finding_of(log, "RUN180")
    assert finding
    assert (finding.severity, finding.basis) == (Severity.WARNING, Basis.ADVICE)
    assert finding.line in [i for i, r in enumerate(log, 1) if r["key"] == "tracked_stats"]
    start, text = finding.text.split(" take ")
    needed, left = text.split(" seconds, but by the time stamps only ")
    samples, rate = start.removesuffix(" samples a second").split(" samples at a throughput of ")
    assert float(samples.replace(",", "")) / float(rate) == pytest.approx(float(needed), rel=0.01)
    assert float(left.split(" ")[0]) == pytest.approx(0.94 * float(needed), rel=0.01)


# ---- the initialisation -------------------------------------------------------------------


def init_at(seconds: float) -> Change:
    """``init_start`` that many seconds after the first setting."""

    def change(log: Records) -> Records:
        init = next(i for i, record in enumerate(log) if record["key"] == "init_start")
        time_ms = log[init + 1]["time_ms"] + round(seconds * 1000)
        return records(edited(joined(log), "init_start", time_ms=time_ms))

    return change


def head_before(seconds: float) -> Change:
    """The first line that many seconds before ``init_start``."""

    def change(log: Records) -> Records:
        init_ms = next(record["time_ms"] for record in log if record["key"] == "init_start")
        return [{**log[0], "time_ms": init_ms - round(seconds * 1000)}, *log[1:]]

    return change


@pytest.mark.parametrize(
    ("change", "is_reported"),
    [
        pytest.param(init_at(-1), False, id="before the settings"),
        pytest.param(init_at(100), False, id="soon after"),
        pytest.param(init_at(130), True, id="minutes after"),
        pytest.param(init_at(3.2e7), False, id="another clock"),
        pytest.param(head_before(500), False, id="minutes after the first line"),
        pytest.param(head_before(700), True, id="long after the first line"),
    ],
)
def test_the_start_of_the_initialisation(change: Change, is_reported: bool) -> None:
    log = change(LORA)
    finding = finding_of(log, "RUN181")
    assert (finding is not None) is is_reported
    if finding:
        assert finding.line == line_of(joined(log), "init_start")
