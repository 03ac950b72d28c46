"""Plan a check: which files are read, by the rules of which round."""

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain, pairwise
from operator import attrgetter
from pathlib import Path
from typing import TypeVar

from msgspec import Struct, field
from msgspec.structs import replace

from mlperf_pkg.checker.reading import guarded
from mlperf_pkg.checker.values import Options
from mlperf_pkg.findings import Unchecked
from mlperf_pkg.infra.paths import AnyPath
from mlperf_pkg.infra.source import Source
from mlperf_pkg.rulebook import rounds
from mlperf_pkg.rulebook.documents import rounds as rounds_of
from mlperf_pkg.rulebook.load import counts_samples
from mlperf_pkg.rulebook.table import compile_tables
from mlperf_pkg.run.model import LogFile, benchmark_of, infer_round
from mlperf_pkg.run.power import PowerFile
from mlperf_pkg.submission.model import (
    TRAIN_SAMPLES,
    Input,
    Place,
    ResultSet,
    Submission,
    Workspace,
)


class Plan(Struct, frozen=True):
    """The logs of one submission, of result sets outside one, or raw logs, and their round.

    ``submission`` is None for the other two; raw logs do not have ``sets`` either. Raw logs of a
    ``workspace`` have one round; each other raw log has its own usage, round and reason. Otherwise,
    ``round`` is None only without logs; ``reason`` says how it was chosen. ``raw`` maps paths to
    the files of raw logs, ``files`` are the paths of those that are arguments themselves, and
    ``flags`` apply to raw logs. A plan that could not be made has only the finding ``unchecked``.
    """

    submission: Submission | None
    sets: tuple[ResultSet, ...]
    usage: str | None
    round: str | None
    reason: str
    logs: tuple[LogFile, ...]
    unchecked: Unchecked | None = None
    flags: frozenset[str] = frozenset()
    workspace: Workspace | None = None
    raw: Mapping[str, Place] = field(default_factory=dict)
    files: frozenset[str] = frozenset()

    @property
    def label(self) -> str | None:
        """The path of the submission; None if there is none."""
        return self.submission.place.label if self.submission else None

    @property
    def sources(self) -> dict[str, Source]:
        """The logs by path."""
        return {log.source.label: log.source for log in self.logs}


class Choice(Struct, frozen=True):
    """A usage and a round; None where the logs are to decide."""

    usage: str | None
    round: rounds.RoundChoice | None

    @property
    def named(self) -> tuple[str | None, str | None, str]:
        """The usage, the name of the round, and the reason for it."""
        round_ = self.round
        return self.usage, round_.name if round_ else None, round_.reason if round_ else ""


def plans_of(inputs: Sequence[Input], options: Options) -> Iterator[Plan]:
    """Plan the check of all inputs: each submission, result sets outside one, and raw logs.

    Result sets outside a submission are planned together with others of that submission. Raw logs
    are planned by workspace, as the logs of one result set may be in several inputs.
    """
    by_folder: dict[AnyPath, list[Submission]] = {}
    for submission in chain.from_iterable(input_.submissions for input_ in inputs):
        by_folder.setdefault(submission.place.path.parent, []).append(submission)
    for submissions in by_folder.values():
        plans = [
            _guarded_plan(item.result_sets, choice_for(item.place.path, options), item)
            for item in submissions
        ]
        yield from (_of_one_round(plan, plans) for plan in plans)
    by_tree: dict[Place, dict[str, ResultSet]] = {}
    for files in chain.from_iterable(input_.result_sets for input_ in inputs):
        by_tree.setdefault(files.tree or files.place, {})[files.place.label] = files
    for tree, sets in by_tree.items():
        yield _guarded_plan(tuple(sets.values()), choice_for(tree.path, options))
    raw: dict[Path | None, list[Input]] = {}
    for input_ in filter(attrgetter("logs"), inputs):
        folder = input_.workspace.folder.resolve() if input_.workspace else None
        raw.setdefault(folder, []).append(input_)
    yield from (_plan_raw_logs(of_workspace, options) for of_workspace in raw.values())


def _of_one_round(plan: Plan, plans: Sequence[Plan]) -> Plan:
    """Return a plan; of the next round if most submissions of the folder are of that round.

    A submission may consist of logs that were submitted to the previous round as well.
    """
    others = (o.logs[0].choice for o in plans if o.usage == plan.usage and o.logs)
    inferred = [c for c in others if c and c.sureness is rounds.Sureness.INFERRED]
    numbers = Counter(choice.name for choice in inferred)
    for name, later in pairwise(rounds_of(plan.usage) if plan.usage else ()):
        if name == plan.round and numbers[later] > numbers[name] > 0:
            choice = next(choice for choice in inferred if choice.name == later)
            return _guarded_plan(plan.sets, Choice(plan.usage, choice), plan.submission)
    return plan


