"""Compare our rulebook with an mlperf-logging, key by key.

Some rules mean the same although no program can see it (a formula and a state machine).
Maintainers compare these: ``accepted.json`` keeps what they accepted, with a digest of the official
text, so that any change on either side is reported.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from mlperf_pkg.commands.rcp.records import points_folder
from mlperf_pkg.errors import UserError, reason_of
from mlperf_pkg.rulebook.documents import rounds, usages
from mlperf_pkg.rulebook.explain import loaded
from mlperf_pkg.rulebook.load import load_round
from mlperf_pkg.rulebook.model import DIVISIONS, Benchmark, Rcp, Round
from tests.tools.upstream import official
from tests.tools.upstream.expressions import official_rules

NOT_COVERED = {("training", "0.6.0"): "before the format that logs have had since 0.7"}
"""Rulesets of mlperf-logging that the rulebook leaves out, with the reason."""

LEDGER = Path(__file__).with_name("accepted.json")
"""The file of accepted differences."""

_FIRST_WITH_REFERENCE = (1, 0)


class Difference(Struct, frozen=True):
    """One difference between the rulebook and mlperf-logging.

    ``kind`` is ``ruleset``, ``benchmarks``, ``runs``, ``reference`` or ``rule``; ``key`` is the key
    or benchmark, ``file`` the file of mlperf-logging, ``where`` the divisions and benchmarks
    concerned. ``upstream`` and ``rulebook`` are the conditions that only one of the two has.
    """

    kind: str
    usage: str
    round: str
    key: str
    file: str
    where: tuple[str, ...]
    upstream: tuple[str, ...]
    rulebook: tuple[str, ...]


class Accepted(Struct, frozen=True):
    """Conditions accepted as the same: digests of the official ones, our own, and the reason."""

    key: str
    upstream: tuple[str, ...]
    rulebook: tuple[str, ...]
    why: str


def digest(condition: str) -> str:
    """Return the digest of an official condition, as ``LEDGER`` has it."""
    return hashlib.sha256(condition.encode()).hexdigest()[:16]


def accepted(ledger: Path) -> tuple[Accepted, ...]:
    """Return the differences that a file lists as accepted.

    Raises:
        UserError: the file is missing or not valid.
    """
    try:
        return msgspec.json.decode(ledger.read_bytes(), type=tuple[Accepted, ...])
    except (OSError, ValueError) as error:  # of msgspec
        raise UserError(f"{ledger}: {reason_of(error)}") from error


def accept(differences: Iterable[Difference], why: str, ledger: Path) -> None:
    """Add differences between rules to those accepted, because both sides mean the same."""
    entries = set(accepted(ledger))
    for item in differences:
        if item.kind == "rule":
            digests = tuple(map(digest, item.upstream))
            entries.add(Accepted(item.key, digests, item.rulebook, why))
    ordered = sorted(entries, key=lambda entry: (entry.key, entry.rulebook, entry.upstream))
    ledger.write_text(json.dumps(msgspec.to_builtins(ordered), indent=1) + "\n", "utf-8")


def differences_from(root: Path, entries: Sequence[Accepted]) -> list[Difference]:
    """Return all differences between the rulebook and an mlperf-logging that are not accepted.

    Raises:
        UserError: the mlperf-logging cannot be read.
    """
    all_rounds = [load_round(usage, name) for usage in usages() for name in rounds(usage)]
    every = [*_rulesets(root, all_rounds)]
    names, needed = official.benchmarks_and_runs(root)
    for round_ in all_rounds:
        if (round_.usage, round_.ruleset) in official.rulesets(root):
            allowed = names.get(round_.usage, {}).get(round_.name, ())
            every += _around(root, round_, allowed, needed.get(round_.usage, {}))
            every += _rules(root, round_)
    remaining = (_beyond(item, entries) if item.kind == "rule" else item for item in every)
    return [item for item in remaining if item.upstream or item.rulebook]


def _beyond(difference: Difference, entries: Iterable[Accepted]) -> Difference:
    """Return a difference without the part that is accepted."""
    theirs = {digest(condition): condition for condition in difference.upstream}
    ours = set(difference.rulebook)
    for entry in sorted(entries, key=lambda entry: -len(entry.upstream)):
        there = set(entry.upstream)
        here = set(entry.rulebook)
        if entry.key == difference.key and there <= theirs.keys() and here <= ours:
            theirs = {name: theirs[name] for name in theirs.keys() - there}
            ours -= here
    return replace(
        difference, upstream=tuple(sorted(theirs.values())), rulebook=tuple(sorted(ours))
    )


def _rulesets(root: Path, all_rounds: Iterable[Round]) -> Iterator[Difference]:
    ours = {(round_.usage, round_.ruleset) for round_ in all_rounds}
    theirs = set(official.rulesets(root)) - NOT_COVERED.keys()
    for usage, ruleset in sorted(ours ^ theirs):
        name = ruleset.rpartition(".")[0]
        file = f"compliance_checker/{usage}_{ruleset}"
        sides = ((), ("a round",)) if (usage, ruleset) in ours else (("a folder of rules",), ())
        yield Difference("ruleset", usage, name, ruleset, file, (), *sides)


def _around(
    root: Path, round_: Round, allowed: Iterable[str], needed: Mapping[str, int]
) -> Iterator[Difference]:
    """Yield the differences in the benchmarks of a round, their reference points and runs."""
    place = (round_.usage, round_.name)
    meta = "benchmark_meta.py"
    for name in sorted(set(allowed) ^ set(round_.benchmarks)):
        sides = ((), (name,)) if name in round_.benchmarks else ((name,), ())
        yield Difference("benchmarks", *place, name, meta, (), *sides)
    for name in sorted(round_.benchmarks) if round_.version >= _FIRST_WITH_REFERENCE else ():
        path = points_folder(root, round_) / f"rcps_{name}.json"
        if loaded(round_, name).rcp is not Rcp.SKIPPED and not path.is_file():
            file = path.relative_to(root).as_posix()
            ours = ("reference convergence points",)
            yield Difference("reference", *place, name, file, (), (), ours)
    for name in round_.benchmarks:
        count = needed.get(name)
        required = loaded(round_, name).runs.required
        if count != required:
            theirs = () if count is None else (f"{count} runs",)
            yield Difference("runs", *place, name, meta, (), theirs, (f"{required} runs",))


def _rules(root: Path, round_: Round) -> Iterator[Difference]:
    merged: dict[tuple[Any, ...], list[tuple[str, str]]] = {}
    for name, division in product(round_.benchmarks, DIVISIONS):
        for *sides, file in dict.fromkeys(_of_runs(root, round_, division, loaded(round_, name))):
            merged.setdefault(tuple(sides), []).append((f"{division} {name}", file))
    for (key, theirs, ours), places in merged.items():
        where, files = (tuple(dict.fromkeys(names)) for names in zip(*places, strict=True))
        file = f"compliance_checker/{files[0] if len(files) == 1 else _folder(round_)}"
        yield Difference("rule", round_.usage, round_.name, key, file, where, theirs, ours)


def _of_runs(
    root: Path, round_: Round, division: str, benchmark: Benchmark
) -> Iterator[tuple[str, tuple[str, ...], tuple[str, ...], str]]:
    """Yield, for all variants of a run, each key on which only one side has some conditions.

    With it, the conditions of the official side alone, those of ours alone, and the official file.
    """
    identity = {"submission_division": division, "submission_benchmark": benchmark.name}
    layers_of = partial(official.layers, root, _folder(round_))
    fallback = f"{_folder(round_)}/{division}_{benchmark.name}.yaml"
    for chosen in _choices(benchmark, layers_of(frozenset(identity.items())).follows):
        layers = layers_of(frozenset({*identity.items(), *chosen}))
        ours = official_rules(round_.usage, round_.name, division, benchmark.name, chosen)
        for key in sorted(layers.conditions.keys() | ours.keys()):
            theirs = layers.conditions.get(key, frozenset())
            mine = ours.get(key, frozenset())
            if theirs != mine:
                sides = tuple(sorted(theirs - mine)), tuple(sorted(mine - theirs))
                yield key, *sides, layers.files.get(key, fallback)


def _choices(
    benchmark: Benchmark, follows: Mapping[str, frozenset[str]]
) -> Iterator[frozenset[tuple[str, str]]]:
    """Yield no choice, and then each value of each key that chooses a variant on either side."""
    yield frozenset()
    ours = {key: frozenset(map(str, choices)) for key, choices in benchmark.variants.items()}
    for key in sorted(ours.keys() | follows.keys()):
        if not key.startswith("submission_"):
            for value in sorted(ours.get(key, frozenset()) | follows.get(key, frozenset())):
                yield frozenset({(key, value)})


def _folder(round_: Round) -> str:
    return f"{round_.usage}_{round_.ruleset}"
