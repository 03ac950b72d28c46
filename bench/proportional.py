"""Measure that the cost of hostile and of large inputs grows in proportion to their size.

Usage: python bench/proportional.py

Each action is measured for a number of things and for four times as many. The ratio of the costs is
about 4 where they are proportional, and 16 where they grow with the square of the number.
"""

import atexit
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path

import pyrage
from click.testing import CliRunner
from trees import BENCHMARKS, SYSTEM, submission

from mlperf_pkg.cli.main import cli
from mlperf_pkg.commands.archive.encryption import decrypt
from mlperf_pkg.errors import UserError

MORE = 4
STANZA = b"-> X25519 " + b"A" * 43 + b"\n" + b"A" * 43 + b"\n"

Action = Callable[[], object]


def command(*arguments: str | Path) -> Action:
    """Return a call of the command line."""
    return lambda: CliRunner().invoke(cli, [*map(str, arguments)])


@cache
def simulated() -> Path:
    """Return a submission, which takes longer to simulate than to copy."""
    folder = Path(tempfile.mkdtemp())
    atexit.register(shutil.rmtree, folder)
    submission(folder / "ACME", seed=1)
    return folder / "ACME"


def pack(folder: Path, number: int, path: str) -> Action:
    """Return the packing of a tree with a number of empty folders, without invalid sets."""
    tree = folder / "ACME"
    shutil.copytree(simulated(), tree)
    for index in range(number):
        (tree / path.format(index)).mkdir(parents=True)
    return command("pack", tree, "--invalid", "drop", "-o", folder / "a.tar.gz", "-j", "1")


def build(folder: Path, number: int) -> Action:
    """Return the building of a tree of systems, each with a set of which half are not valid."""
    description = (simulated() / "systems" / f"{SYSTEM}.json").read_text("utf-8")
    logs = sorted((simulated() / "results" / SYSTEM / BENCHMARKS[0]).iterdir())
    (folder / "systems").mkdir()
    for index in range(number):
        (folder / "systems" / f"s{index}.json").write_text(description)
        (folder / "logs" / f"s{index}").mkdir(parents=True)
        for log in logs[index % 2 :]:
            shutil.copy(log, folder / "logs" / f"s{index}")
    return command("build", folder, "--invalid", "drop", "--round", "2.0", "-j", "1")


def header(folder: Path, number: int) -> Action:
    """Return the decryption of a file of age whose header has a number of stanzas."""
    file = folder / "x.age"
    file.write_bytes(b"age-encryption.org/v1\n" + STANZA * number + b"--- " + b"A" * 43 + b"\n")
    key = folder / "key"
    key.write_text(str(pyrage.x25519.Identity.generate()))

    def refused() -> None:
        try:
            decrypt(file, folder / "plain", key, str)
        except UserError:
            return

    return refused


ACTIONS: Mapping[str, tuple[int, Callable[[Path, int], Action]]] = {
    "pack, folders without files": (1000, lambda f, n: pack(f, n, "benchmarks/{}")),
    "pack, sets without logs": (100, lambda f, n: pack(f, n, f"results/{SYSTEM}/b{{}}")),
    "pack, systems without logs": (100, lambda f, n: pack(f, n, "results/s{}/resnet")),
    "build, sets that are not valid": (16, build),
    "age, stanzas of a header": (1000, header),
}


def seconds(make: Callable[[Path, int], Action], number: int) -> float:
    """Return the processor seconds of an action, the best of two."""
    costs = []
    for _ in range(2):
        with tempfile.TemporaryDirectory() as folder:
            action = make(Path(folder), number)
            begun = time.process_time()
            action()
            costs.append(time.process_time() - begun)
    return min(costs)


def main() -> None:
    """Print a line for each action."""
    for name, (number, make) in ACTIONS.items():
        few = seconds(make, number)
        many = seconds(make, number * MORE)
        line = f"{name:32}{number:6}  {few:6.2f} s  {number * MORE:6}  {many:6.2f} s"
        sys.stdout.write(f"{line}  {many / max(few, 1e-3):5.1f}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
