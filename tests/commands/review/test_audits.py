"""Candidates for an audit, drawn with a seed."""

import pytest

from mlperf_pkg.commands.review.audits import audits
from mlperf_pkg.commands.review.round import LISTING_FORMATS
from mlperf_pkg.render.findings import View
from tests.helpers.sides import entry, side

ENTRIES = [entry("5.0", submitter=f"S{n % 4}", path=f"S{n % 4}/{n}") for n in range(12)]
DRAWN = {7: "S0/8 S2/6 S3/11", 8: "S0/0 S1/5 S3/11"}


def drawn(seed: int, number: int = 3, entries: list[int] | None = None) -> list[str]:
    chosen = ENTRIES if entries is None else [ENTRIES[place] for place in entries]
    return [row.row.path for row in audits(side(*chosen), seed, number).rows]


@pytest.mark.parametrize("seed", DRAWN)
def test_the_same_seed_draws_the_same(seed: int) -> None:
    """In whatever order the entries come, on any machine."""
    assert drawn(seed) == DRAWN[seed].split()
    assert drawn(seed, entries=list(range(12))[::-1]) == DRAWN[seed].split()


@pytest.mark.parametrize(("number", "submitters"), [(2, 2), (4, 4), (6, 4), (99, 4)])
def test_different_submitters_first(number: int, submitters: int) -> None:
    paths = drawn(7, number)
    assert len(paths) == min(number, 12)
    assert len({path.split("/")[0] for path in paths[:4]}) == submitters


def test_a_set_without_a_score_is_not_drawn() -> None:
    assert audits(side(entry("5.0", minutes=0)), 7, 2).rows == []


@pytest.mark.parametrize("format_", LISTING_FORMATS)
def test_the_output_has_the_seed(format_: str) -> None:
    written = LISTING_FORMATS[format_](audits(side(*ENTRIES), 4711, 2), View())
    assert "4711" in written
