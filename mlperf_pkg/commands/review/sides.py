"""The two sides of a comparison of rounds: folders or rounds of the published results."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path

from msgspec import Struct

from mlperf_pkg.checker.check import check
from mlperf_pkg.checker.values import Checked, Options
from mlperf_pkg.checks.described import as_published
from mlperf_pkg.checks.systems import SystemFile
from mlperf_pkg.errors import UserError
from mlperf_pkg.findings import Verdict
from mlperf_pkg.infra.source import Source
from mlperf_pkg.published.model import PublishedSet, comparable, digests_of, log_hash
from mlperf_pkg.published.results import published_results, usable_results
from mlperf_pkg.rulebook.model import is_round_name, version_of
from mlperf_pkg.rulebook.rounds import TRAINING, round_of_tree


class Entry(Struct, frozen=True, dict=True):
    """A result set of a side: its published fields, or those that would be published.

    ``logs`` are the hashes of its logs. Only a folder has the rest: the ``fingerprints`` of runs,
    the whole ``system`` and whether the logs pass the ``official`` checker of their round.
    """

    row: PublishedSet
    logs: tuple[int, ...]
    fingerprints: tuple[bytes, ...] = ()
    system: SystemFile | None = None
    official: Verdict | None = None

    @property
    def version(self) -> tuple[int, ...]:
        """The round, as numbers that can be compared."""
        return version_of(self.row.round)

    @property
    def name(self) -> str:
        """The round and the name of the set in it."""
        return f"{self.row.round} {self.row.name}"

    @cached_property
    def keys(self) -> frozenset[Hashable]:
        """The keys that it shares with each set that has one of its runs.

        Rewritten logs have another hash, but the same number of runs and mean.
        """
        minutes = self.row.unscaled_minutes
        mean = () if minutes is None else ((self.row.usage, self.row.runs, comparable(minutes)),)
        return frozenset((*self.logs, *self.fingerprints, *mean))

    def shared(self, other: Entry) -> int:
        """Return the number of its runs in another set: all if both sets have the same mean."""
        common = self.keys & other.keys
        if any(isinstance(key, tuple) for key in common):
            return self.row.runs
        same = sum(log in common for log in self.logs)
        return max(same, sum(fingerprint in common for fingerprint in self.fingerprints))


class Side(Struct, frozen=True):
    """The result sets of one argument; ``name`` is its name in messages."""

    name: str
    entries: tuple[Entry, ...]

    @property
    def newest(self) -> tuple[int, ...]:
        """The newest round, as numbers; empty if there is no result set."""
        return max((entry.version for entry in self.entries), default=())


def read_sides(arguments: Sequence[str], options: Options) -> tuple[Side, Side]:
    """Return the old and the new side; without arguments, both are all published rounds.

    Raises:
        UserError: as ``read_side``, or the new side has no later round.
    """
    if not arguments:
        side = record_side(options.usage or options.config.usage or TRAINING)
        return side, side
    old, new = (read_side(argument, options) for argument in arguments)
    if new.newest <= min(entry.version for entry in old.entries):
        raise UserError(f"{new.name}: not later than {old.name}; expected OLD, then NEW")
    return old, new


def read_side(argument: str, options: Options) -> Side:
    """Return the result sets of a folder or, if there is none, of a published round of that name.

    Raises:
        UserError: as ``check``; it is neither a folder nor a published round.
    """
    if (named := _named(argument)) and not Path(argument).exists():
        usage, round_ = named
        return record_side(usage or options.usage or options.config.usage or TRAINING, round_)
    side = checked_side(argument, check([argument], options))
    if not side.entries:
        raise UserError(f"{argument}: no result set; expected a folder of submissions or a round")
    return side


def _named(argument: str) -> tuple[str | None, str] | None:
    """Return usage and round of an argument that is the name of a round."""
    if is_round_name(argument):
        return None, argument
    return None if "/" in argument else round_of_tree([argument])


def record_side(usage: str, round_: str | None = None) -> Side:
    """Return the published result sets of a round, or of all rounds.

    Raises:
        UserError: no such round was published.
    """
    published = published_results()
    names = [r.name for r in published.provenance.rounds if r.usage == usage]
    if round_ and round_ not in names:
        raise UserError(_unpublished(usage, round_, names))
    hashes = published.hashes()
    entries = (
        Entry(row, hashes[index])
        for index, row in enumerate(published.sets)
        if row.usage == usage and round_ in (None, row.round)
    )
    return Side(f"{round_ or 'all rounds'} (published)", tuple(entries))


def published_before(side: Side) -> tuple[Entry, ...]:
    """Return the published sets of the usages of a side, empty if unreadable (CHECK103)."""
    if usable_results() is None:
        return ()
    usages = sorted({entry.row.usage for entry in side.entries})
    return tuple(entry for usage in usages for entry in record_side(usage).entries)


def _unpublished(usage: str, round_: str, names: list[str]) -> str:
    newest = max(names, key=version_of, default="")
    reason = "no such round was published"
    if newest and version_of(round_) > version_of(newest):
        reason = "newer than the published results of this package"
    return f"{round_}: {reason} ({usage} {', '.join(names)}), and not a folder"


def checked_side(name: str, checked: Checked) -> Side:
    """Return the result sets of a check."""
    return Side(name, tuple(_entries(checked)))


def _entries(checked: Checked) -> Iterator[Entry]:
    sources: Mapping[str, Source] = {
        path: source for context in checked.contexts for path, source in context.sources.items()
    }
    runs = [run.path for context in checked.contexts for run in context.runs]
    digests = digests_of({path: sources[path] for path in runs if path in sources})
    for result, context in zip(checked.sets, checked.contexts, strict=True):
        of_set = [digests[run.path] for run in context.runs if run.path in digests]
        yield Entry(
            row=as_published(result.row, context.runs, context.system),
            logs=tuple(map(log_hash, of_set)),
            fingerprints=tuple(run.fingerprint for run in context.runs if run.fingerprint),
            system=context.system,
            official=result.row.verdict.official,
        )
