"""``review audits``: the result sets that are candidates for an audit, drawn with a seed."""

import hashlib
from operator import attrgetter

from mlperf_pkg.commands.review.round import ReviewSide, RoundListing, SideEntry, data_column
from mlperf_pkg.render.table import Column
from mlperf_pkg.results import wording

_COLUMNS = (
    Column("Result set", of=attrgetter("row.name")),
    Column("Accelerators", numbers=True, key="accelerators", of=attrgetter("row.accelerators")),
    Column("Minutes", numbers=True, of=attrgetter("score")),
    data_column("minutes", "row.score_minutes"),
    data_column("round", "row.round"),
    data_column("submitter", "row.submitter"),
    data_column("system", "row.system"),
    data_column("benchmark", "row.benchmark"),
    data_column("division", "row.division"),
    data_column("path", "row.path"),
)


def audits(side: ReviewSide, seed: int, number: int) -> RoundListing:
    """Return a number of result sets with a score, of different submitters as far as possible.

    Who knows the seed and the results of the round can draw them again.
    """

    def lot(entry: SideEntry) -> bytes:
        text = f"{seed} {entry.row.round} {entry.row.path}"
        return hashlib.sha256(text.encode("utf-8", "backslashreplace")).digest()

    scored = sorted((entry for entry in side.entries if entry.row.score_minutes), key=lot)
    firsts: dict[str, SideEntry] = {}
    for entry in scored:
        firsts.setdefault(entry.row.submitter, entry)
    others = [entry for entry in scored if firsts[entry.row.submitter] is not entry]
    drawn = [*firsts.values(), *others][:number]
    total = wording.counted(len(scored), "result set")
    return RoundListing(
        name="audits",
        title=f"Audit candidates of {side.name}, drawn with seed {seed}",
        summary=(
            f"{len(drawn)} of {total} with a score, of different submitters as far as possible",
            "the same seed and the same results give the same candidates",
        ),
        counts={"drawn": len(drawn), "result_sets": len(scored)},
        columns=(*_COLUMNS, Column(key="seed", of=lambda _: seed)),
        rows=drawn,
        group_of=lambda _: "drawn",
        is_open=lambda _: True,
        brief=(),
        scores={"minutes": lambda entry: entry},
    )
