"""The summary of a round for publication: its rows, the score of each result set, and submitters.

The rules round results "normally" and do not give a number of decimals; the published tables have
three (training_rules, Result rounding). The rules rank submitters by their number of results, for
the assignments of the review (submission_rules, Required reviews). They do not define ranks of
scores, and the columns of the tables are to be determined (submission_rules, Results table
content). Ranks are therefore not in the tables, but in other files. Equal values share a rank, and
the ranks after it are skipped: 1, 2, 2, 4.
"""

import math
from bisect import bisect_left
from collections.abc import Hashable, Iterator, Sequence
from operator import attrgetter, itemgetter

from msgspec import Struct
from msgspec.structs import replace

from mlperf_pkg.checker.values import Checked
from mlperf_pkg.checks.descriptions import CATEGORIES, category
from mlperf_pkg.checks.result_sets import SetResult
from mlperf_pkg.commands.results.systems import PrivateIds, System, known_cells, own_id, url_cells
from mlperf_pkg.findings import Basis, Finding, Verdict
from mlperf_pkg.published.model import known_division
from mlperf_pkg.render.table import by_key
from mlperf_pkg.results import wording
from mlperf_pkg.results.report import Report, name
from mlperf_pkg.rulebook.load import load_round
from mlperf_pkg.rulebook.model import DIVISIONS
from mlperf_pkg.submission.membership import spellings, submitters
from mlperf_pkg.submission.model import SCALINGS

UNKNOWN = "no known category"
_INVALID = "not valid"
UNDIVIDED = "no division"

_, WEAK = SCALINGS
_MOST_CODES = 3  # of each basis in the remarks on a score


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


def publication(
    checked: Checked, systems: Sequence[System], ids: PrivateIds, verdict: Basis = Basis.OFFICIAL
) -> Publication:
    """Return the summary of a round; ``ids`` has an id for each of its systems.

    ``verdict`` (OFFICIAL or RULES) decides which result sets have a score in the tables.
    """
    report = checked.report
    round_ = report.round or ""
    rows = [_row(system, ids[system.key], report.usage, round_) for system in systems]
    pairs = list(zip(systems, rows, strict=True))
    unranked = [_score(result, row, verdict) for system, row in pairs for result in system.results]
    scores = _ranked(unranked, rows)
    benchmarks = load_round(report.usage, round_).benchmarks
    others = dict.fromkeys(score.benchmark for score in scores if not score.reason)
    return Publication(
        tool=report.tool,
        usage=report.usage,
        round=round_,
        round_reason=report.round_reason,
        benchmarks=tuple(dict.fromkeys((*benchmarks, *others))),
        verdict=verdict,
        rows=tuple(replace(row, remarks=_remarks_on(row, scores)) for row in rows),
        scores=scores,
        submitters=_submitters(pairs, scores),
        missing=tuple(_missing(pairs, scores, report)),
        notes=tuple(_notes(pairs, scores, ids, report.tool["reference"])),
    )


def anonymous(result: Publication) -> Publication:
    """Return a summary in which private ids stand for rows, without anything that names a system.

    Counts and scores stay, and the codes of findings, but not their messages.
    """
    names = ("submitter", "system", "processor", "accelerator", "software")
    emptied = dict.fromkeys((*names, "details_url", "code_url", "notes"), "")
    rows = [replace(row, key=row.id, gaps=(), **emptied) for row in result.rows]
    scores = []
    for score in sorted(result.scores, key=lambda s: (s.id, s.benchmark, s.scaling or "")):
        code = ": ".join(score.reason.split(": ")[:2])
        reason = code if code.startswith(_INVALID) else score.reason and "no score"
        scores.append(replace(score, path="", row=score.id, reason=reason))
    return replace(
        result,
        round_reason="",
        rows=tuple(sorted(rows, key=attrgetter("id"))),
        scores=tuple(scores),
        submitters=(),
        missing=tuple(f"{s.id}, {s.benchmark}: {s.reason}" for s in scores if s.reason),
        official_gaps=(),
        notes=(),
    )


# ---- rows -----------------------------------------------------------------------------------