def _plan_raw_logs(inputs: Sequence[Input], options: Options) -> Plan:
    raw = {log.label: log for input_ in inputs for log in input_.logs}
    files = {log.label for input_ in inputs if input_.is_file for log in input_.logs}
    workspace = inputs[0].workspace
    if workspace and options.named:
        workspace = replace(workspace, config=options.config)
    elif workspace:
        options = _with_settings(options, workspace)
    folders = {place.folder for place in raw.values()}
    choices = {folder: choice_for(folder.path, options) for folder in folders}
    choice = Choice(None, None)
    if workspace:
        named = set(choices.values())
        choice = named.pop() if len(named) == 1 else Choice(options.usage, None)
        choice = _choice_of_logs(tuple(raw.values()), (), choice)
        choices = dict.fromkeys(folders, choice)
    samples = bool(TRAIN_SAMPLES & options.flags)
    logs = tuple(_log_file(p, choices[p.folder], train_samples=samples) for p in raw.values())
    plan = Plan(None, (), *choice.named, logs, flags=options.flags, workspace=workspace)
    return replace(plan, raw=raw, files=frozenset(files))


def _with_settings(options: Options, workspace: Workspace) -> Options:
    """Return the options; those without usage or round get that of the workspace."""
    config = options.config
    usage = config.usage or workspace.config.usage
    round_ = config.round or workspace.config.round
    origin = options.origin if config.round else workspace.origin
    return replace(options, config=replace(config, usage=usage, round=round_), origin=origin)


def _guarded_plan(
    sets: tuple[ResultSet, ...], choice: Choice, submission: Submission | None = None
) -> Plan:
    place = submission.place if submission else sets[0].place
    action = "looking for its usage and round"
    plan = guarded(place.label or ".", action, _plan_sets, sets, choice, submission)
    return plan if isinstance(plan, Plan) else Plan(submission, (), None, None, "", (), plan)


def _plan_sets(
    sets: tuple[ResultSet, ...], choice: Choice, submission: Submission | None = None
) -> Plan:
    places = [place for files in sets for place in files.logs]
    choice = _choice_of_logs(places, [files.benchmark for files in sets], choice)
    train_samples = any(TRAIN_SAMPLES & files.flags for files in sets)
    logs = tuple(_log_file(place, choice, train_samples=train_samples) for place in places)
    return Plan(submission, sets, *choice.named, logs)


def _choice_of_logs(places: Sequence[Place], benchmarks: Sequence[str], choice: Choice) -> Choice:
    """Return one usage and round for all logs; infer from the logs what the options do not set."""
    round_ = choice.round
    inferred = None
    benchmark = ""
    if not choice.usage:  # by the first log that names a benchmark, or else by the folders
        names = chain(_of_logs(benchmark_of, places), benchmarks)
        pairs = ((rounds.usage_with(n, round_.name if round_ else None), n) for n in names)
        inferred, benchmark = next((pair for pair in pairs if pair[0]), (None, ""))
    usage = choice.usage or inferred or rounds.TRAINING
    if round_ is None and places:  # the latest one, as earlier logs may be submitted again
        choices = list(_of_logs(infer_round, places, usage)) or [rounds.round_of_run(usage, 0, "")]
        round_ = max(choices, key=attrgetter("precedence"))
    if round_ and inferred and usage != rounds.TRAINING:
        round_ = round_.of_usage(inferred, benchmark)
    return Choice(usage, round_)


def _log_file(place: Place, choice: Choice, *, train_samples: bool = False) -> LogFile:
    source = place.source
    usage = choice.usage
    round_ = choice.round
    if round_ is None:
        return LogFile(source, usage, None, train_samples)
    return LogFile(source, usage, round_.name, train_samples, round_.reason, round_.sureness)


_Value = TypeVar("_Value")


def _of_logs(
    function: Callable[[LogFile], _Value], places: Iterable[Place], usage: str | None = None
) -> Iterator[_Value]:
    """Yield what a function returns for each log; those that cannot be read are reported later."""
    for place in places:
        with suppress(OSError):
            yield function(LogFile(place.source, usage))


def choice_for(folder: AnyPath, options: Options) -> Choice:
    """Choose usage and round by the options, or else by the names in the path of a folder."""
    named = rounds.round_of_tree(_names(folder))
    usage = options.usage or options.config.usage or (named[0] if named else None)
    choice = None
    if options.round:
        choice = rounds.RoundChoice(options.round)
    elif options.config.round:
        choice = rounds.RoundChoice(options.config.round, f"as {options.origin} says")
    elif named:
        reason = f"from the folder name v{named[1]}"
        choice = rounds.RoundChoice(named[1], reason, rounds.Sureness.NAMED)
    return Choice(usage, choice)


def _names(folder: AnyPath) -> Iterator[str]:
    """Yield the names of a folder and those around it; after a link those of where it leads."""
    if not isinstance(folder, Path):
        yield from reversed(folder.parts)
        return
    path = Path(os.path.abspath(folder))  # noqa: PTH100 - resolve() would follow links
    while path.name:
        yield path.name
        path = path.resolve() if path.is_symlink() else path.parent


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

    in_round = ((p.usage, p.round, p.sets) for p in plans if p.usage and p.round)
    benchmarks = {(usage, name, s.benchmark) for usage, name, sets in in_round for s in sets}
    for usage, round_name, benchmark in sorted(benchmarks):
        compile_tables(usage, round_name, benchmark)
        counts_samples(benchmark)
