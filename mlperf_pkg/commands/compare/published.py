"""The published results of this package: as results to compare, and to rank scores among."""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import cache
from itertools import pairwise
from pathlib import Path

from msgspec.structs import replace

from mlperf_pkg.checker.values import Checked, Rank, ScoredSet, Scores, Standing
from mlperf_pkg.checks.context import SetContext
from mlperf_pkg.checks.descriptions import SystemFile, check_system
from mlperf_pkg.checks.names import plain_name
from mlperf_pkg.commands.compare.ratios import Result, ResultGroup
from mlperf_pkg.commands.compare.reading import Filter, framework_of, hardware_of, target_of
from mlperf_pkg.commands.notice import category_in_words
from mlperf_pkg.errors import UserError
from mlperf_pkg.infra.json_values import MAX_BYTES
from mlperf_pkg.infra.paths import read_file
from mlperf_pkg.infra.text import did_you_mean
from mlperf_pkg.published.model import PublishedSet, comparable, known_division
from mlperf_pkg.published.results import PublishedResults, published_results
from mlperf_pkg.results.report import ResultSetRow
from mlperf_pkg.rulebook.load import load_benchmark
from mlperf_pkg.rulebook.model import is_round_name, version_of
from mlperf_pkg.rulebook.rounds import comparable_rounds, version_since
from mlperf_pkg.submission.model import Place

ALL = "all"
_DEPTH = 3  # folders from results/ to a log: system, perhaps strong or weak, benchmark

_Sets = Mapping[int, PublishedSet]
"""Published sets by their index."""

_Described = Callable[[Path, str, str], SystemFile | None]
"""Returns a description by its file, the usage and the round."""


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
    sets = _sets_to_compare(published, names, own, result_filter.benchmarks, usage)
    settings = _settings(published, sets)
    argument = max((result.argument + 1 for result in own), default=0)
    results = [_result(row, settings[index], argument) for index, row in sets.items()]
    accepted = _accepted(result_filter, results)
    own_identities = set(map(_identity, own))
    others = []
    for result in accepted:
        if _identity(result) not in own_identities:
            others.append(result)
    return sorted(others, key=lambda result: result.minutes or 0)


def _sets_to_compare(
    published: PublishedResults,
    names: Sequence[str],
    own: Sequence[Result],
    benchmarks: Sequence[str],
    usage: str | None,
) -> _Sets:
    """Return the sets with a score that are of these rounds and of the groups of own results.

    Raises:
        UserError: there is none, or no such round or benchmark.
    """
    scored = {}
    for index, row in enumerate(published.sets):
        if row.score_minutes is not None:
            scored[index] = row
    sets = _of_rounds(published, scored, names, usage)
    _refuse_unknown(benchmarks, sets.values(), scored.values())
    groups = {result.group for result in own}
    of_any_version = {result.group for result in own if not result.round}

    def is_compared(row: PublishedSet) -> bool:
        group = _group(row)
        return group in groups or group._replace(version="") in of_any_version

    if own:
        sets = {index: row for index, row in sets.items() if is_compared(row)}
    if not sets:
        group_names = ", ".join(sorted(group.title for group in groups))
        elsewhere = _rounds_in_words(row for row in scored.values() if is_compared(row))
        raise UserError(
            f"--published: the chosen rounds have no result of {group_names}{elsewhere}"
        )
    return sets


def _of_rounds(
    published: PublishedResults, sets: _Sets, names: Sequence[str], usage: str | None
) -> _Sets:
    """Return the sets of the rounds with these names.

    Raises:
        UserError: there is no such round.
    """
    existing = []
    for round_ in published.provenance.rounds:
        if usage in (None, round_.usage):
            existing.append(round_.name)
    for name in names:
        if name not in (ALL, *existing):
            raise UserError(f"--published {name}: {_unknown_round(name, existing)}")
    chosen = {}
    for index, row in sets.items():
        is_named = ALL in names or row.round in names
        if is_named and usage in (None, row.usage):
            chosen[index] = row
    return chosen


def _unknown_round(name: str, existing: Sequence[str]) -> str:
    problem = f"no such round{did_you_mean(name, [*existing, ALL])}"
    if is_round_name(name) and version_of(name) > max(map(version_of, existing)):
        problem = "the round is newer than the published results in mlperf-pkg"
    return f"{problem} (expected {', '.join(dict.fromkeys(existing))} or all)"


def _refuse_unknown(
    patterns: Sequence[str],
    sets: Iterable[PublishedSet],
    sets_of_all_rounds: Iterable[PublishedSet],
) -> None:
    """Refuse a pattern that is not of a benchmark of these sets.

    Raises:
        UserError: it is one.
    """
    benchmarks = sorted({row.benchmark for row in sets})
    for pattern in patterns:
        if not any(fnmatchcase(name, pattern) for name in benchmarks):
            elsewhere = _elsewhere(pattern, list(sets_of_all_rounds))
            raise UserError(
                f"--benchmark {pattern}: the chosen rounds have no result of this benchmark, only"
                f" of {', '.join(benchmarks)}{elsewhere}"
            )


def _elsewhere(pattern: str, sets: Sequence[PublishedSet]) -> str:
    """Return the rounds that have a benchmark, or the benchmark that is like it."""
    matching = [row for row in sets if fnmatchcase(row.benchmark, pattern)]
    if matching:
        return _rounds_in_words(matching)
    return did_you_mean(pattern, sorted({row.benchmark for row in sets}))


