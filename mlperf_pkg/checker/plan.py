"""Plan a check: which files are read, by the rules of which round."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
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

# ---- planning -----------------------------------------------------------------------------


class Plan(Struct, frozen=True):
    """One submission, or the loose logs of one argument (``submission`` None)."""

    submission: Submission | None
    usage: str
    round: str | None
    reason: str
    logs: tuple[LogFile, ...]


def plans_of(given: Input, options: Options) -> Iterator[Plan]:
    """Plan the check of one input: each submission, and all loose logs together."""
    for submission in given.submissions:
        yield _plan_submission(submission, options)
    if given.logs:
        usage, round_, reason = round_for(given.logs[0].path, options)
        logs = tuple(_log_file(place, usage, round_) for place in given.logs)
        yield Plan(None, usage, round_, reason, logs)


def _plan_submission(submission: Submission, options: Options) -> Plan:
    usage, round_, reason = round_for(submission.place.path, options)
    places = [place for each in submission.result_sets for place in each.logs]
    if round_ is None and places:
        # Logs of earlier rounds may be submitted again: the youngest run tells.
        known = [infer_round(_log_file(place, usage, None)) for place in places]
        round_, reason = max(known, key=lambda pair: version_of(pair[0]))
    train_samples = bool(TRAIN_SAMPLES & submission.flags)
    logs = tuple(_log_file(place, usage, round_, train_samples) for place in places)
    return Plan(submission, usage, round_, reason, logs)


def round_for(path: Path | StoredPath, options: Options) -> tuple[str, str | None, str]:
    """Usage, round and its reason as given, else as the folders above say; None: runs will tell."""
    found = round_of_tree(reversed(path.resolve().parts))
    usage = options.usage or options.config.usage or (found[0] if found else "training")
    if options.round:
        return usage, options.round, "as given"
    if options.config.round:
        return usage, options.config.round, f"as {options.origin} says"
    if found:
        return usage, found[1], f"the tree's name says v{found[1]}"
    return usage, None, ""


def _log_file(place: Place, usage: str, round_: str | None, train_samples: bool = False) -> LogFile:
    return LogFile(place.source, usage, round_, train_samples)


def power_files(plan: Plan) -> Iterator[PowerFile]:
    """List the power measurements of a submission."""
    for each in plan.submission.result_sets if plan.submission else ():
        for log in each.logs if each.power else ():
            for place, switch in each.power.logs(log.name) if each.power else ():
                yield PowerFile(place.source, switch)


def load_rules(plans: Sequence[Plan]) -> None:
    """Once for all processes, where these are forks of this one."""
    for plan in plans:
        if plan.round and plan.submission:
            for name in {files.benchmark for files in plan.submission.result_sets}:
                load_benchmark(plan.usage, plan.round, name)
