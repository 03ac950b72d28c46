"""What changes for a submitter from one round to another."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from mlperf_pkg.errors import UserError
from mlperf_pkg.rulebook.describe import (
    Layer,
    benchmark_layers,
    common_layers,
    loaded,
    runs,
    same,
    target,
    with_basis,
)
from mlperf_pkg.rulebook.load import load_round
from mlperf_pkg.rulebook.model import Benchmark, Round, Rule


@dataclass(frozen=True, slots=True)
class Change:
    """What one key, or the ``target`` or ``runs`` of a benchmark, asked and now asks.

    ``where`` names the layer ("Closed bert"), ``benchmark`` its benchmark if any; ``old`` is
    empty where the key is new, ``new`` where it is gone. ``codes`` are those of the rules that
    changed.
    """

    where: str
    benchmark: str
    key: str
    codes: tuple[str, ...]
    old: tuple[str, ...]
    new: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two rounds of a usage: benchmarks that are gone or new, and changes in what both have.

    ``unchanged`` are benchmarks whose own rules are as they were.
    """

    usage: str
    old: Round
    new: Round
    gone: tuple[str, ...]
    added: tuple[Benchmark, ...]
    changes: tuple[Change, ...]
    unchanged: tuple[str, ...]


def compare(usage: str, old: str, new: str, benchmark: str = "", division: str = "") -> Comparison:
    """Compare two rounds, in all or in one benchmark and division.

    Raises:
        UserError: the rulebook has no such round, or neither round has the benchmark.
    """
    before, after = load_round(usage, old), load_round(usage, new)
    names = sorted({*before.benchmarks, *after.benchmarks})
    if benchmark and benchmark not in names:
        raise UserError(
            f"neither round {old} nor {new} has a benchmark {benchmark!r}: {', '.join(names)}"
        )
    names = [benchmark] if benchmark else names
    kept = [name for name in names if name in before.benchmarks and name in after.benchmarks]
    changes = tuple(_changes(before, after, kept, division))
    touched = {change.benchmark for change in changes}
    return Comparison(
        usage=usage,
        old=before,
        new=after,
        gone=tuple(name for name in names if name not in after.benchmarks),
        added=tuple(loaded(after, name) for name in names if name not in before.benchmarks),
        changes=changes,
        unchanged=tuple(name for name in kept if name not in touched),
    )


def _changes(before: Round, after: Round, kept: Iterable[str], division: str) -> Iterator[Change]:
    yield from _of_layers(common_layers(before, division), common_layers(after, division))
    for name in kept:
        old, new = loaded(before, name), loaded(after, name)
        if old.target != new.target:
            yield Change(name, name, "target", (), (target(old),), (target(new),))
        if old.runs != new.runs:
            yield Change(name, name, "runs", (), (runs(old.runs),), (runs(new.runs),))
        yield from _of_layers(benchmark_layers(old, division), benchmark_layers(new, division))


def _of_layers(before: Iterable[Layer], after: Iterable[Layer]) -> Iterator[Change]:
    old, new = ({layer.name: layer for layer in each} for each in (before, after))
    for where, layer in {**old, **new}.items():
        was, now = (found[where].rules if where in found else {} for found in (old, new))
        for key in {**was, **now}:
            yield from _of_key(layer, key, was.get(key, ()), now.get(key, ()))


def _of_key(
    layer: Layer, key: str, was: tuple[Rule, ...], now: tuple[Rule, ...]
) -> Iterator[Change]:
    """What changed of a key's rules; rules that are as they were are left out."""
    old = [rule for rule in was if not any(same(rule, other) for other in now)]
    new = [rule for rule in now if not any(same(rule, other) for other in was)]
    if old or new:
        codes = tuple(dict.fromkeys(rule.code for rule in (*old, *new)))
        told = (tuple(map(with_basis, each)) for each in (old, new))
        yield Change(layer.name, layer.benchmark, key, codes, *told)
