"""Plan a check: which files are read, by the rules of which round."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from msgspec import Struct

from mlperf_pkg.checker.values import Options
from mlperf_pkg.infra.stores import StoredPath
from mlperf_pkg.rulebook.load import load_benchmark
from mlperf_pkg.rulebook.model import version_of
from mlperf_pkg.rulebook.rounds import round_of_tree
from mlperf_pkg.run.identity import infer_round
from mlperf_pkg.run.model import LogFile
from mlperf_pkg.run.power import PowerFile
from mlperf_pkg.submission.model import Input, Place, Submission
from mlperf_pkg.submission.params import TRAIN_SAMPLES


class Plan(Struct, frozen=True):
    """The logs of one submission, or the loose logs of one argument, and their round.

    ``submission`` is None for loose logs. ``round`` is None if each log decides about its own, or
    if there is no log; ``reason`` says how it was chosen.
    """

    submission: Submission | None
    usage: str
    round: str | None
    reason: str
    logs: tuple[LogFile, ...]


class RoundChoice(Struct, frozen=True):
    """A usage, and a round with the reason for it; None if the logs are to decide."""

    usage: str
    round: str | None
    reason: str


def plans_of(input_: Input, options: Options) -> Iterator[Plan]:
    """Plan the check of one input: each submission, and all loose logs together."""
    for submission in input_.submissions:
        yield _plan_submission(submission, options)
    if input_.logs:
        choice = round_for(input_.logs[0].path, options)
        logs = tuple(LogFile(place.source, choice.usage, choice.round) for place in input_.logs)
        yield Plan(None, choice.usage, choice.round, choice.reason, logs)


def _plan_submission(submission: Submission, options: Options) -> Plan:
    choice = round_for(submission.place.path, options)
    usage, round_, reason = choice.usage, choice.round, choice.reason
    places = [place for files in submission.result_sets for place in files.logs]
    if round_ is None and places:
        round_, reason = _latest_round(places, usage)
    train_samples = bool(TRAIN_SAMPLES & submission.flags)
    logs = tuple(LogFile(place.source, usage, round_, train_samples) for place in places)
    return Plan(submission, usage, round_, reason, logs)


def _latest_round(places: Iterable[Place], usage: str) -> tuple[str, str]:
    """Return the latest round of the logs, as logs of earlier rounds may be submitted again."""
    rounds = [infer_round(LogFile(place.source, usage)) for place in places]
    return max(rounds, key=lambda choice: version_of(choice[0]))


def round_for(path: Path | StoredPath, options: Options) -> RoundChoice:
    """Choose usage and round by the options, or else by the names of the folders above."""
    of_tree = round_of_tree(reversed(path.resolve().parts))
    usage = options.usage or options.config.usage or (of_tree[0] if of_tree else "training")
    if options.round:
        return RoundChoice(usage, options.round, "as given")
    if options.config.round:
        return RoundChoice(usage, options.config.round, f"as {options.origin} says")
    if of_tree:
        return RoundChoice(usage, of_tree[1], f"the tree's name says v{of_tree[1]}")
    return RoundChoice(usage, None, "")


def power_files(plans: Iterable[Plan]) -> Iterator[PowerFile]:
    """Yield the power logs of all submissions."""
    for plan in plans:
        for files in plan.submission.result_sets if plan.submission else ():
            if files.power is not None:
                for log in files.logs:
                    for place, switch in files.power.logs(log.name):
                        yield PowerFile(place.source, switch)


def load_rules(plans: Iterable[Plan]) -> None:
    """Load the rules once, before processes are forked."""
    for plan in plans:
        if plan.round and plan.submission:
            for name in {files.benchmark for files in plan.submission.result_sets}:
                load_benchmark(plan.usage, plan.round, name)