def _accepted(result_filter: Filter, results: Sequence[Result]) -> list[Result]:
    """Return the results that the filter accepts.

    Raises:
        UserError: there is none.
    """
    accepted = [result for result in results if result_filter.accepts(result)]
    if not accepted:
        names = {result.submitter or "" for result in results}
        names |= {result.system for result in results}
        hints = [did_you_mean(pattern, sorted(names)) for pattern in result_filter.systems]
        hint = next(filter(None, hints), "")
        raise UserError(
            f"no published result matches --system, --division and --accelerators{hint}"
        )
    return accepted


def _rounds_in_words(sets: Iterable[PublishedSet]) -> str:
    names = ", ".join(dict.fromkeys(row.round for row in sets))
    return f"; such results were published in {names or 'no round'}"


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
    version = version_since(row.usage, row.round, row.benchmark)
    return ResultGroup(row.benchmark, known_division(row.division), row.scaling or "", version)


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
        energy_joules=row.energy_joules,
        hardware=hardware_of(row.accelerator_model),
        framework=framework_of(row.framework),
        target=target_of(load_benchmark(row.usage, row.round, row.benchmark)),
        availability=row.status or None,
        published=True,
        usage=row.usage,
        is_verified=True,
        hyperparameters=hyperparameters,
    )


# ---- the standings of scores --------------------------------------------------------------


def with_standings(scores: Scores, checked: Checked) -> Scores:
    """Return the scores with the standing of each set that has a score and a description.

    Raises:
        PublishedResultsError: the published results cannot be read.
    """
    published = published_results()
    peers: dict[Hashable, list[PublishedSet]] = {}
    for row in published.sets:
        if row.score_minutes is not None:
            peers.setdefault(_peer_key(row, row.accelerators, row.status), []).append(row)
    contexts = {context.id: context for context in checked.contexts}
    places = checked.places
    described = cache(_described)  # of several sets
    ranked = []
    for scored in scores.sets:
        context = contexts[scored.row.id]
        system = _system_of(scored, context, places, described)
        standing = None
        if system and system.accelerators:
            rivals = peers.get(_peer_key(scored.row, system.accelerators, system.status or ""), [])
            standing = _standing(scored.row, system, context, published, rivals)
        ranked.append(replace(scored, published=standing))
    return replace(scores, sets=tuple(ranked))


def _system_of(
    scored: ScoredSet, context: SetContext, places: Mapping[str, Place], described: _Described
) -> SystemFile | None:
    """Return the system description of a set, if it has a score and a description.

    That of a log that was checked without its tree is searched for beside it.
    """
    if scored.row.score_minutes is None:
        return None
    if context.system or not scored.runs:
        return context.system
    log = places[scored.runs[0].label].path
    folders = log.resolve().parents if isinstance(log, Path) else ()
    for system, results in pairwise(folders[: _DEPTH + 1]):
        if results.name == "results":
            file = results.parent / "systems" / f"{system.name}.json"
            return described(file, context.round.usage, context.round.name)
    return None


def _described(file: Path, usage: str, round_: str) -> SystemFile | None:
    try:
        data = read_file(file, MAX_BYTES)
    except OSError:
        return None
    return check_system(str(file), data, usage, round_)


def _round_to_rank_in(
    context: SetContext, benchmark: str, published: PublishedResults, rows: Sequence[PublishedSet]
) -> str:
    """Return the round of a set if it is published, else the latest comparable one with rows.

    It is empty if there is none.
    """
    own = context.round
    if any((one.usage, one.name) == (own.usage, own.name) for one in published.provenance.rounds):
        return own.name
    published_rounds = {row.round for row in rows}
    for earlier, _ in comparable_rounds(own.usage, own.name, benchmark):
        if earlier in published_rounds:
            return earlier
    return ""


def _standing(
    row: ResultSetRow,
    system: SystemFile,
    context: SetContext,
    published: PublishedResults,
    peers: Sequence[PublishedSet],
) -> Standing | None:
    """Return the standing among the peers of the round or of the latest comparable one."""
    round_ = _round_to_rank_in(context, row.benchmark, published, peers)
    minutes = _minutes(row)
    rivals = [peer for peer in peers if peer.round == round_]
    itself = next((rival for rival in rivals if _minutes(rival) == minutes), None)
    if itself:
        rivals.remove(itself)
    if not rivals:
        return None
    model = str((system.contents or {}).get("accelerator_model_name") or "")
    plain_model = plain_name(model)
    faster = [rival for rival in rivals if _minutes(rival) < minutes]
    following = min(rivals, key=_minutes)
    if faster:
        following = max(faster, key=_minutes)
    alike = [rival for rival in rivals if plain_name(rival.accelerator_model) == plain_model]
    return Standing(
        round=round_,
        accelerators=system.accelerators or 0,
        category=category_in_words(system.status or ""),
        overall=_rank(minutes, rivals),
        accelerator_model=model,
        of_model=_rank(minutes, alike) if alike else None,
        next_submitter=following.submitter,
        next_minutes=_minutes(following),
    )


def _peer_key(row: ResultSetRow | PublishedSet, accelerators: int | None, status: str) -> Hashable:
    """Return what results that rank together have in common."""
    division = known_division(row.division)
    return row.benchmark, division, row.scaling, accelerators or 0, category_in_words(status)


def _minutes(row: ResultSetRow | PublishedSet) -> float:
    return comparable(row.score_minutes or 0)


def _rank(minutes: float, others: Sequence[PublishedSet]) -> Rank:
    rank = 1
    for row in others:
        if _minutes(row) < minutes:
            rank += 1
    return Rank(rank, of=len(others) + 1)
