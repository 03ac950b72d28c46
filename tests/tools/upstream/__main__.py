"""Compare the rulebook with an mlperf-logging: ``python -m tests.tools.upstream``.

Every difference is shown, so that no change in a release of the official checker goes unnoticed,
and so is every mistake in its reference points that ``known_points.yaml`` does not list, and every
listed one that is gone. The exit status is 0 if they agree, 1 if they differ, 2 if they cannot be
compared.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from mlperf_pkg.errors import UserError
from mlperf_pkg.infra.resources import installed_version, official_folder
from mlperf_pkg.rulebook.documents import every_round
from tests.tools.upstream import differences, report
from tests.tools.upstream.known_points import review


def main(arguments: Sequence[str] | None = None) -> int:
    """Print what differs; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.tools.upstream", description=__doc__)
    parser.add_argument(
        "--against",
        type=Path,
        metavar="FOLDER",
        help="compare with the mlperf_logging in FOLDER instead of the installed one",
    )
    parser.add_argument(
        "--accept",
        metavar="REASON",
        help="record all differing rules as equivalent, in accepted.json",
    )
    options = parser.parse_args(arguments)
    try:
        return _compare(options.against, options.accept)
    except UserError as error:
        sys.stderr.write(f"{error}\n")
        return 2


def _compare(against: Path | None, reason: str | None) -> int:
    folder = against or official_folder()
    reference = str(against) if against else f"mlperf-logging {installed_version('mlperf-logging')}"
    ledger = differences.LEDGER
    remaining = differences.differences_from(folder, differences.accepted(ledger))
    if reason:
        differences.accept(remaining, reason, ledger)
        remaining = differences.differences_from(folder, differences.accepted(ledger))
    point_review = review(folder)
    for line in report.lines(remaining, point_review, reference, len(every_round())):
        sys.stdout.write(f"{line}\n")
    return int(bool(remaining) or point_review.fails)


if __name__ == "__main__":
    sys.exit(main())
