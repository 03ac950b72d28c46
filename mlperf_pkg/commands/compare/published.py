"""The published results of this package, as results to compare."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from mlperf_pkg.checker.scores import Rank, ScoredSet, Scores, Standing
from mlperf_pkg.checker.values import Checked
from mlperf_pkg.checks.system_names import plain_name
from mlperf_pkg.checks.systems import SystemFile, check_system
from mlperf_pkg.commands.compare.ratios import Result, ResultGroup
from mlperf_pkg.commands.compare.reading import Filter, framework_of, hardware_of, target_of
from mlperf_pkg.errors import UserError
from mlperf_pkg.infra.json_lines import MAX_BYTES
from mlperf_pkg.infra.opening import read_file
from mlperf_pkg.infra.text import did_you_mean
from mlperf_pkg.published.model import PublishedSet, comparable, known_division
from mlperf_pkg.published.results import PublishedResults, published_results
from mlperf_pkg.rulebook.files import rounds
from mlperf_pkg.rulebook.inheritance import model_of
from mlperf_pkg.rulebook.load import benchmarks_of, load_benchmark
from mlperf_pkg.rulebook.model import is_round_name, version_of
from mlperf_pkg.run.model import Run

ALL = "all"

_Sets = Mapping[int, PublishedSet]  # by their index


def read_rounds(
    names: Sequence[str], own: Sequence[Result], result_filter: Filter, usage: str | None
) -> list[Result]:
    """Return the published results of rounds, fastest first; the name ``all`` means every round.

    With ``own`` results, only those of the same groups are returned, without the own ones. Without
    ``usage``, a name means the rounds of all usages.

    Raises:
        UserError: no such round or result exists; the message lists those that do.
    """
    published = published_results()
    scored = {i: row for i, row in enumerate(published.sets) if row.score_minutes is not None}
    sets = _of_rounds(published, scored, names, usage)
    _refuse_unknown(result_filter.benchmarks, sets.values(), scored.values())
    groups = {result.group for result in own}
    chosen = {i: row for i, row in sets.items() if not own or _group(row) in groups}
    if not chosen:
        raise UserError(_nothing(groups, scored.values()))
    settings = _settings(published, chosen)
    argument = max((result.argument + 1 for result in own), default=0)
    results = [_result(row, settings[index], argument) for index, row in chosen.items()]
    accepted = list(filter(result_filter.accepts, results))
    if not accepted:
        raise UserError(_none_accepted(result_filter, results))
    identities = {_identity(result) for result in own}
    others = (result for result in accepted if _identity(result) not in identities)
    return sorted(others, key=lambda result: result.minutes or 0)


def _of_rounds(
    published: PublishedResults, sets: _Sets, names: Sequence[str], usage: str | None
) -> _Sets:
    rounds = [r.name for r in published.provenance.rounds if usage in (None, r.usage)]
    for name in names:
        if name not in (ALL, *rounds):
            existing = ", ".join(dict.fromkeys(rounds))
            problem = "no such round" + did_you_mean(name, [*rounds, ALL])
            if is_round_name(name) and version_of(name) > max(map(version_of, rounds)):
                problem = "newer than the published results of this package"
            raise UserError(f"--published {name}: {problem} (of {existing}, all)")
    return {
        index: row
        for index, row in sets.items()
        if (ALL in names or row.round in names) and usage in (None, row.usage)
    }


def _refuse_unknown(
    patterns: Sequence[str], sets: Iterable[PublishedSet], of_all_rounds: Iterable[PublishedSet]
) -> None:
    existing, of_all_rounds = sorted({row.benchmark for row in sets}), list(of_all_rounds)
    benchmarks = sorted({row.benchmark for row in of_all_rounds})
    for pattern in patterns:
        if not any(fnmatchcase(name, pattern) for name in existing):
            others = [row for row in of_all_rounds if fnmatchcase(row.benchmark, pattern)]
            there = _rounds_in_words(others) if others else did_you_mean(pattern, benchmarks)
            raise UserError(
                f"--benchmark {pattern}: no published result in these rounds{there}"
                f" (they have {', '.join(existing)})"
            )


def _nothing(groups: Iterable[ResultGroup], sets: Iterable[PublishedSet]) -> str:
    """Return a message that no result has these groups, with the rounds that have one."""
    names = ", ".join(sorted(f"{name} ({division})" for name, division, _ in groups))
    rounds = _rounds_in_words(row for row in sets if _group(row) in groups)
    return f"--published: no result of {names} in these rounds{rounds}"


def _rounds_in_words(sets: Iterable[PublishedSet]) -> str:
    rounds = dict.fromkeys(row.round for row in sets)
    return f"; published in {', '.join(rounds)}" if rounds else "; published in none"


def _none_accepted(result_filter: Filter, results: Sequence[Result]) -> str:
    names = {result.submitter or "" for result in results} | {result.system for result in results}
    suggestions = (did_you_mean(pattern, sorted(names)) for pattern in result_filter.systems)
    message = "no published result matches --system, --division and --accelerators"
    return f"{message}{next(filter(None, suggestions), '')}"


def _settings(published: PublishedResults, sets: _Sets) -> Mapping[int, Mapping[str, str]]:
    """Return the hyperparameters of sets by index, with the most frequent value of each key."""
    values: dict[int, dict[str, str]] = {index: {} for index in sets}
    runs: dict[tuple[int, str], int] = {}
    for benchmark in {row.benchmark for row in sets.values()}:
        for setting in published.settings(benchmark):
            key = (setting.set, setting.key)
            if setting.set in values and setting.runs > runs.get(key, 0):
                runs[key] = setting.runs
                values[setting.set][setting.key] = setting.value
    return values


def _group(row: PublishedSet) -> ResultGroup:
    return ResultGroup(row.benchmark, known_division(row.division), row.scaling or "")


def _identity(result: Result) -> tuple[ResultGroup, float | None]:
    return result.group, result.minutes and comparable(result.minutes)


def _result(row: PublishedSet, hyperparameters: Mapping[str, str], argument: int) -> Result:
    return Result(
        argument=argument,
        round=row.round,
        submitter=row.submitter,
        system=row.system,
        system_name=row.system_name or None,
        benchmark=row.benchmark,
        division=known_division(row.division) or None,
        minutes=row.score_minutes,
        path=row.path,
        scaling=row.scaling,
        accelerators=row.accelerators,
        nodes=row.nodes,
        hardware=hardware_of(row.accelerator_model),
        framework=framework_of(row.framework),
        energy_joules=row.energy_joules,
        target=target_of(load_benchmark(row.usage, row.round, row.benchmark)),
        availability=row.status or None,
        published=True,
        hyperparameters=hyperparameters,
    )


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
                self._sets.setdefault(_peers(row), []).append(row)

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


def _peers(row: PublishedSet) -> _Group:
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
