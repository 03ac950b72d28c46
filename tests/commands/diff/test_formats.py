"""The text of a comparison: what the review decides fits on a screen."""

from itertools import product
from typing import Any

import pytest
from msgspec.structs import replace

from mlperf_pkg.commands.diff.changes import ChangeKind, VersionComparison, compare
from mlperf_pkg.commands.diff.formats import DIFF_FORMATS, text
from mlperf_pkg.findings import Verdicts
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
    brief = text(comparison(30), View())
    lines = brief.splitlines()
    assert len(lines) < 24
    assert max(map(len, lines)) <= 80
    assert lines[:2] == [
        "MLPerf Training 2.0",
        "result sets: 30 changed, 0 unchanged, 0 removed, 0 added",
    ]
    assert lines[3].startswith("official verdict: pass -> FAIL (30 result sets: ")
    assert set(ChangeKind) == {kind for kind in ChangeKind if f"{kind} (30)" in " ".join(lines)}
    assert lines[-1].startswith("-v shows all changes (")
    assert "..." not in brief
    whole = text(comparison(30), View(verbose=True))
    assert whole.count("Rule: ") == len(ChangeKind)
    assert whole.count("results/29/bert") >= len(ChangeKind)
    assert "-v shows" not in whole
    assert "..." not in whole
    assert whole.count("19.000 (-7.32 %)") == 30


@pytest.mark.parametrize(
    ("format_", "line"),
    [
        ("text", "\n  3 runs: 2 entries: results/a/bert, results/b/bert\n"),
        ("markdown", "\n- 3 runs: 2 entries: results/a/bert, results/b/bert\n"),
        ("json", '"text": "3 runs"'),
    ],
)
def test_the_reason_comes_first(format_: str, line: str) -> None:
    """Entries with the same text share a line; each format has the same summary."""
    pairs = ((kind, name) for kind in (ChangeKind.COPIED, ChangeKind.ADDED) for name in "ab")
    entries = tuple(kind.verdict(f"results/{name}/bert", "3 runs") for kind, name in pairs)
    written = DIFF_FORMATS[format_](replace(comparison(1), entries=entries), View())
    assert line in written
    assert "to be decided: copied (2), added (2)" in written


CLOSED: dict[str, Any] = {"score_minutes": 20.5, "official_minutes": 20.5, "unscaled_minutes": 20.0}
OPENED: dict[str, Any] = {"division": "open", "score_minutes": 20.0, "official_minutes": 20.0}
FACTORS: tuple[dict[str, Any], ...] = (
    {"scaling_factor": 1.025},
    {"scaling_factor": 1.0, "unscaled_minutes": 20.0},
)


@pytest.mark.parametrize(
    ("new", "percent", "shown"),
    [
        ({}, 0.0, ["division", "scaling factor", "RCP test"]),
        (
            {"score_minutes": 21.0, "unscaled_minutes": 21.0},
            pytest.approx(5.0),
            ["division", "score minutes", "official minutes", "scaling factor"],
        ),
    ],
    ids=["the same runs", "other runs"],
)
def test_a_set_that_moved_to_open(new: dict[str, Any], percent: float, shown: list[str]) -> None:
    """Open has no factor: what only the factor changed is not another score."""
    before = a_set(**CLOSED, **FACTORS[0])
    after = a_set(**{**OPENED, **FACTORS[1], **new})
    made = compare(a_side(before), a_side(after))
    [change] = made.sets
    lines = text(made, View(verbose=True)).splitlines()
    rows = [line[2:].split("  ")[0] for line in lines if line.startswith("  ")]
    assert change.percent == percent
    assert rows[: len(shown)] == shown


@pytest.mark.parametrize(
    ("whole", "extent"),
    [
        (FAIL, "(all together, and 1 result set: results/0/bert)"),
        (PASS, "(1 result set: results/0/bert)"),
    ],
    ids=["of all", "of one set"],
)
def test_a_verdict_is_said_once(whole: Verdicts, extent: str) -> None:
    old = a_set("results/0/bert", verdict=PASS)
    new = a_set("results/0/bert", verdict=FAIL)
    made = compare(a_side(old), replace(a_side(new), verdict=whole))
    lines = text(made, View(width=100)).splitlines()
    verdicts = [line for line in lines if line.startswith("official verdict")]
    assert verdicts == [f"official verdict: pass -> FAIL {extent}"]
