"""Every cell of the official tables of published submissions, against the summarizer itself.

The lighter submissions are compared in every run, all of them with ``MLPERF_PKG_FULL=1``.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from mlperf_pkg.commands.results.official import OfficialTable, Summary, summarize
from mlperf_pkg.submission.model import AS_FILED
from tests.helpers.corpus import CORPUS, checked, light_submissions, needs_corpus
from tests.helpers.official import Rows, official_files, rows, tables

DIED = {"v0.7/SIAT"}  # of a missing field
pytestmark = needs_corpus


@pytest.mark.parametrize("name", list(light_submissions()))
def test_every_cell(name: str, tmp_path: Path) -> None:
    summary = summarize(checked(name, AS_FILED))
    official = official_files(CORPUS / name, summary.usage, f"{summary.round}.0", tmp_path)
    if name in DIED:
        assert (official, summary.plain.rows) == ({}, ())
        return
    assert differences(summary, official) == []
    # The strong-scaling one is overwritten where there is weak scaling.
    plain = summary.weak if summary.weak and summary.weak.rows else summary.plain
    assert plain.json() == official["summary.json"]
    if summary.detailed.rows:
        assert summary.detailed.json() == official[DETAILED_JSON]


DETAILED, DETAILED_JSON = "summary_detailed.csv", "summary_detailed.json"


def differences(summary: Summary, official: dict[str, str]) -> list[tuple[str, str, str, str]]:
    """System, column, our cell and theirs."""
    plain, *weak = tables(official["summary.csv"])
    pairs: list[tuple[OfficialTable | None, Rows]] = [(summary.plain, plain)]
    pairs += [(summary.weak, table) for table in weak]
    if DETAILED in official:  # which it does not write without a row
        pairs.append((summary.detailed, rows(official[DETAILED])))
    else:
        assert summary.detailed.rows == ()
    return [cell for ours, theirs in pairs if ours for cell in _different_cells(ours, theirs)]


def _different_cells(ours: OfficialTable, theirs: Rows) -> Iterator[tuple[str, str, str, str]]:
    header, *lines = rows(ours.csv())
    assert (header, len(lines)) == (theirs[0], len(theirs) - 1)
    for own, other in zip(lines, theirs[1:], strict=True):
        for column, mine, official in zip(header, own, other, strict=True):
            if mine != official:
                yield own[3], column, mine, official
