"""The text of a comparison: what the review decides fits on a screen."""

from itertools import product

from msgspec.structs import replace

from mlperf_pkg.commands.diff.changes import ChangeKind, VersionComparison, compare
from mlperf_pkg.commands.diff.formats import text
from mlperf_pkg.render.findings import View
from tests.helpers.compared_sides import a_set, a_side
from tests.helpers.reports import FAIL, PASS


def comparison(number: int) -> VersionComparison:
    """Every kind of change, each in ``number`` entries, which fail now."""
    sides = [
        a_side(*(a_set(f"results/{n}/bert", system="dgx", **row) for n in range(number)))
        for row in ({"verdict": PASS}, {"verdict": FAIL, "score_minutes": 19.0})
    ]
    entries = (
        kind.verdict(f"results/{n}/bert", "a sentence " * 20)
        for kind, n in product(ChangeKind, range(number))
    )
    return replace(compare(*sides), entries=tuple(entries))


def test_a_whole_round_fits_on_a_screen_unless_all_is_asked_for() -> None:
    lines = text(comparison(30), View(width=100)).splitlines()
    assert len(lines) <= 50
    assert max(map(len, lines)) <= 100
    assert lines[0].startswith("result sets: 30 changed")
    assert lines[1].startswith("official verdict: pass -> FAIL of 30 result sets: ")
    assert [kind for kind in ChangeKind if f"{kind} - to be decided (1 of 30)" not in lines] == []
    assert lines[-1].endswith(" lines of details: -v shows them")
    whole = text(comparison(30), View(width=100, verbose=True))
    assert whole.count("Rule: ") == len(ChangeKind)
    assert whole.count("results/29/bert: a sentence") == len(ChangeKind)
    assert "lines of details" not in whole
    assert whole.count("19.000 (-7.32 %)") == 30
