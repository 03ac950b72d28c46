"""Our rulebook against the installed mlperf-logging: every difference, key by key.

What the two say in ways that no program can compare (a formula for a state machine) people have
compared: ``rules/upstream.json`` keeps what they accepted, the official text as a digest, so that
any change on either side is seen.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from mlperf_pkg.errors import UserError
from mlperf_pkg.infra.resources import data_folder, official_folder
from mlperf_pkg.rulebook.load import load_benchmark, load_round, rounds, usages
from mlperf_pkg.rulebook.model import DIVISIONS, Benchmark, Rcp, Round
from mlperf_pkg.rulebook.upstream import theirs as upstream
from mlperf_pkg.rulebook.upstream.ours import official_rules

NOT_COVERED = {("training", "0.6.0"): "before the format that logs have had since 0.7"}
"""Rulesets that mlperf-logging still carries and the rulebook leaves out, with the reason."""

_FIRST_WITH_REFERENCE = (1, 0)


class Difference(Struct, frozen=True):
    """One thing that the rulebook and mlperf-logging say differently.

    ``kind`` is ``ruleset``, ``benchmarks``, ``runs``, ``reference`` or ``rule``; ``key`` the key or
    benchmark; ``file`` the file of mlperf-logging; ``where`` the divisions and benchmarks
    concerned. ``upstream`` and ``rulebook`` hold what only the one or only the other asks.
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
    """What people hold to mean the same: digests of the official conditions, our own, and why."""

    key: str
    upstream: tuple[str, ...]
    rulebook: tuple[str, ...]
    why: str


def digest(condition: str) -> str:
    """What stands for an official condition in ``rules/upstream.json``."""
    return hashlib.sha256(condition.encode()).hexdigest()[:16]


def ledger_path() -> Path:
    """Where accepted differences are kept."""
    return data_folder("rules") / "upstream.json"


def accepted() -> tuple[Accepted, ...]:
    """What people have accepted.

    Raises:
        UserError: the file is missing or malformed.
    """
    try:
        entries = json.loads(ledger_path().read_text("utf-8"))
        return tuple(
            Accepted(
                each["key"], tuple(each["upstream"]), tuple(each["rulebook"]), str(each["why"])
            )
            for each in entries
        )
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise UserError(f"{ledger_path()}: {error}") from error


def accept(differences: Iterable[Difference], why: str) -> None:
    """Note that people have compared what the rules differ in, and that it means the same."""
    kept = set(accepted()) | {
        Accepted(each.key, tuple(map(digest, each.upstream)), each.rulebook, why)
        for each in differences
        if each.kind == "rule"
    }
    ordered = sorted(kept, key=lambda each: (each.key, each.rulebook, each.upstream))
    fields = ("key", "upstream", "rulebook", "why")
    entries = [{name: getattr(each, name) for name in fields} for each in ordered]
    ledger_path().write_text(json.dumps(entries, indent=1) + "\n", "utf-8")


def verify(
    folder: Path | None = None, ledger: Sequence[Accepted] | None = None
) -> list[Difference]:
    """Every difference between the rulebook and an mlperf-logging, by default the installed one.

    Raises:
        UserError: mlperf-logging is not installed or cannot be read.
    """
    root = folder or official_folder()
    known = accepted() if ledger is None else ledger
    every = [load_round(usage, name) for usage in usages() for name in rounds(usage)]
    found = [*_rulesets(root, every), *(each for round_ in every for each in _round(root, round_))]
    beyond = (_beyond(each, known) if each.kind == "rule" else each for each in found)
    return [each for each in beyond if each.upstream or each.rulebook]


def _beyond(difference: Difference, known: Iterable[Accepted]) -> Difference:
    """A difference without what people have accepted of it."""
    theirs = {digest(condition): condition for condition in difference.upstream}
    ours = set(difference.rulebook)
    for each in sorted(known, key=lambda each: -len(each.upstream)):
        there, here = set(each.upstream), set(each.rulebook)
        if each.key == difference.key and there <= theirs.keys() and here <= ours:
            theirs = {name: theirs[name] for name in theirs.keys() - there}
            ours -= here
    return replace(
        difference, upstream=tuple(sorted(theirs.values())), rulebook=tuple(sorted(ours))
    )


def _rulesets(root: Path, every: Iterable[Round]) -> Iterator[Difference]:
    ours = {(round_.usage, round_.ruleset) for round_ in every}
    theirs = set(upstream.rulesets(root)) - NOT_COVERED.keys()
    for usage, ruleset in sorted(ours ^ theirs):
        only = ("a folder of rules",)
        new = (usage, ruleset) in theirs
        yield Difference(
            kind="ruleset",
            usage=usage,
            round=ruleset.rpartition(".")[0],
            key=ruleset,
            file=f"compliance_checker/{usage}_{ruleset}",
            where=(),
            upstream=only if new else (),
            rulebook=() if new else ("a round",),
        )


