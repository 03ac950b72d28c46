"""Try a random sample of mutants with mutmut: ``python -m tests.tools.mutants --sample 100
--seed 28``.

Prints the score of each package and the mutants that no test kills; ``mutmut show NAME`` shows one.
The table ``tool.mutmut`` in pyproject.toml says what is mutated. Its own output is in
build/mutants.log.
"""

import argparse
import json
import random
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

FOLDER, LOG = Path("mutants"), Path("build/mutants.log")
FIRST = "mlperf_pkg.log.reader.x__first_end__*"  # any: mutmut makes all mutants before it tries one
KILLED = {1, 3, 24, 36, 152, 255, -24}  # by a test, or by the time that it takes


def exit_codes() -> dict[str, int | None]:
    """What mutmut noted of each mutant; None of those that were not tried."""
    codes: dict[str, int | None] = {}
    for path in FOLDER.rglob("*.meta"):
        codes |= json.loads(path.read_text("utf-8"))["exit_code_by_key"]
    return codes


def run(names: list[str]) -> None:
    LOG.parent.mkdir(exist_ok=True)
    with LOG.open("ab") as log:
        subprocess.run(
            [sys.executable, "-m", "mutmut", "run", *names], stdout=log, stderr=log, check=True
        )


def sample(count: int, seed: int) -> list[str]:
    """Names of mutants, as many of each package."""
    by_package: dict[str, list[str]] = defaultdict(list)
    for name in sorted(exit_codes()):
        by_package[name.split(".")[1]].append(name)
    chosen = random.Random(seed)
    return [
        name
        for names in by_package.values()
        for name in chosen.sample(names, min(count, len(names)))
    ]


def report(names: list[str]) -> None:
    codes = exit_codes()
    survivors = [name for name in names if codes[name] not in KILLED]
    for package in dict.fromkeys(name.split(".")[1] for name in names):
        of_package = [name for name in names if name.split(".")[1] == package]
        killed = len(of_package) - len(set(of_package) & set(survivors))
        share = killed / len(of_package)
        print(f"{package}: {killed} of {len(of_package)} killed, {share:.1%}")  # noqa: T201
    print(*survivors, sep="\n")  # noqa: T201


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sample", type=int, default=100, help="mutants of each package")
    parser.add_argument("--seed", type=int, default=28)
    options = parser.parse_args()
    if not exit_codes():
        run([FIRST])
    names = sample(options.sample, options.seed)
    run(names)
    report(names)
