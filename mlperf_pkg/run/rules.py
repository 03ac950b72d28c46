"""The rules of a run, checked block by block and at the end of its log.

``record_rules`` checks one record, ``conclusions`` the whole log.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from mlperf_pkg.findings import Finding
from mlperf_pkg.log.block import Block
from mlperf_pkg.log.same_key import Group
from mlperf_pkg.rulebook.constraints import Part
from mlperf_pkg.rulebook.logged import LATEST_MS, Seen
from mlperf_pkg.rulebook.table import Check, CompiledRule, RuleTable
from mlperf_pkg.run.conclusions import Conclusions
from mlperf_pkg.run.record_rules import RecordRules, Taker
from mlperf_pkg.run.rule_findings import RuleFindings

_SMALLEST_GROUP = 4  # records, at least 2; fewer are not slower one by one


class _Step(NamedTuple):
    """A step to take before the record at index ``at`` of the block.

    If ``row`` has indexes, the step checks these records of ``key`` as a row; otherwise it sets
    the earliest time of ``key``, which a record of a group lowers.
    """

    at: int
    key: str
    row: list[int]
    earliest_ms: float = 0.0


class RuleChecker:
    """Follows the records of one log; ``report`` receives each broken rule.

    ``line_of`` returns the line of a record by its number in the log.
    """

    def __init__(
        self,
        table: RuleTable,
        path: str,
        report: Callable[[Finding], None],
        line_of: Callable[[int], int],
    ) -> None:
        """Start at the head of the log ``path``."""
        self._table = table
        self._order = table.order
        self._findings = RuleFindings(path, report, line_of)
        self._records = RecordRules(table, self._findings)
        self._evidence = self._records.evidence
        self._seen = self._evidence.seen

    @property
    def followed(self) -> frozenset[str]:
        """The keys that the rules follow."""
        return self._order.followed

    @property
    def seen(self) -> Seen:
        """The records so far, by key, of the keys that the rules follow."""
        return self._seen

    @property
    def crash(self) -> str | None:
        """Why the official checker crashes on this log; None if no rule is the reason."""
        return self._evidence.crash

    @property
    def reached(self) -> bool | None:
        """Whether some record met each target; None if there are no targets."""
        codes = [rule.rule.code for rule in self._table.concluded if rule.reaches]
        return self.crash is None and self._evidence.met.issuperset(codes) if codes else None

    def take(self, block: Block, others: Mapping[str, Taker]) -> None:
        """Take the next records, in order; ``others`` take some of them as well.

        The records of a key whose order does not matter are checked together, which is faster and
        gives the same findings. The findings of a key come in order; all findings of a code are
        of one key.
        """
        in_order, steps, groups = self._split(block, others)
        records = block.select(in_order)
        numbers = [block.first + index for index in in_order]
        start = 0
        for at, key, row, earliest_ms in sorted(steps):
            stop = bisect_left(in_order, at, start)
            end = stop + len(row)
            if in_order[stop:end] != row:
                continue  # others come between these records
            self._records.take(records[start:stop], numbers[start:stop], others)
            if row:
                self._records.take_row(records[stop:end], numbers[stop:end])
            else:
                self._seen[key].earliest_ms = earliest_ms
            start = end
        self._records.take(records[start:], numbers[start:], others)
        for key, indexes in groups.items():
            self._take_group(key, indexes, block)

    def finish(self, *, success: bool, unofficial: Iterable[str]) -> None:
        """Check what depends on the whole log.

        ``success`` is the status in ``run_stop``; ``unofficial`` are keys of records that the log
        holds but that the official parser does not read. Findings are now ``Pending``, unless no
        later record could have prevented them.
        """
        self._findings.ended = True
        self._records.take_joined()
        joined = self._table.joined
        conclusions = Conclusions(self._evidence, self._findings, frozenset(unofficial))
        for refusal in self._evidence.refusals:
            of_joined = joined is not None and refusal.compiled.rule.key == joined.key
            conclusions.refuse(refusal, settled=not of_joined)
        conclusions.count(self._table)
        conclusions.conclude(self._table, success=success)

    # ---- records of one key, checked together ---------------------------------------------

    def _split(
        self, block: Block, others: Mapping[str, Taker]
    ) -> tuple[list[int], list[_Step], dict[str, list[int]]]:
        """Return the indexes to take in order, the steps between them, and the groups by key."""
        order, followed = self._order, self._order.followed
        in_order: list[int] = []
        steps: list[_Step] = []
        groups: dict[str, list[int]] = {}
        for key, indexes in block.indexes.items():
            if len(indexes) < _SMALLEST_GROUP or key in others:  # nearly all keys
                if key in followed or key in others:
                    in_order += indexes
                continue
            count = 0 if key in self._seen else 1
            if key in order.together:
                in_order += indexes[:count]
                groups[key] = indexes[count:]
                steps += self._earlier(key, indexes, block)
            elif key in order.one_by_one:
                in_order += indexes
                if key in order.in_rows:
                    steps.append(_Step(indexes[count], key, indexes[count:]))
        in_order.sort()
        return in_order, steps, groups

    def _earlier(self, key: str, indexes: Sequence[int], block: Block) -> Iterator[_Step]:
        """Yield the records of a key that lower its earliest time, if a rule needs that."""
        if key not in self._order.timed:
            return
        times = block.times(indexes)
        logged = self._seen.get(key)
        earliest = logged.earliest_ms if logged else min(LATEST_MS, times[0])
        if min(times) >= earliest:
            return
        for index, time_ms in zip(indexes, times, strict=True):
            if time_ms < earliest:
                earliest = time_ms
                yield _Step(index, key, [], time_ms)

    def _take_group(self, key: str, indexes: Sequence[int], block: Block) -> None:
        if rules := self._order.together[key]:
            group = Group(indexes, block)
            if broken := [compiled for compiled in rules if not self._all_hold(compiled, group)]:
                self._check_one_by_one(broken, indexes, block)
        self._seen[key].add_together(len(indexes), block.first + indexes[-1])

    def _check_one_by_one(
        self, rules: Sequence[CompiledRule], indexes: Sequence[int], block: Block
    ) -> None:
        for index, record in zip(indexes, block.select(indexes), strict=True):
            number = block.first + index
            before = self._seen_before(number)
            for compiled in rules:
                self._records.check(compiled, record, number, before)

    def _all_hold(self, compiled: CompiledRule, group: Group) -> bool:
        """Return whether no record of a group breaks a rule; False if the group cannot show it."""
        try:
            for check in compiled.checks:
                if not self._holds(check, group):
                    return False
            if compiled.of_metadata and not group.metadata_passes(
                compiled.of_metadata, compiled.names
            ):
                return False
            if compiled.rule.tensors is not None:
                self._evidence.tensors.add(group.tensors())
        except Exception:  # noqa: BLE001 - as officially, what cannot be compared fails
            return False
        return True

    def _holds(self, check: Check, group: Group) -> bool:
        """Return whether a check holds for every record of a group; metadata is left out."""
        if check.name == "after":  # a key before the first record is before all
            return all(self._was_before(key, group.first) for key in check.argument)
        if check.name == "before":
            return not any(self._was_before(key, group.last) for key in check.argument)
        return check.constraint.part is not Part.VALUE or all(map(check.holds, group.values))

    def _was_before(self, key: str, number: int) -> bool:
        return key in self._seen and self._seen[key].first_number < number

    def _seen_before(self, number: int) -> Seen:
        """Return the keys logged before a record: all that ``after`` and ``before`` need."""
        return {key: logged for key, logged in self._seen.items() if logged.first_number < number}
