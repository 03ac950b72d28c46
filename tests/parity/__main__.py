"""Compare both checkers on many mutated logs: ``python -m tests.parity --cases 5000``."""

import argparse
import sys
import time

from tests.parity.harness import compare


def main() -> int:
    """Print the figures and every disagreement; exit status 1 if there is any."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    started = time.monotonic()
    tally = compare(options.cases, options.seed)
    for disagreement in tally.disagreements:
        sys.stdout.write(f"{disagreement}\n")
    outcomes = ", ".join(f"{count} {name}" for name, count in sorted(tally.agreed.items()))
    sys.stdout.write(
        f"{options.cases} cases of {len(tally.rounds)} rounds in"
        f" {time.monotonic() - started:.0f} s: {len(tally.disagreements)} disagreements;"
        f" agreed on {outcomes}\n"
    )
    return bool(tally.disagreements)


if __name__ == "__main__":
    sys.exit(main())
