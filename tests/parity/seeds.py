"""Logs to mutate: published ones, cut short; made from the rulebook; simulated."""

import json
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from mlperf_pkg.rulebook.rounds import has_ruleset
from mlperf_pkg.simulate import simulate_run
from tests.helpers.corpus import corpus_folder
from tests.helpers.rule_logs import cases, passing_log, to_bytes
from tests.helpers.simulated_logs import PLANS

MOST_RECORDS = 450
_OF_A_KEY = 4
_KEPT_WHOLE = b'"weights_initialization"'
_KEY = re.compile(rb'"key": ?("[^"]*")')
_TREE = re.compile(r"(hpc)?_?v(\d+\.\d+)")


@dataclass(frozen=True)
class Seed:
    """A log by its lines, and the rules it is checked by."""

    name: str
    usage: str
    round: str
    lines: tuple[bytes, ...]


@lru_cache
def seeds() -> tuple[Seed, ...]:
    """Every round that mlperf-logging has, every benchmark and division at least once."""
    return (*_of_rules(), *_simulated(), *_published())


def _of_rules() -> Iterator[Seed]:
    for usage, name, benchmark, division, choice in cases():
        if not has_ruleset(usage, name):
            continue
        variant = "-".join(sorted(value for _, value in choice))
        log = to_bytes(passing_log(usage, name, benchmark, division, choice))
        title = f"rules {usage} {name} {benchmark} {division} {variant}".strip()
        yield Seed(title, usage, name, tuple(log.splitlines()))


def _simulated() -> Iterator[Seed]:
    for plan in PLANS:
        if not has_ruleset(plan.usage, plan.round):
            continue
        title = f"simulated {plan.usage} {plan.round} {plan.benchmark} {plan.division}"
        yield Seed(title, plan.usage, plan.round, _thinned(simulate_run(plan, seed=1).splitlines()))


def _published() -> Iterator[Seed]:
    folder = corpus_folder()
    if folder is None:
        return
    for tree in sorted(folder.iterdir()):
        if match := _TREE.fullmatch(tree.name):
            yield from _of_tree(tree, match[1] or "training", match[2])


def _of_tree(tree: Path, usage: str, name: str) -> Iterator[Seed]:
    """One log of each benchmark and division."""
    facts = json.loads((tree.parents[1] / "expected" / f"{tree.name}.json").read_text("utf-8"))
    chosen: dict[tuple[str, bool], str] = {}
    for path in sorted(facts["logs"]):
        text = (tree / path).read_bytes()
        chosen.setdefault((path.split("/")[-2], b'"open"' in text), path)
    for path in chosen.values():
        lines = [line for line in (tree / path).read_bytes().splitlines() if b":::MLLOG" in line]
        yield Seed(f"{tree.name}/{path}", usage, name, _thinned(lines))


def _thinned(lines: list[bytes]) -> tuple[bytes, ...]:
    """Of a key that is logged over and over only the first and the last few records."""
    by_key: dict[bytes, list[int]] = defaultdict(list)
    for number, line in enumerate(lines):
        match = _KEY.search(line)
        by_key[match[1] if match else b""].append(number)
    kept: set[int] = set()
    for key, numbers in by_key.items():
        is_whole = key == _KEPT_WHOLE
        kept.update(numbers if is_whole else numbers[:_OF_A_KEY] + numbers[-_OF_A_KEY:])
    return tuple(lines[number] for number in sorted(kept))[-MOST_RECORDS:]
