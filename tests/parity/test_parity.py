"""A sample of the comparison with the official checker; ``python -m tests.parity`` makes more."""

from __future__ import annotations

from mlperf_pkg.rulebook.load import rounds, usages
from tests.parity.harness import compare

CASES = 500


def test_official_verdicts_agree_on_mutated_logs() -> None:
    tally = compare(CASES, seed=2026)
    assert not tally.disagreements, "\n\n".join(map(str, tally.disagreements))
    assert tally.rounds == {(usage, name) for usage in usages() for name in rounds(usage)}
    assert min(tally.agreed[outcome] for outcome in ("pass", "fail", "died")) > CASES // 20
