"""Run programs as a user would, and measure wall time, processor time and memory."""

import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

_PAGE = os.sysconf("SC_PAGE_SIZE")
_SAMPLE_SECONDS = 0.01
# Cache compiled modules, as in an installed package, whatever the environment says.
ENVIRONMENT = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}


@dataclass(frozen=True, slots=True, order=True)
class Cost:
    """The cost of a program in seconds: wall time, and processor time over all processors."""

    wall: float
    processor: float


def run(command: Sequence[str], within: Path | None = None) -> Cost:
    """Run a program until it exits; it may find errors (status 1) but must not fail.

    ``within`` is its working directory: the official programs write their logs there.

    Raises:
        RuntimeError: the exit status is neither 0 nor 1.
    """
    start = time.perf_counter()
    process = subprocess.Popen(
        command, cwd=within, env=ENVIRONMENT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    assert process.stderr
    errors = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)  # includes the children that it waited for
    wall = time.perf_counter() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in (0, 1):
        raise RuntimeError(f"{command}: {errors.decode(errors='replace')[-2000:]}")
    return Cost(wall, usage.ru_utime + usage.ru_stime)


def alternate(commands: Mapping[str, Sequence[str]], times: int) -> dict[str, Cost]:
    """Run the programs in turns, several times, and return the best cost of each program."""
    costs = [{name: run(command) for name, command in commands.items()} for _ in range(times)]
    return {
        name: Cost(min(c[name].wall for c in costs), min(c[name].processor for c in costs))
        for name in commands
    }


def total(costs: Sequence[Cost]) -> Cost:
    """Return the cost of programs that run one after another."""
    return Cost(sum(cost.wall for cost in costs), sum(cost.processor for cost in costs))


def peak_memory(command: Sequence[str]) -> int:
    """Return the peak of the resident memory of a program and its children, in bytes (Linux)."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    peak = 0
    while process.poll() is None:
        peak = max(peak, sum(map(_resident, _family(process.pid))))
        time.sleep(_SAMPLE_SECONDS)
    return peak


def _family(pid: int) -> list[int]:
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text("ascii").split()
    except OSError:
        children = []
    return [pid, *(member for child in children for member in _family(int(child)))]


def _resident(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text("ascii").split()[1]) * _PAGE
    except (OSError, IndexError):
        return 0


def processes() -> int:
    """Return the number of processes of a check, one per processor."""
    return os.cpu_count() or 1


def check(folder: Path, report: Path, *options: str) -> list[str]:
    """Return the command of a check that writes the whole report to a file."""
    program = str(Path(sys.executable).with_name("mlperf-pkg"))
    end = ["--format", "json", "--output", str(report), "--force"]
    return [program, "check", str(folder), *options, *end]


def floor(folder: Path) -> list[str]:
    """Return the command of the floor, with the same number of processes as a check."""
    return [
        sys.executable,
        str(Path(__file__).with_name("floor.py")),
        str(folder),
        str(processes()),
    ]