def _round(root: Path, round_: Round) -> Iterator[Difference]:
    if (round_.usage, round_.ruleset) not in upstream.rulesets(root):
        return
    yield from _benchmarks(root, round_)
    merged: dict[tuple[Any, ...], list[tuple[str, str]]] = {}
    for name in round_.benchmarks:
        benchmark = load_benchmark(round_.usage, round_.name, name)
        assert benchmark  # noqa: S101 - a test asserts that every benchmark is covered
        yield from _counts(root, round_, benchmark)
        for division in DIVISIONS:
            for key, theirs, ours, file in _compared(root, round_, division, benchmark):
                places = merged.setdefault((key, theirs, ours), [])
                places.append((f"{division} {name}", file))
    for (key, theirs, ours), places in merged.items():
        yield Difference(
            kind="rule",
            usage=round_.usage,
            round=round_.name,
            key=key,
            file=_common_file(round_, {file for _, file in places}),
            where=tuple(dict.fromkeys(where for where, _ in places)),
            upstream=theirs,
            rulebook=ours,
        )


def _common_file(round_: Round, files: set[str]) -> str:
    folder = f"{round_.usage}_{round_.ruleset}"
    return f"compliance_checker/{files.pop() if len(files) == 1 else folder}"


def _benchmarks(root: Path, round_: Round) -> Iterator[Difference]:
    about = partial(Difference, usage=round_.usage, round=round_.name, where=())
    listed = set(upstream.benchmarks(root).get(round_.usage, {}).get(round_.name, ()))
    for name in sorted(listed ^ set(round_.benchmarks)):
        yield about(
            kind="benchmarks",
            key=name,
            file="benchmark_meta.py",
            upstream=(name,) if name in listed else (),
            rulebook=() if name in listed else (name,),
        )
    if round_.version < _FIRST_WITH_REFERENCE:
        return
    points = upstream.reference_points(root, round_.usage, round_.ruleset)
    for name in sorted(set(round_.benchmarks) - points):
        benchmark = load_benchmark(round_.usage, round_.name, name)
        if benchmark and benchmark.rcp is Rcp.SKIPPED:
            continue
        yield about(
            kind="reference",
            key=name,
            file=f"rcp_checker/{round_.usage}_{round_.ruleset}/rcps_{name}.json",
            upstream=(),
            rulebook=("reference convergence points",),
        )


def _counts(root: Path, round_: Round, benchmark: Benchmark) -> Iterator[Difference]:
    needed = upstream.runs(root).get(round_.usage, {}).get(benchmark.name)
    if needed != benchmark.runs.required:
        yield Difference(
            kind="runs",
            usage=round_.usage,
            round=round_.name,
            key=benchmark.name,
            file="benchmark_meta.py",
            where=(),
            upstream=() if needed is None else (f"{needed} runs",),
            rulebook=(f"{benchmark.runs.required} runs",),
        )


Compared = tuple[str, tuple[str, ...], tuple[str, ...], str]


def _compared(root: Path, round_: Round, division: str, benchmark: Benchmark) -> Iterator[Compared]:
    """Key, what only the one and only the other asks, and the file, for all variants of a run."""
    seen: set[Compared] = set()
    for chosen in _choices(root, round_, division, benchmark):
        for found in _compared_run(root, round_, division, benchmark.name, chosen):
            if found not in seen:
                seen.add(found)
                yield found


def _choices(
    root: Path, round_: Round, division: str, benchmark: Benchmark
) -> Iterator[Mapping[str, str]]:
    """No variant, and each value of each key that chooses one, on either side."""
    yield {}
    layers = upstream.layers(root, _folder(round_), _logged(division, benchmark.name, {}))
    ours = {key: set(map(str, choices)) for key, choices in benchmark.variants.items()}
    for key in sorted(ours.keys() | layers.follows.keys()):
        if not key.startswith("submission_"):
            values = ours.get(key, set()) | layers.follows.get(key, frozenset())
            yield from ({key: value} for value in sorted(values))


def _compared_run(
    root: Path, round_: Round, division: str, name: str, chosen: Mapping[str, str]
) -> Iterator[Compared]:
    layers = upstream.layers(root, _folder(round_), _logged(division, name, chosen))
    ours = official_rules(round_.usage, round_.name, division, name, frozenset(chosen.items()))
    fallback = f"{_folder(round_)}/{division}_{name}.yaml"
    for key in sorted(layers.asked.keys() | ours.keys()):
        theirs, mine = layers.asked.get(key, frozenset()), ours.get(key, frozenset())
        if theirs != mine:
            only = tuple(sorted(theirs - mine)), tuple(sorted(mine - theirs))
            yield key, *only, layers.files.get(key, fallback)


def _folder(round_: Round) -> str:
    return f"{round_.usage}_{round_.ruleset}"


def _logged(division: str, benchmark: str, chosen: Mapping[str, str]) -> frozenset[tuple[str, str]]:
    named = {"submission_division": division, "submission_benchmark": benchmark}
    return frozenset({**named, **chosen}.items())
