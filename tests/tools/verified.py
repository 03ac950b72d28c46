"""Store what the official verdict was verified against: ``python -m tests.tools.verified``.

Run it after ``make verify-upstream`` and ``make parity`` agree with the installed mlperf-logging;
review the diff of ``rules/verified.json``.
"""

import json

import msgspec

from mlperf_pkg.infra.files import write_whole
from mlperf_pkg.infra.resources import data_folder
from mlperf_pkg.rulebook.verified import FILE, installed


def text() -> str:
    """Return the file of digests, for the installed version."""
    return f"{json.dumps(msgspec.to_builtins(installed()), indent=1)}\n"


def main() -> None:
    """Write the file."""
    write_whole(data_folder("rules") / FILE, text(), replace=True)


if __name__ == "__main__":
    main()
