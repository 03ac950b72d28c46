"""Plan a check: which files are read, by the rules of which round."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

from msgspec import Struct
from msgspec.structs import replace

from mlperf_pkg.checker.guard import guarded
from mlperf_pkg.checker.values import Options
from mlperf_pkg.findings import Unchecked
from mlperf_pkg.infra.listed_path import AnyPath
from mlperf_pkg.infra.source import Source
from mlperf_pkg.rulebook.load import counts_samples
from mlperf_pkg.rulebook.rounds import (
    TRAINING,
    BenchmarkUsage,
    RoundChoice,
    Sureness,
    round_of_tree,
    usage_with,
)
from mlperf_pkg.rulebook.table import compile_tables
from mlperf_pkg.run.identity import benchmark_of, infer_round
from mlperf_pkg.run.model import LogFile
from mlperf_pkg.run.power import PowerFile
from mlperf_pkg.submission.model import Input, Place, ResultSet, Submission
from mlperf_pkg.submission.params import TRAIN_SAMPLES


class Plan(Struct, frozen=True):
    """The logs of one submission, of result sets outside one, or loose logs, and their round.

    ``submission`` is None for the other two; loose logs have no ``sets`` either, and each of them
    has a usage, a round and a reason of its own. Else ``round`` is None only if there is no log;
    ``reason`` says how it was chosen. ``flags`` are those of loose logs. A plan that could not be
    made has only a finding, ``unchecked``.
    """

    submission: Submission | None
    sets: tuple[ResultSet, ...]
    usage: str | None
    round: str | None
    reason: str
    logs: tuple[LogFile, ...]
    unchecked: Unchecked | None = None
    flags: frozenset[str] = frozenset()

    @property
    def label(self) -> str | None:
        """The path of the submission; None without one."""
        return self.submission.place.label if self.submission else None

    @property
    def sources(self) -> dict[str, Source]:
        """The logs by path."""
        return {log.source.label: log.source for log in self.logs}


class Choice(Struct, frozen=True):
    """A usage and a round; None where the logs are to decide."""

    usage: str | None
    round: RoundChoice | None


def plans_of(inputs: Sequence[Input], options: Options) -> Iterator[Plan]:
    """Plan the check of all inputs: each submission, result sets outside one, and loose logs.

    Result sets outside a submission are planned with those of the same submission, as in it. Loose
    logs are planned together, as several inputs may be one result set.
    """
    for input_ in inputs:
        for submission in input_.submissions:
            choice = choice_for(submission.place.path.resolve(), options)
            yield _guarded_plan(submission.result_sets, choice, submission)
    by_tree: dict[Place, dict[str, ResultSet]] = {}
    for files in (files for input_ in inputs for files in input_.result_sets):
        by_tree.setdefault(files.tree or files.place, {})[files.place.label] = files
    for tree, sets in by_tree.items():
        yield _guarded_plan(tuple(sets.values()), choice_for(tree.path, options))
    if logs := {log.label: log for input_ in inputs for log in input_.logs}:
        yield _plan_loose_logs(tuple(logs.values()), options)


def with_curves(plan: Plan) -> Plan:
    """Return the plan with logs whose runs have curves."""
    return replace(plan, logs=tuple(replace(log, curve=True) for log in plan.logs))


def _plan_loose_logs(places: Sequence[Place], options: Options) -> Plan:
    folders = {place.folder for place in places}
    choices = {folder: choice_for(folder.path.resolve(), options) for folder in folders}
    samples = bool(TRAIN_SAMPLES & options.flags)
    logs = tuple(_log_file(place, choices[place.folder], train_samples=samples) for place in places)
    return Plan(None, (), None, None, "", logs, flags=options.flags)


def _guarded_plan(
    sets: tuple[ResultSet, ...], choice: Choice, submission: Submission | None = None
) -> Plan:
    place = submission.place if submission else sets[0].place
    return guarded(
        place.label or ".",
        "looking for its usage and round",
        lambda: _plan_sets(sets, choice, submission),
        lambda finding: Plan(submission, (), None, None, "", (), finding),
    )


def _plan_sets(
    sets: tuple[ResultSet, ...], choice: Choice, submission: Submission | None = None
) -> Plan:
    places = [place for files in sets for place in files.logs]
    inferred = None if choice.usage else _infer_usage(sets, choice.round)
    usage = choice.usage or (inferred.usage if inferred else TRAINING)
    round_ = choice.round
    if round_ is None and places:
        round_ = _latest_round(places, usage)
    if round_ and inferred and usage != TRAINING:
        round_ = round_.of_usage(inferred)
    choice = Choice(usage, round_)
    train_samples = any(TRAIN_SAMPLES & files.flags for files in sets)
    logs = tuple(_log_file(place, choice, train_samples=train_samples) for place in places)
    name, reason = (round_.name, round_.reason) if round_ else (None, "")
    return Plan(submission, sets, usage, name, reason, logs)


def _log_file(place: Place, choice: Choice, *, train_samples: bool = False) -> LogFile:
    source, usage, round_ = place.source, choice.usage, choice.round
    if round_ is None:
        return LogFile(source, usage, None, train_samples)
    return LogFile(source, usage, round_.name, train_samples, round_.reason, round_.sureness)


def _infer_usage(sets: Sequence[ResultSet], choice: RoundChoice | None) -> BenchmarkUsage | None:
    """Return the usage by the first log that names a benchmark, or else by the folders."""
    logs = (benchmark_of(LogFile(place.source)) for files in sets for place in files.logs)
    names = chain(logs, (files.benchmark for files in sets))
    round_name = choice.name if choice else None
    usages = (usage_with(name, round_name) for name in names)
    return next(filter(None, usages), None)


def _latest_round(places: Iterable[Place], usage: str) -> RoundChoice:
    """Return the latest round of the logs, as logs of earlier rounds may be submitted again."""
    choices = (infer_round(LogFile(place.source, usage)) for place in places)
    return max(choices, key=lambda choice: choice.precedence)


def choice_for(folder: AnyPath, options: Options) -> Choice:
    """Choose usage and round by the options, or else by the names in the path of a folder.

    ``folder`` must be resolved: a link may be in a folder of another name.
    """
    named = round_of_tree(reversed(folder.parts))
    usage = options.usage or options.config.usage or (named[0] if named else None)
    if options.round:
        return Choice(usage, RoundChoice(options.round))
    if options.config.round:
        return Choice(usage, RoundChoice(options.config.round, f"as {options.origin} says"))
    if named:
        reason = f"from the folder name v{named[1]}"
        return Choice(usage, RoundChoice(named[1], reason, Sureness.NAMED))
    return Choice(usage, None)


def names_of(plans: Iterable[Plan]) -> frozenset[tuple[str, str, str]]:
    """Return the names of all result sets in submissions, each as ``NameInRound``."""
    return frozenset(
        (plan.usage or "", plan.round or "", files.name_of(plan.submission.name))
        for plan in plans
        if plan.submission
        for files in plan.sets
    )


def power_files(plan: Plan) -> Iterator[PowerFile]:
    """Yield the power logs of all result sets."""
    for files in plan.sets:
        if files.power is not None:
            for log in files.logs:
                for path in files.power.log_paths(log.name):
                    yield PowerFile(files.power.place.child(path).source, "/sw_" in path)


def load_rules(plans: Iterable[Plan]) -> None:
    """Load the rules, and whatever else all processes need, before they are forked."""
    import hashlib  # noqa: F401, PLC0415 - slow to import

    benchmarks = {
        (plan.usage, plan.round, files.benchmark)
        for plan in plans
        for files in plan.sets
        if plan.usage and plan.round
    }
    for usage, round_name, benchmark in sorted(benchmarks):
        compile_tables(usage, round_name, benchmark)
        counts_samples(benchmark)
