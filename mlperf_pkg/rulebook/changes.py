"""What changes for a submitter between two rounds."""

from collections.abc import Iterable, Iterator, Mapping

from msgspec import Struct
from msgspec.structs import replace

from mlperf_pkg.errors import UserError
from mlperf_pkg.infra.text import did_you_mean
from mlperf_pkg.rulebook import explain
from mlperf_pkg.rulebook.explain import Layer, benchmark_layers, common_layers, loaded, with_basis
from mlperf_pkg.rulebook.load import load_round
from mlperf_pkg.rulebook.model import Benchmark, Round, Rule


class Change(Struct, frozen=True):
    """What a key, or the ``target`` or ``runs`` of a benchmark, required and now requires.

    ``where`` is the layer ("Closed bert"), ``benchmark`` its benchmark if any. ``old`` is empty for
    a new key, ``new`` for a removed one. ``codes`` are those of the rules that changed.
    """

    where: str
    benchmark: str
    key: str
    codes: tuple[str, ...]
    old: tuple[str, ...]
    new: tuple[str, ...]


class Comparison(Struct, frozen=True):
    """Two rounds of a usage: benchmarks removed or added, and changes in those that stay.

    ``renamed`` has pairs of an old and a new name; ``unchanged`` are benchmarks whose own rules did
    not change. The list of benchmarks in the rule of ``submission_benchmark`` is left out.
    """

    usage: str
    old: Round
    new: Round
    gone: tuple[str, ...]
    added: tuple[Benchmark, ...]
    renamed: tuple[tuple[str, str], ...]
    changes: tuple[Change, ...]
    unchanged: tuple[str, ...]

    @property
    def pairs(self) -> Iterator[tuple[Benchmark | None, Benchmark]]:
        """The benchmarks that stay, before and after, and the new ones after None."""
        names = {new: old for old, new in self.renamed}
        staying = {*self.unchanged, *(change.benchmark for change in self.changes)} - {""}
        for name in sorted(staying):
            yield loaded(self.old, names.get(name, name)), loaded(self.new, name)
        yield from ((None, benchmark) for benchmark in self.added)


def compare(
    usage: str, old: str, new: str, benchmark: str | None = None, division: str | None = None
) -> Comparison:
    """Compare two rounds, as a whole or in one benchmark and division.

    Raises:
        UserError: the rulebook has no such round, or neither round has the benchmark.
    """
    before, after = load_round(usage, old), load_round(usage, new)
    names = sorted({*before.benchmarks, *after.benchmarks})
    if benchmark and benchmark not in names:
        meant = f"{', '.join(names)}{did_you_mean(benchmark, names)}"
        rounds = f"neither round {before.name} nor {after.name}"
        raise UserError(f"{rounds} has a benchmark {benchmark!r}: there are {meant}")
    gone = set(before.benchmarks) - set(after.benchmarks)
    added = set(after.benchmarks) - set(before.benchmarks)
    renamed = {one: other for one in gone for other in added if _renamed(before, one, after, other)}
    kept = {name: name for name in before.benchmarks if name in after.benchmarks} | renamed
    new_names = sorted(added - set(renamed.values()))
    pairs = {o: n for o, n in kept.items() if benchmark in (None, o, n)}
    changes = tuple(_changes(before, after, pairs, division))
    touched = {change.benchmark for change in changes}
    return Comparison(
        usage=usage,
        old=before,
        new=after,
        gone=tuple(n for n in sorted(gone - renamed.keys()) if benchmark in (None, n)),
        added=tuple(loaded(after, name) for name in new_names if benchmark in (None, name)),
        renamed=tuple(sorted(pair for pair in renamed.items() if pair[0] in pairs)),
        changes=changes,
        unchanged=tuple(sorted(name for name in pairs.values() if name not in touched)),
    )


def _renamed(before: Round, one: str, after: Round, other: str) -> bool:
    """Return whether one benchmark is the other with a new name: they share codes of rules."""
    old, new = (
        {rule.code for rules in loaded(*pair).sections["open"].values() for rule in rules}
        for pair in ((before, one), (after, other))
    )
    return bool(old & new)


def _changes(
    before: Round, after: Round, pairs: Mapping[str, str], division: str | None
) -> Iterator[Change]:
    was, now = (_without_list(round_, division) for round_ in (before, after))
    yield from _of_layers(was, now)
    for name, new_name in pairs.items():
        old, new = replace(loaded(before, name), name=new_name), loaded(after, new_name)
        if old.target != new.target:
            words = [(explain.target(benchmark),) for benchmark in (old, new)]
            yield Change(new_name, new_name, "target", (), *words)
        if old.runs != new.runs:
            words = [(explain.runs(benchmark.runs),) for benchmark in (old, new)]
            yield Change(new_name, new_name, "runs", (), *words)
        yield from _of_layers(benchmark_layers(old, division), benchmark_layers(new, division))


def _without_list(round_: Round, division: str | None) -> list[Layer]:
    """Return the rules of every run but those that list the round's benchmarks."""
    return [
        replace(
            layer,
            rules={
                key: tuple(r for r in rules if r.constraints.get("one_of") != round_.benchmarks)
                for key, rules in layer.rules.items()
            },
        )
        for layer in common_layers(round_, division)
    ]


def _of_layers(before: Iterable[Layer], after: Iterable[Layer]) -> Iterator[Change]:
    old, new = ({layer.name: layer for layer in layers} for layers in (before, after))
    for where, layer in {**old, **new}.items():
        was, now = (layers[where].rules if where in layers else {} for layers in (old, new))
        for key in {**was, **now}:
            yield from _of_key(layer, key, was.get(key, ()), now.get(key, ()))


def _of_key(
    layer: Layer, key: str, was: tuple[Rule, ...], now: tuple[Rule, ...]
) -> Iterator[Change]:
    """Yield what changed in a key's rules, without those that did not change."""
    old = [rule for rule in was if not any(explain.same(rule, other) for other in now)]
    new = [rule for rule in now if not any(explain.same(rule, other) for other in was)]
    if old or new:
        codes = tuple(dict.fromkeys(rule.code for rule in (*old, *new)))
        words = (tuple(map(with_basis, rules)) for rules in (old, new))
        yield Change(layer.name, layer.benchmark, key, codes, *words)
