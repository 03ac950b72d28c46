"""The files that one run wrote, outside of a submission: copies, and logs of other processes.

The most complete file counts; the others are named, and nothing else is said of them.
"""

from collections.abc import Collection, Iterable, Iterator
from itertools import chain

from msgspec.structs import replace

from mlperf_pkg.checks.context import SetContext
from mlperf_pkg.findings import Basis, Finding, Verdict
from mlperf_pkg.log.record import TOGETHER_MS
from mlperf_pkg.results.wording import shortened
from mlperf_pkg.run.model import Run
from mlperf_pkg.run.relations import RunRelation, relation_of


def with_each_run_once(
    contexts: Iterable[SetContext], runs: Collection[Run]
) -> Iterator[SetContext]:
    """Yield sets of raw logs with one log of each run, and with the others of its ``repeats``.

    ``runs`` are all raw logs. One that names no benchmark may be the log of another process.
    """
    unnamed = [run for run in runs if not run.benchmark]
    for context in contexts:
        counted: dict[int, list[Run]] = {}  # by the second in which they started
        repeats: dict[str, RunRelation] = {}
        for run in (*sorted(context.runs, key=_incompleteness), *unnamed):
            seconds = _seconds_near(run)
            others = chain.from_iterable([counted.get(second, ()) for second in seconds])
            relations = [_relation(run, other, is_weak=context.weak) for other in others]
            relation = next(filter(None, relations), None)
            if relation:
                repeats[run.path] = relation
            elif run.benchmark and seconds:
                counted.setdefault(seconds[0], []).append(run)
        kept = tuple(run for run in context.runs if run.path not in repeats)
        yield replace(context, runs=kept, repeats=repeats)


def _seconds_near(run: Run) -> tuple[int, ...]:
    """Return the second in which a run started and those beside it; nothing without a start."""
    if run.start_ms is None:
        return ()
    second = int(run.start_ms // TOGETHER_MS)
    return (second, second - 1, second + 1)


def _incompleteness(run: Run) -> tuple[bool, bool, int, int]:
    """Return the key by which the most complete log of a run is the first."""
    failures = sum(finding.fails(Basis.RULES) for finding in run.findings)
    rejected = run.verdicts.official is Verdict.FAIL
    return (run.stop_ms is None, rejected, failures, -run.records)


def _relation(run: Run, other: Run, *, is_weak: bool) -> RunRelation | None:
    """Return what a log is to a run that is the same one and whose log is as complete.

    In weak scaling, where many models are trained at once, equal times alone mean nothing.
    """
    if not _is_near(run.start_ms, other.start_ms):
        return None
    relation = relation_of(run, other)
    if relation and relation.is_one_run:
        return relation
    if relation or is_weak or not set(run.evaluated) <= set(other.evaluated):
        return None
    is_cut_off = run.stop_ms is None and len(run.evaluated) > 0
    if not (is_cut_off or not run.benchmark or _is_near(run.stop_ms, other.stop_ms)):
        return None
    has_equal_stamps = is_cut_off and set(run.evaluated_ms) <= set(other.evaluated_ms)
    return RunRelation.COPY if has_equal_stamps else RunRelation.PROCESSES


def _is_near(time_ms: float | None, other_ms: float | None) -> bool:
    if time_ms is None or other_ms is None:
        return False
    return abs(time_ms - other_ms) <= TOGETHER_MS


_ONE = {
    RunRelation.COPY: "1 log ({found:s}) is a copy of another log; the run counts once",
    RunRelation.PROCESSES: (
        "1 log ({found:s}) was written by another process of the same run; the run counts once"
    ),
}
_SEVERAL = {
    RunRelation.COPY: "{} logs ({}) are copies of other logs; each run counts once",
    RunRelation.PROCESSES: (
        "{} logs ({}) were written by other processes of the same runs; each run counts once"
    ),
}
_NAMED = 3  # logs in a message


def check_one_run(context: SetContext) -> Iterator[Finding]:
    """Name the logs of a raw set that do not count, as another log of their run does."""
    for relation, message in _SEVERAL.items():
        paths = sorted(path for path, other in context.repeats.items() if other is relation)
        if len(paths) == 1:
            yield context.finding("RAW102", _ONE[relation], found=paths)
        elif paths:
            text = message.format(len(paths), shortened(paths, _NAMED))
            yield context.finding("RAW102", text, found=paths)
