"""Records that are logged later, or earlier, than the rules allow."""

from msgspec import Struct

from mlperf_pkg.log.record import Record
from mlperf_pkg.rulebook.constraints import Breach
from mlperf_pkg.rulebook.formula import LoggedKey, Seen
from mlperf_pkg.rulebook.model import Rule
from mlperf_pkg.rulebook.table import CompiledRule
from mlperf_pkg.run.targets import Targets

_CLOCKS_MS = 1000.0  # by which the clocks of the processes of a run may differ
_MOST_MS = 3e10  # a year; times farther apart are of different units, or have a digit too many


class Shift(Struct, frozen=True):
    """By how much a record is logged ``after`` or ``before`` an event, which is the wrong side.

    ``milliseconds`` is None where one of the times is impossible, so that only the order of the
    records says so.
    """

    side: str
    event: str
    milliseconds: float | None


def late_start(rule: Rule, logged: LoggedKey, seen: Seen) -> Shift | None:
    """Return how much later a key starts than the first of the keys ``no_later_than``.

    If only one of the times is possible, the order of the records decides.
    """
    late_ms: dict[str, float] = {}
    is_in_time = True
    for key in rule.no_later_than:
        if key in seen:
            late_ms[key] = logged.earliest_ms - seen[key].earliest_ms
            is_in_time = is_in_time and -_MOST_MS < late_ms[key] <= _CLOCKS_MS
    if is_in_time:  # nearly always, and fast
        return None
    possible = [key for key in late_ms if abs(late_ms[key]) < _MOST_MS]
    earliest = max(possible or late_ms, key=late_ms.__getitem__)
    if possible and late_ms[earliest] > _CLOCKS_MS:
        return Shift("after", earliest, late_ms[earliest])
    if not possible and logged.first_number > seen[earliest].first_number:
        return Shift("after", earliest, None)
    return None


def early_stop(logged: LoggedKey, targets: Targets, seen: Seen) -> Shift | None:
    """Return how much earlier a key is logged than the first evaluation that reached the target.

    There is no tolerance for clocks if the evaluation is logged after the stop, too.
    """
    if targets.reached_ms is None:
        return None
    early_ms = targets.reached_ms - logged.earliest_ms
    allowed_ms = 0.0 if targets.reached_late else _CLOCKS_MS
    start = seen.get("run_start")
    is_backwards = start is not None and logged.earliest_ms < start.earliest_ms  # RUN155
    if early_ms > allowed_ms and not is_backwards:
        return Shift("before", "the evaluation that reached the target", early_ms)
    return None


class Misplaced(Struct, frozen=True):
    """A record that is in the wrong place of its file, by its ``number`` in the log."""

    compiled: CompiledRule
    record: Record
    number: int
    breach: Breach


def is_in_time(misplaced: Misplaced, seen: Seen) -> bool:
    """Return whether the times of a record and of the keys around it are in the right order."""
    time_ms = misplaced.record.time_ms
    for check in misplaced.compiled.checks:
        if not check.is_order:
            continue
        for key in check.argument:
            if check.is_after and (key not in seen or seen[key].earliest_ms > time_ms):
                return False
            if not check.is_after and key in seen and seen[key].earliest_ms < time_ms:
                return False
    return True


# ---- an initialisation that begins after its work -----------------------------------------

_WORK_MS = 120_000.0  # before init_start; in published logs, no setting is 40 seconds before it
_HEAD_MS = 600_000.0  # the same of other records, which are up to 377 seconds before it
_NO_WORK = frozenset({"cache_clear", "init_stop", "status"})
_CLOCK = frozenset({"run_start", "run_stop"})  # for which other rules say when they are logged


def early_work(seen: Seen) -> tuple[str, float] | None:
    """Return a key whose record shows that work began before ``init_start``, and by how many ms.

    That is a setting or weight minutes before it, or any record ten minutes before it. Times of 0
    and those of a clock that is years off do not count.
    """
    if "init_start" not in seen:
        return None
    start_ms = seen["init_start"].earliest_ms
    if start_ms - min([logged.earliest_ms for logged in seen.values()]) <= _WORK_MS:
        return None  # nearly always, and fast
    for key, logged in sorted(seen.items(), key=lambda item: item[1].first_number):
        early_ms = start_ms - logged.earliest_ms
        if not _WORK_MS < early_ms < _MOST_MS or logged.earliest_ms <= 0 or key in _CLOCK:
            continue
        is_work = not key.startswith("submission_") and key not in _NO_WORK
        if is_work or early_ms > _HEAD_MS:
            return key, early_ms
    return None
