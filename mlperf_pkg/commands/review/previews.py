"""``review previews``: the Previews of an earlier round and their successors."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from mlperf_pkg.commands.review.listing import Listing, listed_section
from mlperf_pkg.commands.review.model import Round, Section
from mlperf_pkg.commands.review.sides import Side, published_before
from mlperf_pkg.commands.review.succession import Outcome, Scale, Succession, successions
from mlperf_pkg.render.table import PLAIN, Column, Group, Span
from mlperf_pkg.results import wording
from mlperf_pkg.rulebook.rounds import due_round

NAMES = (
    "outcome",
    "round",
    "submitter",
    "system",
    "accelerator",
    "benchmark",
    "division",
    "role",
    "scale",
    "unit",
    "minutes",
    "energy_joules",
    "due",
    "new_round",
    "new_submitter",
    "new_system",
    "new_accelerator",
    "new_benchmark",
    "new_scale",
    "new_minutes",
    "new_energy_joules",
    "compared_by",
    "performance_percent",
    "match",
    "remark",
    "path",
    "new_path",
)
_BRIEF = (
    "outcome",
    "round",
    "submitter",
    "accelerator",
    "benchmark",
    "division",
    "role",
    "scale",
    "minutes",
    "due",
    "new_system",
    "new_scale",
    "new_minutes",
    "performance_percent",
    "match",
    "remark",
)
_COLUMNS = (
    Column("Preview", whole=True),
    Column("On", 8, numbers=True),
    Column("Minutes", 9, numbers=True),
    Column("Available", 28),
    Column("Change", 8, numbers=True),
)
_MANY = 100  # percent, from which on decimals are not shown
_LEGEND = (
    "On: accelerators. Change: of the performance by time; s: by time x scale, on fewer"
    " accelerators; e: by energy. ~: the systems match by name only."
)


def previews(old: Side, new: Side) -> Listing:
    """Return the Previews of the old side with their successors on the new one."""
    order = tuple(Outcome)
    rows = sorted(successions(old, new), key=lambda row: order.index(row.outcome))
    by_outcome = {outcome: [row for row in rows if row.outcome is outcome] for outcome in Outcome}
    filled = {outcome: members for outcome, members in by_outcome.items() if members}
    groups = {outcome: _group(outcome, members) for outcome, members in filled.items()}
    sides = old.name if old is new else f"{old.name}, with successors in {new.name}"
    return Listing(
        name="previews",
        title=f"Previews of {sides}",
        summary=tuple(_summary(rows)),
        counts={outcome.value: len(members) for outcome, members in filled.items()},
        columns=_COLUMNS,
        groups=tuple(group for outcome, group in groups.items() if outcome.is_open),
        others=tuple(group for outcome, group in groups.items() if not outcome.is_open),
        names=NAMES,
        fields=tuple(map(_fields, rows)),
        brief=_BRIEF,
        marked=tuple(index for index, row in enumerate(rows) if row.outcome.is_open),
        legend=_LEGEND,
    )


def _summary(rows: Sequence[Succession]) -> Iterator[str]:
    if not rows:
        yield "no Previews"
        return
    counts = Counter(row.outcome for row in rows)
    unsettled = [outcome for outcome in Outcome if outcome.is_open]
    others = [o for o in Outcome if not (o.is_open or o is Outcome.MET)]
    parts = (("not settled", unsettled), ("need no successor yet", others))
    numbers = {name: sum(counts[outcome] for outcome in members) for name, members in parts}
    split = ", ".join(f"{number} {name}" for name, number in numbers.items() if number)
    met = f"{counts[Outcome.MET]} met by a successor"
    yield f"{wording.counted(len(rows), 'Preview')}: {', '.join(filter(None, (met, split)))}"
    for name, members in parts:
        if numbers[name]:
            yield f"{name}: {', '.join(f'{counts[o]} {o.value}' for o in members if counts[o])}"
    if unsure := sum(map(_is_unsure, rows)):
        yield f"{unsure} compared with systems that match by name only"


def _is_unsure(row: Succession) -> bool:
    return row.likeness is not None and not row.likeness.is_sure


def _group(outcome: Outcome, rows: Iterable[Succession]) -> Group:
    cells = [_cells(row) for row in rows]
    return Group(f"{outcome.value} ({len(cells)})", cells)


def _cells(row: Succession) -> list[Span]:
    preview, division = row.preview.row, row.preview.row.division.lower()
    name = f"{preview.round} {preview.submitter} {preview.benchmark}"
    texts = [
        name if division == "closed" else f"{name} ({division or 'no division'})",
        _scale(row.scale) if row.scale else wording.NOTHING,
        wording.minutes(preview.score_minutes),
        _available(row),
        _change(row),
    ]
    return [(text, PLAIN) for text in texts]


def _available(row: Succession) -> str:
    """Return the score of the successor, or the reason why there is no successor."""
    if row.successor is None:
        due = f"due in {row.due or 'a later round'}" if row.outcome is Outcome.NOT_DUE else ""
        return row.remark or due or wording.NOTHING
    successor = row.successor.row
    scale = row.successor_scale
    number = _scale(scale) if scale else wording.NOTHING
    mark = "~ " if _is_unsure(row) else ""
    remark = f"; {row.remark}" if row.remark else ""
    return (
        f"{mark}{wording.minutes(successor.score_minutes)} on {number} ({successor.round}){remark}"
    )


def _scale(scale: Scale) -> str:
    return str(scale.number) if scale.unit == "accelerator" else str(scale)


def _change(row: Succession) -> str:
    if row.percent is None:
        return wording.NOTHING
    mark = {"time x scale": " s", "energy": " e"}.get(row.by, "")
    digits = 0 if abs(row.percent) >= _MANY else 1
    return f"{row.percent:+.{digits}f} %{mark}"


def _fields(row: Succession) -> dict[str, Any]:
    preview, scale = row.preview.row, row.scale
    successor, successor_scale = row.successor.row if row.successor else None, row.successor_scale
    return {
        "outcome": row.outcome.value,
        "round": preview.round,
        "submitter": preview.submitter,
        "system": preview.system,
        "accelerator": preview.accelerator_model,
        "benchmark": preview.benchmark,
        "division": preview.division,
        "role": row.role.value,
        "scale": scale.number if scale else None,
        "unit": scale.unit if scale else None,
        "minutes": preview.score_minutes,
        "energy_joules": preview.energy_joules,
        "due": row.due,
        "new_round": successor and successor.round,
        "new_submitter": successor and successor.submitter,
        "new_system": successor and successor.system,
        "new_accelerator": successor and successor.accelerator_model,
        "new_benchmark": successor and successor.benchmark,
        "new_scale": successor_scale.number if successor_scale else None,
        "new_minutes": successor and successor.score_minutes,
        "new_energy_joules": successor and successor.energy_joules,
        "compared_by": row.by or None,
        "performance_percent": row.percent,
        "match": row.likeness.value if row.likeness else None,
        "remark": row.remark or None,
        "path": preview.path,
        "new_path": successor and successor.path,
    }


# ---- in the review of a round -------------------------------------------------------------


def section(reviewed: Round) -> Section:
    """Return the Previews whose successors are due in a round, and the Previews of the round."""
    side = reviewed.side
    rounds = {(entry.row.usage, entry.row.round) for entry in side.entries}
    due = (
        entry
        for entry in published_before(side)
        if (entry.row.usage, due_round(entry.row.usage, entry.row.round)) in rounds
    )
    listing = previews(Side("earlier rounds (published)", (*due, *side.entries)), side)
    return listed_section(listing, "Previews")
