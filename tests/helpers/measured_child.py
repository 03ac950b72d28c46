"""Run a command with limits; print its exit status and the most memory one of its processes had, in KiB.

A program of its own: to a child, Linux counts the memory of the process that forked it, and that of a test runner is large.
"""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys


def main(seconds: int, report: str, command: list[str]) -> None:
    """Write the status and the peak memory of ``command`` to the file ``report``."""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        signal.alarm(2 * seconds)

    child = subprocess.Popen(command, preexec_fn=limit)  # noqa: PLW1509 - no threads here
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    with open(report, "w", encoding="ascii") as file:  # noqa: PTH123 - pathlib costs time and memory
        file.write(f"{child.returncode} {usage.ru_maxrss}")


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], sys.argv[3:])
