"""What is certain early is still there at the end: no finding is ever taken back."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mlperf_pkg.commands.watch.session import Judge, Lines, certain, missing
from mlperf_pkg.findings import Pending
from mlperf_pkg.run.model import Run
from tests.helpers.logs import doubled, edited, good_log, joined, line_of, records, without
from tests.parity.mutations import mutate

RESNET = good_log()
KINDS = [
    ("resnet", "closed", "2.0"),
    ("resnet", "open", "2.0"),
    ("bert", "closed", "1.0"),
    ("maskrcnn", "closed", "0.7"),
    ("stable_diffusion", "closed", "4.0"),
    ("llama31_8b", "closed", "6.0"),
    ("minigo", "closed", "1.1"),
]


def judged(log: bytes, round_: str = "2.0") -> Run:
    return Judge("log.txt", round=round_)(log)


def codes(run: Run) -> set[tuple[str, str]]:
    return {(finding.code, finding.severity) for finding in certain(run)}


def complete(data: bytes) -> bytes:
    """The complete lines of what is read so far."""
    lines = Lines()
    lines.add(data)
    return bytes(lines.text)


def until(log: bytes, key: str) -> bytes:
    """The log to the first record of a key, with it."""
    return b"".join(log.splitlines(keepends=True)[: line_of(log, key)])


@settings(max_examples=200, deadline=None)
@given(st.sampled_from(KINDS), st.integers(0, 2**32), st.floats(0, 1), st.floats(0, 1))
def test_nothing_is_taken_back(
    kind: tuple[str, str, str], seed: int, early: float, late: float
) -> None:
    log = b"\n".join(mutate(good_log(*kind).splitlines(), Random(seed)))
    before, after = (
        judged(complete(log[: round(part * len(log))]), kind[2]) for part in sorted((early, late))
    )
    assert codes(before) <= codes(after)
    whole = judged(log, kind[2])
    assert codes(after) <= {(finding.code, finding.severity) for finding in whole.findings}


@pytest.mark.parametrize(
    ("log", "code"),
    [
        (edited(RESNET, "global_batch_size", value="many"), "RN101"),
        (edited(RESNET, "submission_status", value="good"), "RUN104"),
        (doubled(RESNET, "global_batch_size", value=7), "RN101"),
        (RESNET.replace(b'"value"', b'"value', 1), "LOG101"),
        (joined([r for r in records(RESNET) if r["key"] != "init_stop"]), "RUN108"),
    ],
)
def test_a_wrong_record_is_certain_before_the_end(log: bytes, code: str) -> None:
    early = certain(judged(until(log, "run_start")))
    assert [finding.code for finding in early if finding.code.startswith(code)]


def test_a_good_log_is_never_wrong() -> None:
    lines = RESNET.splitlines(keepends=True)
    assert [certain(judged(b"".join(lines[:end]))) for end in range(0, len(lines), 7)] == [
        [] for _ in range(0, len(lines), 7)
    ]


def test_what_is_absent_waits_for_the_end() -> None:
    run = judged(until(without(RESNET, "cache_clear"), "run_start"))
    assert certain(run) == []
    assert missing(run) == ("cache_clear",)
    assert {type(f) for f in run.findings if f.code == "RUN105"} == {Pending}


def test_rules_wait_until_it_is_known_which_apply() -> None:
    log = edited(without(RESNET, "opt_name"), "submission_status", value="good")
    assert certain(judged(log)) == []
    assert "opt_name" in missing(judged(until(log, "run_start")))


def test_an_aborted_run_is_not_pending() -> None:
    run = judged(edited(RESNET, "run_stop", metadata={"status": "aborted"}))
    assert "RUN130" in {finding.code for finding in certain(run)}
