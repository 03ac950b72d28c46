"""The columns of the table of results."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec import Struct

from mlperf_pkg.checker.values import Rank, Standing
from mlperf_pkg.commands.page.entries import Entry
from mlperf_pkg.results import wording


class Column(Struct, frozen=True):
    """A column: ``kind`` is ``n`` for numbers, ``name`` for text that wraps, or empty.

    A column that ``may_lack`` values is shown only if there is one. ``filters`` says that results
    can be filtered by its values.
    """

    title: str
    text: Callable[[Entry], str]
    kind: str = ""
    may_lack: bool = False
    filters: bool = False


def in_words(standing: Standing | None) -> str:
    """Return a standing: ``3 of 12 in 2.0 on 16 accelerators, 1 of 2 with Bow IPU``."""
    if standing is None:
        return ""
    count = wording.counted(standing.accelerators, "accelerator")
    text = f"{_rank(standing.overall)} in {standing.round} on {count}"
    if standing.of_model is None:
        return text
    return f"{text}, {_rank(standing.of_model)} with {standing.accelerator_model}"


def _rank(rank: Rank) -> str:
    return f"{rank.rank} of {rank.of}"


def _number(value: float | None, digits: int = 0) -> str:
    return "" if value is None else f"{value:,.{digits}f}"


def _kilojoules(entry: Entry) -> str:
    joules = entry.row.energy_joules
    return "" if joules is None else _number(joules / 1000)


def _dollars(entry: Entry) -> str:
    return _number(entry.price.usd) if entry.price else ""


def _standing(entry: Entry) -> str:
    return _rank(entry.standing.overall) if entry.standing else ""


SCORE, OFFICIAL, RULES, BENCHMARK = "Score", "Official", "Rules", "Benchmark"
COLUMNS = (
    Column("Round", lambda entry: entry.row.round, filters=True),
    Column(BENCHMARK, lambda entry: entry.row.benchmark, filters=True),
    Column("Submitter", lambda entry: entry.row.submitter or "", filters=True),
    Column("System", lambda entry: entry.row.system or "", kind="name"),
    Column("Accelerator", lambda entry: entry.accelerator, "name", may_lack=True, filters=True),
    Column("Accelerators", lambda entry: _number(entry.accelerators), "n", filters=True),
    Column("Nodes", lambda entry: _number(entry.nodes), "n", may_lack=True),
    Column("Availability", lambda entry: entry.availability, may_lack=True, filters=True),
    Column("Batch size", lambda entry: entry.batch_size, "n", may_lack=True),
    Column(SCORE, lambda entry: wording.minutes(entry.row.score_minutes), "n"),
    Column("Energy (kJ)", _kilojoules, "n", may_lack=True),
    Column("Price (USD)", _dollars, "n", may_lack=True),
    Column("Published rank", _standing, may_lack=True),
    Column(OFFICIAL, lambda entry: wording.VERDICTS[entry.row.verdict.official]),
    Column(RULES, lambda entry: wording.VERDICTS[entry.row.verdict.rules]),
    Column("RCP margin", lambda entry: wording.rcp(entry.row)),
    Column("Division", lambda entry: entry.row.division or "", filters=True),
    Column("Summarizer", lambda entry: wording.minutes(entry.row.official_minutes), "n"),
    Column("Runs", lambda entry: wording.runs(entry.row), "n"),
)


def columns(entries: Sequence[Entry]) -> tuple[Column, ...]:
    """Return the columns of a table; results of one round do not have it in a column."""
    rounds = {entry.row.round for entry in entries}
    return tuple(
        column
        for column in COLUMNS
        if (column.title != "Round" or len(rounds) > 1)
        and (not column.may_lack or any(map(column.text, entries)))
    )


def choices(columns: Sequence[Column], entries: Sequence[Entry]) -> dict[str, list[str]]:
    """Return the values by which results can be filtered, by column."""
    values = {
        column.title: sorted({column.text(entry) for entry in entries} - {""}, key=_natural)
        for column in columns
        if column.filters
    }
    return {title: texts for title, texts in values.items() if len(texts) > 1}


def _natural(text: str) -> tuple[int, str]:
    digits = text.replace(",", "")
    return (int(digits) if digits.isdecimal() and len(digits) < 20 else -1, text)  # noqa: PLR2004
