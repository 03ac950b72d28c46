"""Every line is the one that the official logger writes."""

import logging
import re
from unittest.mock import Mock

import pytest
from mlperf_logging.mllog.mllog import MLLogger

from mlperf_pkg.simulate.runs import Event, write

EVENTS = [
    Event("submission_org", 'Örg "quoted" \\ \n\x1b \ud83d\ude00'),
    Event("init_start"),
    Event("init_stop", metadata={"status": "success"}),
    Event("opt_learning_rate", 1e-7),
    Event("eval_accuracy", {"BBOX": 0.377, "SEGM": 1e22}, {"epoch_num": 12}),
    Event("d_adam_betas", [0.9, 0.999, None, True, [], {}]),
    Event("start", -1, {"step": 2**63}),
    Event("epoch_stopped", ""),
]


def officially(event: Event, time_ms: int) -> str:
    kept = Mock(spec=logging.Logger)
    logger, (_, underscore, end) = MLLogger(kept), event.key.rpartition("_")
    log = {"_start": logger.start, "_stop": logger.end}.get(underscore + end, logger.event)
    log(event.key, event.value, metadata=dict(event.metadata), time_ms=time_ms)
    (level, line), _ = kept.log.call_args
    assert level == logging.INFO
    return f"{line}\n"


def without_caller(line: str) -> str:
    """The file and line number of the caller are ours."""
    return re.sub(r'"file": "[^"]*", "lineno": \d+', "", line)


def test_lines_are_those_of_the_official_logger() -> None:
    for event in EVENTS:
        line = write([(1_728_510_042_000, event)]).decode("ascii")
        assert without_caller(line) == without_caller(officially(event, 1_728_510_042_000))
        assert line.startswith(':::MLLOG {"namespace": "", "time_ms": 1728510042000, ')


def test_what_json_cannot_hold() -> None:
    with pytest.raises(TypeError):
        write([(1, Event("key", object()))])
