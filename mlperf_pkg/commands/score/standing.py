"""The ranks of scores among the published results on as many accelerators."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from mlperf_pkg.checker.scores import Rank, ScoredSet, Scores, Standing
from mlperf_pkg.checker.values import Checked
from mlperf_pkg.checks.system_names import plain_name
from mlperf_pkg.checks.systems import SystemFile, check_system
from mlperf_pkg.infra.json_values import MAX_BYTES
from mlperf_pkg.infra.paths import read_file
from mlperf_pkg.published.model import PublishedSet, comparable, known_division
from mlperf_pkg.published.results import published_results
from mlperf_pkg.rulebook.files import rounds
from mlperf_pkg.rulebook.inheritance import model_of
from mlperf_pkg.rulebook.load import benchmarks_of, load_benchmark
from mlperf_pkg.rulebook.model import version_of
from mlperf_pkg.run.model import Run

_DEPTH = 3  # folders from results/ to a log: system, perhaps strong or weak, benchmark


def with_standings(scores: Scores, checked: Checked) -> Scores:
    """Return the scores with the standing of each set that has a score and a description.

    Raises:
        PublishedResultsError: the published results cannot be read.
    """
    ranking = _Ranking(checked)
    return replace(scores, sets=tuple(ranking.ranked(scored) for scored in scores.sets))


class _Group(NamedTuple):
    """The properties shared by results that are ranked together; benchmarks imply the usage."""

    benchmark: str
    division: str
    scaling: str | None
    accelerators: int


class _Own(Struct, frozen=True):
    """A result set to rank."""

    usage: str
    round: str
    group: _Group
    minutes: float
    model: str


class _Ranking:
    def __init__(self, checked: Checked) -> None:
        self._runs = {run.path: run for run in checked.runs}
        self._systems = {context.id: context.system for context in checked.contexts}
        self._places = {
            label: place for contents in checked.inputs for label, place in contents.places.items()
        }
        published = published_results()
        self._rounds = {(round_.usage, round_.name) for round_ in published.provenance.rounds}
        self._sets: dict[_Group, list[PublishedSet]] = {}
        for row in published.sets:
            if row.score_minutes is not None:
                self._sets.setdefault(_group(row), []).append(row)

    def ranked(self, scored: ScoredSet) -> ScoredSet:
        row = scored.row
        if row.score_minutes is None or not scored.runs:
            return scored
        first = self._runs[scored.runs[0].path]
        system = self._systems[row.id] or self._description_of(first)
        if system is None or not system.accelerators:
            return scored
        own = _Own(
            usage=first.usage,
            round=row.round,
            group=_Group(
                row.benchmark, known_division(row.division), row.scaling, system.accelerators
            ),
            minutes=row.score_minutes,
            model=str((system.contents or {}).get("accelerator_model_name") or ""),
        )
        return replace(scored, published=self._standing(own))

    def _description_of(self, run: Run) -> SystemFile | None:
        """Return the system description of a folder that was checked without its tree."""
        path = self._places[run.path].path
        folders = path.resolve().parents if isinstance(path, Path) else ()
        for system, results in pairwise(folders[: _DEPTH + 1]):
            if results.name == "results":
                file = results.parent / "systems" / f"{system.name}.json"
                try:
                    data = read_file(file, MAX_BYTES)
                except OSError:
                    return None
                return check_system(str(file), data, run.usage, run.round)
        return None

    def _standing(self, own: _Own) -> Standing | None:
        """Return the standing in the set's own round or, if it is new, in the latest comparable."""
        rows = self._sets.get(own.group, [])
        name = own.round if (own.usage, own.round) in self._rounds else _latest(own, rows)
        others = _without(own, [row for row in rows if row.round == name])
        if not others:
            return None
        model = plain_name(own.model)
        alike = [row for row in others if plain_name(row.accelerator_model) == model]
        return Standing(
            round=name,
            accelerators=own.group.accelerators,
            overall=_rank(own, others),
            accelerator_model=own.model,
            of_model=_rank(own, alike) if alike else None,
        )


def _group(row: PublishedSet) -> _Group:
    return _Group(row.benchmark, known_division(row.division), row.scaling, row.accelerators or 0)


def _latest(own: _Own, rows: Iterable[PublishedSet]) -> str:
    """Return the latest earlier round with the same target, or an empty name."""
    rounds = {row.round for row in rows}
    names = comparable_rounds(own.usage, own.round, own.group.benchmark)
    return next((name for name, _ in names if name in rounds), "")


def comparable_rounds(usage: str, round_: str, benchmark: str) -> Iterator[tuple[str, str]]:
    """Yield the rounds before a round in which a benchmark has the same target, the latest first.

    Each has the name of the benchmark in that round.
    """
    rules = load_benchmark(usage, round_, benchmark)
    earlier = (name for name in rounds(usage) if version_of(name) < version_of(round_))
    name, newer = benchmark, round_
    for older in sorted(earlier, key=version_of, reverse=True):
        if name not in benchmarks_of(usage, older):
            name = model_of(usage, newer, name) or name
        newer = older
        former = load_benchmark(usage, older, name)
        if rules is not None and former is not None and rules.target == former.target:
            yield older, name


def _without(own: _Own, rows: Sequence[PublishedSet]) -> list[PublishedSet]:
    """Return the rows without the set itself, if it was published."""
    itself = next((row for row in rows if _minutes(row) == comparable(own.minutes)), None)
    return [row for row in rows if row is not itself]


def _minutes(row: PublishedSet) -> float:
    return comparable(row.score_minutes or 0)


def _rank(own: _Own, others: Sequence[PublishedSet]) -> Rank:
    faster = [_minutes(row) < comparable(own.minutes) for row in others]
    return Rank(sum(faster) + 1, len(faster) + 1)
