"""Both checkers on mutated logs; a disagreement is shrunk to a minimal log."""

import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

from mlperf_pkg.findings import Verdict
from mlperf_pkg.infra.source import Source
from mlperf_pkg.rulebook.load import load_round
from mlperf_pkg.run.model import LogFile, Run
from mlperf_pkg.run.reading import read_run
from tests.parity import incumbent
from tests.parity.mutations import mutate
from tests.parity.seeds import Seed, seeds

Lines = Sequence[bytes]


@dataclass(frozen=True)
class Disagreement:
    """A minimal log on which the two differ."""

    case: str
    log: bytes
    official: incumbent.Official
    ours: str

    def __str__(self) -> str:
        """What is needed to see it again."""
        return f"{self.case}\n  official: {self.official}\n  ours: {self.ours}\n{self.log!r}"


@dataclass
class Tally:
    """How a run of the harness went. ``agreed`` counts by official outcome."""

    agreed: Counter[str]
    rounds: set[tuple[str, str]]
    disagreements: list[Disagreement]


def compare(cases: int, seed: int) -> Tally:
    """Compare on ``cases`` mutated logs, taken in turn from all seeds, reproducibly."""
    tally = Tally(Counter(), set(), [])
    with incumbent.cached_rules(), tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "result_0.txt"
        for name, origin, lines in _mutants(cases, seed):
            official, ours = _judge(origin, lines, file)
            tally.rounds.add((origin.usage, origin.round))
            if _agree(official, ours):
                outcome = "crash" if official.crash else "pass" if official.passes else "fail"
                tally.agreed[outcome] += 1
            else:
                tally.disagreements.append(_minimal(name, origin, lines, file))
    return tally


def _mutants(cases: int, seed: int) -> Iterator[tuple[str, Seed, list[bytes]]]:
    origins = list(seeds())
    Random(seed).shuffle(origins)  # any few cases are of many rounds
    for number in range(cases):
        origin = origins[number % len(origins)]
        rng = Random(f"{seed}/{number}")
        name = f"case {number} of seed {seed}: {origin.name}"
        yield name, origin, mutate(list(origin.lines), rng)


def _judge(origin: Seed, lines: Lines, file: Path) -> tuple[incumbent.Official, Run | str]:
    log = b"\n".join(lines) + b"\n"
    file.write_bytes(log)
    ruleset = load_round(origin.usage, origin.round).ruleset
    official = incumbent.check(file, origin.usage, ruleset)
    try:
        ours: Run | str = read_run(LogFile(Source("result_0.txt", log), origin.usage, origin.round))
    except Exception as error:  # noqa: BLE001 - ours must never raise
        ours = f"raises {type(error).__name__}: {error}"
    return official, ours


def _agree(official: incumbent.Official, ours: Run | str) -> bool:
    return not isinstance(ours, str) and ours.verdicts.official is Verdict.of(not official.passes)


def _minimal(name: str, origin: Seed, lines: list[bytes], file: Path) -> Disagreement:
    """Delta debugging: leave out ever smaller parts while they still disagree."""
    size = len(lines) // 2
    while size:
        start = 0
        while start < len(lines):
            shorter = lines[:start] + lines[start + size :]
            if _agree(*_judge(origin, shorter, file)):
                start += size
            else:
                lines = shorter
        size //= 2
    official, ours = _judge(origin, lines, file)
    return Disagreement(name, b"\n".join(lines) + b"\n", official, _shown(ours))


def _shown(ours: Run | str) -> str:
    if isinstance(ours, str):
        return ours
    errors = [f"{f.line} {f.code} {f.text}" for f in ours.findings if f.severity == "error"]
    return f"{ours.verdicts.official}: {errors}"
