"""Seeds that can be read, and records that cannot."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from mlperf_pkg.checker.check import check
from mlperf_pkg.checker.values import Options
from tests.helpers.logs import edited, joined, records
from tests.helpers.trees import SYSTEM, simulated, write_set

SEEDS = ("SEED101", "SEED102", "SEED103")


def damaged(log: bytes) -> bytes:
    """A record that is not a seed is cut off."""
    return log + b':::MLLOG {"key": "eval_accu\n'


def without_line(log: bytes) -> bytes:
    """The seeds do not say which line logged them."""
    return edited(log, "seed", metadata={})


def twice(log: bytes) -> bytes:
    """The seeds of a log are those of another, and a record is damaged."""
    return damaged(edited(log, "seed", value=7))


def unchanged(log: bytes) -> bytes:
    """The log as it is."""
    return log


def text(log: bytes) -> bytes:
    """Each seed is text that ``int()`` converts."""
    return joined(
        [{**r, "value": str(r["value"])} if r["key"] == "seed" else r for r in records(log)]
    )


@pytest.mark.parametrize(
    ("change", "logs", "expected"),
    [
        (unchanged, 0, set()),
        (text, 10, set()),
        (damaged, 1, {"SEED103 official"}),
        (without_line, 1, {"SEED103 both"}),
        (twice, 2, {"SEED102 both", "SEED103 official"}),
    ],
)
def test_seeds(
    tmp_path: Path, change: Callable[[bytes], bytes], logs: int, expected: set[str]
) -> None:
    log_texts = simulated("rgat", "closed", "5.1")
    changed = [*map(change, log_texts[:logs]), *log_texts[logs:]]
    folder = tmp_path / "v5.1" / "Submitter" / "results" / SYSTEM / "rgat"
    write_set(folder, tuple(changed))
    report = check([str(folder)], Options(round="5.1")).report
    assert {f"{f.code} {f.basis}" for f in report.findings if f.code in SEEDS} == expected