def _row(system: System, private_id: str, usage: str, round_: str) -> Row:
    cells, gaps = known_cells(system.description)
    urls = url_cells(system.submitter, system.name, usage, round_)
    of_description = known_division(cells["division"])
    of_logs = known_division(system.division)
    division = of_description or of_logs
    status = category(cells["availability"])
    usable = {"division": of_description in DIVISIONS, "availability": bool(status), "notes": True}
    return Row(
        key=system.key,
        id=private_id,
        submitter=cells["submitter"] or system.submitter,
        system=cells["system"] or system.name,
        division=division if division in DIVISIONS else UNDIVIDED,
        category=CATEGORIES.get(status or "", UNKNOWN),
        processor=cells["host_processor_model_name"],
        processors=_count(cells["host_processors_count"]),
        accelerator=cells["accelerator_model_name"],
        accelerators=_count(cells["accelerators_count"]),
        software=cells["framework"],
        details_url=str(urls["details_url"]),
        code_url=str(urls["code_url"]),
        notes=cells["notes"],
        gaps=tuple(name for name in cells if not usable.get(name, name not in gaps)),
    )


def _count(text: str) -> int | None:
    return int(text) if text else None


def _remarks_on(row: Row, scores: Sequence[Score]) -> str:
    """Return the remarks on the scores of a row in the tables, by benchmark."""
    own = (score for score in scores if score.row == row.key and not score.reason)
    return " | ".join(f"{score.benchmark}: {score.remarks}" for score in own if score.remarks)


# ---- scores ---------------------------------------------------------------------------------


def _score(result: SetResult, row: Row, verdict: Basis) -> Score:
    of_set = result.row
    by_rules = verdict is Basis.RULES or of_set.verdict.official is Verdict.NOT_CHECKED
    # The score of the official tables; that by the rules if they cannot have one.
    official = None if by_rules or of_set.scaling == WEAK else of_set.official_minutes
    minutes = of_set.score_minutes if official is None else official
    reason = _reason(result, minutes, by_rules=by_rules)
    minutes = None if reason else minutes
    same = ("path", "benchmark", "scaling", "number_of_models", "instance_scale")
    return Score(
        **{name: getattr(of_set, name) for name in same},
        row=row.key,
        id=row.id,
        minutes=minutes,
        published_minutes=rounded(minutes),
        energy_joules=None if reason else of_set.energy_joules,
        reason=reason,
        official=of_set.verdict.official,
        waived=tuple(sorted({f.code for f in result.observations if f.waiver is not None})),
        remarks=_remarks(result.observations),
    )


def _reason(result: SetResult, minutes: float | None, *, by_rules: bool) -> str:
    """Return the reason why the tables omit the score of a result set, empty for one they have.

    Unless ``by_rules``, only errors that are both official and by the rules count: scores were
    published that today's checker rejects and the rules of the round allow.
    """
    row = result.row
    failing = [finding for finding in result.observations if finding.fails(Basis.RULES)]
    failing = [finding for finding in failing if by_rules or finding.basis is Basis.BOTH]
    if row.verdict.rules is Verdict.FAIL and failing:
        others = f", and {len(failing) - 1} more" if len(failing) > 1 else ""
        return f"{_INVALID}: {failing[0].code}: {failing[0].text}{others}"
    if minutes is None:
        return row.score_note or "no score"
    accepted = {Verdict.PASS} if by_rules else {Verdict.PASS, Verdict.FAIL}
    if row.verdict.rules in accepted or (not by_rules and row.verdict.official is Verdict.PASS):
        return ""
    return _INVALID if row.verdict.rules is Verdict.FAIL else "not checked"


def _remarks(findings: Sequence[Finding]) -> str:
    """Return the codes of errors: ``rules: RUN157, SET122; official: SEED101``.

    After ``official`` are those of the checker alone.
    """
    errors = {
        "rules": {f.code for f in findings if f.fails(Basis.RULES)},
        "official": {f.code for f in findings if f.is_error and f.basis is Basis.OFFICIAL},
    }
    shown = ((basis, wording.shortened(sorted(c), _MOST_CODES)) for basis, c in errors.items())
    return "; ".join(f"{basis}: {codes}" for basis, codes in shown if codes)


