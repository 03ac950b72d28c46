"""The values of a publication: rows, the score of each result set, and submitters."""

from __future__ import annotations

from msgspec import Struct

from mlperf_pkg.findings import Basis, Verdict
from mlperf_pkg.results import wording

FORMAT = "mlperf-pkg/publication/1"

UNKNOWN = "no known category"
UNDIVIDED = "no division"


class Row(Struct, frozen=True):
    """A system of a submission: a row of the tables.

    ``key`` is the path of its submission and the name of its folder; ``id`` is its private id.
    Texts are empty and counts None if the system description lacks them; ``gaps`` are their names.
    ``remarks`` are those on its scores in the tables.
    """

    key: str
    id: str
    submitter: str
    system: str
    division: str
    category: str
    processor: str
    processors: int | None
    accelerator: str
    accelerators: int | None
    software: str
    details_url: str
    code_url: str
    notes: str
    gaps: tuple[str, ...] = ()
    remarks: str = ""


class Score(Struct, frozen=True):
    """The score of a result set in the tables; else ``reason`` says why they omit it.

    ``minutes`` has full precision, ``published_minutes`` is rounded for publication. ``rank`` is
    among ``of`` scores of the same table and benchmark; equal published scores share a rank.
    ``official`` is the official verdict, ``waived`` are the codes of waived findings, ``remarks``
    those of errors.
    """

    path: str
    row: str
    id: str
    benchmark: str
    scaling: str | None
    minutes: float | None
    published_minutes: float | None
    energy_joules: float | None
    number_of_models: int | None
    instance_scale: int | None
    reason: str
    official: Verdict
    waived: tuple[str, ...] = ()
    rank: int | None = None
    of: int | None = None
    remarks: str = ""


class Submitter(Struct, frozen=True):
    """A submitter, ranked by the number of its results; equal numbers share a rank."""

    name: str
    results: int
    valid: int
    largest: int | None
    rank: int = 0


class Publication(Struct, frozen=True):
    """The summary of a round.

    ``benchmarks`` are those of the round, in its order. ``missing`` lists everything that the
    tables lack, ``official_gaps`` the gaps of the official tables, ``notes`` the points that the
    chair should look at. ``verdict`` (OFFICIAL or RULES) decided which scores are in the tables.
    """

    tool: dict[str, str]
    usage: str
    round: str
    round_reason: str
    verdict: Basis
    benchmarks: tuple[str, ...]
    rows: tuple[Row, ...]
    scores: tuple[Score, ...]
    submitters: tuple[Submitter, ...]
    missing: tuple[str, ...] = ()
    official_gaps: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """The title of the summary."""
        return f"{wording.edition(self.usage, self.round)} results"

    @property
    def without_score(self) -> list[Score]:
        """The result sets that have no score in the tables."""
        return [score for score in self.scores if score.reason]
