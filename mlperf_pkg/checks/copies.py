"""Pairs of result sets with the same runs: which is the original, which the copy."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import combinations

from msgspec import Struct

from mlperf_pkg.checks.consistency import names_of
from mlperf_pkg.checks.context import SetContext
from mlperf_pkg.checks.organisations import are_alike
from mlperf_pkg.checks.shared_runs import Members
from mlperf_pkg.infra.text import letters
from mlperf_pkg.run.model import Run
from mlperf_pkg.submission.model import Place

MAX_TOGETHER = 10  # sets with one run in common that are compared pairwise
_VARIANT = str.maketrans("-+ ", "___")


class Owner(Struct, frozen=True, dict=True):
    """A result set with copied runs, by its index, and what identifies it.

    ``run`` is one of its runs that are in other sets, too.
    """

    index: int
    context: SetContext
    run: Run

    @cached_property
    def tree(self) -> Place:
        """The folder of its submission."""
        return self.context.tree

    @cached_property
    def submitter(self) -> str:
        """The name of the folder of its submission."""
        return self.context.submitter or self.tree.name

    @property
    def benchmark(self) -> str:
        """The benchmark of its folder."""
        return self.context.files.benchmark

    @property
    def round(self) -> tuple[str, str]:
        """The usage and the name of its round."""
        return self.context.round.usage, self.context.round.name

    @property
    def identity(self) -> tuple[Hashable, ...]:
        """The names that no other set of a tree shares."""
        files = self.context.files
        return (*self.round, self.submitter, files.system, files.scaling_mode, files.benchmark)

    @cached_property
    def names(self) -> set[str]:
        """The names of its system, in letters and digits."""
        system = self.context.system
        return names_of(system) if system else {letters(self.context.files.system or "")}

    @cached_property
    def rank(self) -> tuple[Hashable, ...]:
        """The sort key of originals: the round, whether the logs name the set, the path."""
        organisation, platform = self.run.text("org"), letters(self.run.text("platform"))
        is_foreign = not (organisation and are_alike(organisation, self.submitter))
        is_of_other_system = platform not in self.names
        return (self.context.round.version, is_foreign, is_of_other_system, self.context.path)

    def has_submitter_of(self, other: Owner) -> bool:
        """Return whether both have the same submitter, perhaps with variants of its name."""
        return is_same_submitter(self.submitter, other.submitter)

    def has_system_of(self, other: Owner) -> bool:
        """Return whether the systems of both have the same id or the same name."""
        return not self.names.isdisjoint(other.names)


def is_same_submitter(name: str, other: str) -> bool:
    """Return whether the names of two submissions are variants of each other."""
    first, second = (text.lower().translate(_VARIANT) for text in (name, other))
    return first.split("_")[0] == second.split("_")[0] or are_alike(first, second)


class Pair(Struct):
    """Two result sets with the same runs.

    ``runs`` maps the paths of the runs in the copy to those in the original; ``identical`` of them
    have the same bytes. ``others`` is the number of further sets with one of these runs, if they
    are only compared with the original.
    """

    original: Owner
    copy: Owner
    runs: dict[str, str]
    identical: int = 0
    others: int = 0


def pairs_of(
    contexts: Sequence[SetContext], groups: Sequence[Members], digests: Mapping[str, bytes]
) -> list[Pair]:
    """Return the pairs of sets in these groups; ``digests`` are those of the logs, by path.

    If more than ``MAX_TOGETHER`` sets have a run in common, all are only paired with the first, so
    that the number of pairs is in proportion to that of the runs.
    """
    owners = {
        index: Owner(index, contexts[index], runs[0])
        for members in groups
        for index, runs in members.items()
    }
    pairs: dict[tuple[int, int], Pair] = {}
    for members in _of_one_run(groups, digests):
        order = sorted(members, key=lambda index: owners[index].rank)
        is_star = len(order) > MAX_TOGETHER
        for first, second in _star(order) if is_star else combinations(order, 2):
            pair = pairs.setdefault((first, second), Pair(owners[first], owners[second], {}))
            pair.others = max(pair.others, is_star * (len(order) - 2))
            _add(pair, members[first][0], members[second], digests)
    return list(pairs.values())


def _of_one_run(groups: Sequence[Members], digests: Mapping[str, bytes]) -> Iterator[Members]:
    """Split the groups into those of a single run."""
    for members in groups:
        if next(iter(members.values()))[0].fingerprint is not None:
            yield members
            continue
        by_digest: dict[bytes, Members] = {}
        for index, runs in members.items():
            for run in runs:
                if digest := digests.get(run.path):
                    by_digest.setdefault(digest, {}).setdefault(index, []).append(run)
        yield from (same for same in by_digest.values() if len(same) > 1)


def _star(order: Sequence[int]) -> Iterator[tuple[int, int]]:
    return ((order[0], other) for other in order[1:])


def _add(pair: Pair, original: Run, runs: Sequence[Run], digests: Mapping[str, bytes]) -> None:
    digest = digests.get(original.path)
    for run in runs:
        pair.runs[run.path] = original.path
        pair.identical += digest is not None and digest == digests.get(run.path)