def rounded(value: float | None) -> float | None:
    """Return a number rounded for publication, None if it is not finite."""
    return None if value is None or not math.isfinite(value) else float(wording.minutes(value))


def ranks(values: Sequence[tuple[Hashable, float]]) -> list[tuple[int, int]]:
    """Return the rank of each value in its group, 1 for the smallest, and the size of the group."""
    groups = by_key(sorted(values, key=itemgetter(1)))
    return [(1 + bisect_left(groups[g], value), len(groups[g])) for g, value in values]


def _ranked(scores: Sequence[Score], rows: Sequence[Row]) -> tuple[Score, ...]:
    """Return the scores with their ranks, within division, category, scaling and benchmark."""
    tables = {row.key: (row.division, row.category) for row in rows}
    values = {
        score.path: ((*tables[score.row], score.scaling, score.benchmark), score.published_minutes)
        for score in scores
        if score.published_minutes is not None
    }
    by_path = dict(zip(values, ranks([*values.values()]), strict=True))
    places = ((score, by_path.get(score.path, (None, None))) for score in scores)
    return tuple(replace(score, rank=rank, of=of) for score, (rank, of) in places)


# ---- submitters and remarks -----------------------------------------------------------------


_Pairs = Sequence[tuple[System, Row]]


def _submitters(pairs: _Pairs, scores: Sequence[Score]) -> tuple[Submitter, ...]:
    """Return the submitters with a result set, by rank."""
    by_name = by_key((system.submitter, row) for system, row in pairs if system.results)
    described = {name: {row.submitter for row in own} for name, own in by_name.items()}
    unranked = []
    for submitter, names in submitters(by_name, described).items():
        own = {row.key: row.accelerators for name in names for row in by_name[name]}
        reasons = [score.reason for score in scores if score.row in own]
        largest = max((size for size in own.values() if size is not None), default=None)
        unranked.append(Submitter(submitter, len(reasons), reasons.count(""), largest))
    ranking = ranks([("", -submitter.results) for submitter in unranked])
    ranked = [replace(s, rank=rank) for s, (rank, _) in zip(unranked, ranking, strict=True)]
    return tuple(sorted(ranked, key=lambda submitter: (submitter.rank, submitter.name)))


def _missing(pairs: _Pairs, scores: Sequence[Score], report: Report) -> Iterator[str]:
    for system, row in pairs:
        if not system.results:
            yield f"{system.folder.place.label}: no result set; expected <benchmark>/result_*.txt"
        elif not system.description:
            yield f"{system.path}: missing, or not a system description"
        elif row.gaps:
            yield f"{system.path}: no usable {', '.join(row.gaps)}"
    for empty in report.result_sets:
        if not empty.runs_found:
            yield f"{empty.path}: no log; a folder without logs is not a result"
    for score in scores:
        if score.reason:
            yield f"{score.path}: {score.reason}"


def _notes(
    pairs: _Pairs, scores: Sequence[Score], ids: PrivateIds, reference: str
) -> Iterator[str]:
    """Yield what the chair should look at, or decide, such as the number of waived scores."""
    for names in spellings(row.submitter for _, row in pairs).values():
        if len(names) > 1:
            yield f"one submitter in {len(names)} spellings: {', '.join(names)}"
    for system, _ in pairs:
        own = own_id(system)
        used = ids[system.key]
        if own and own != used:
            file = f"{system.folder.place.label}/privateid.json"
            yield f"{file}: {own} is not used; {name(str(ids.path))} has {used}"
    shown = [score for score in scores if not score.reason]
    numbers = {
        f"that {reference} rejects": sum(score.official is Verdict.FAIL for score in shown),
        "with errors by the written rules": sum("rules:" in score.remarks for score in shown),
        "with waived findings": sum(bool(score.waived) for score in shown),
    }
    yield from (f"result sets in the tables {what}: {n}" for what, n in numbers.items() if n)
