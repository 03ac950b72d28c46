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
from collections.abc import Hashable, Iterator, Mapping, Sequence
from operator import attrgetter, itemgetter
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from mlperf_pkg.checker.values import Checked
from mlperf_pkg.checks.descriptions import CATEGORIES, category
from mlperf_pkg.checks.result_sets import SetResult
from mlperf_pkg.commands.notice import ShownResult, shown_results
from mlperf_pkg.commands.results.systems import (
    PrivateIds,
    SubmittedSystem,
    known_cells,
    own_id,
    url_cells,
)
from mlperf_pkg.findings import Basis, Finding, Verdict
from mlperf_pkg.published.model import known_division
from mlperf_pkg.render.table import by_key
from mlperf_pkg.results import wording
from mlperf_pkg.results.report import Report, name
from mlperf_pkg.rulebook.load import load_round
from mlperf_pkg.rulebook.model import DIVISIONS
from mlperf_pkg.submission.model import SCALINGS
from mlperf_pkg.submission.submitters import spellings

UNKNOWN = "no known category"
_INVALID = "not valid"
UNDIVIDED = "no division"

_, WEAK = SCALINGS
_MOST_IDS = 10
_MOST_CODES = 3  # of each basis in the remarks on a score
_NAMING = (
    "submitter",
    "system",
    "processor",
    "accelerator",
    "software",
    "details_url",
    "code_url",
    "notes",
)
"""Fields of a row that may name its system."""


class PublishedRow(Struct, frozen=True):
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


class PublishedScore(Struct, frozen=True):
    """The score of a result set in the tables; else ``reason`` says why they omit it.

    ``minutes`` has full precision, ``published_minutes`` is rounded for publication. ``rank`` is
    among ``of`` scores of the same table and benchmark; equal published scores share a rank.
    ``official`` is the official verdict, ``waived`` are the codes of waived findings, ``remarks``
    those of errors. A score ``is_verified`` if it was published and its logs are those of the
    record.
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
    is_verified: bool = False


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
    rows: tuple[PublishedRow, ...]
    scores: tuple[PublishedScore, ...]
    submitters: tuple[Submitter, ...]
    missing: tuple[str, ...] = ()
    official_gaps: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """The title of the summary."""
        return f"{wording.edition(self.usage, self.round)} results"

    @property
    def without_score(self) -> list[PublishedScore]:
        """The result sets that have no score in the tables."""
        return [score for score in self.scores if score.reason]


def publication(
    checked: Checked,
    systems: Sequence[SubmittedSystem],
    ids: PrivateIds,
    verdict: Basis = Basis.OFFICIAL,
) -> Publication:
    """Return the summary of a round; ``ids`` has an id for each of its systems.

    ``verdict`` (OFFICIAL or RULES) decides which result sets have a score in the tables.
    """
    report = checked.report
    round_ = report.round or ""
    shown = shown_results(checked)
    pairs = []
    unranked = []
    for system in systems:
        row = _row(system, ids[system.key], report.usage, round_)
        pairs.append((system, row))
        unranked += [_score(result, row, verdict, shown) for result in system.results]
    rows = [row for _, row in pairs]
    scores = _ranked(unranked, rows)
    benchmarks = dict.fromkeys(load_round(report.usage, round_).benchmarks)
    benchmarks |= dict.fromkeys(score.benchmark for score in scores if not score.reason)
    return Publication(
        tool=report.tool,
        usage=report.usage,
        round=round_,
        round_reason=report.round_reason,
        benchmarks=tuple(benchmarks),
        verdict=verdict,
        rows=tuple(replace(row, remarks=_remarks_on(row, scores)) for row in rows),
        scores=scores,
        submitters=_submitters(rows, scores, report),
        missing=tuple(_missing(pairs, scores, report)),
        notes=tuple(_notes(pairs, scores, ids, report.tool["reference"])),
    )


def anonymous(result: Publication) -> Publication:
    """Return a summary in which private ids stand for rows, without anything that names a system.

    Rounded scores stay, and the codes of findings, but not their messages. Numbers of processors
    and accelerators are left out: the largest system of a round is known by its size.
    """
    hidden: dict[str, Any] = dict.fromkeys(_NAMING, "")
    hidden |= {"gaps": (), "processors": None, "accelerators": None}
    rows = [replace(row, key=row.id, **hidden) for row in result.rows]
    scores = []
    for score in result.scores:
        scores.append(
            replace(
                score,
                path="",
                row=score.id,
                minutes=score.published_minutes,
                instance_scale=None,
                reason=_anonymous_reason(score),
            )
        )
    scores.sort(key=lambda score: (score.id, score.benchmark, score.scaling or ""))
    missing = []
    for score in scores:
        if score.reason:
            missing.append(f"{score.id}, {score.benchmark}: {score.reason}")
    return replace(
        result,
        round_reason="",
        rows=tuple(sorted(rows, key=attrgetter("id"))),
        scores=tuple(scores),
        submitters=(),
        missing=tuple(missing),
        official_gaps=(),
        notes=(),
    )


def identifying(result: Publication) -> list[str]:
    """Return what could still reveal the submitters in an anonymous summary of this one."""
    rows = {row.key: row for row in result.rows}
    submitters: dict[Hashable, set[str]] = {}
    ids: dict[Hashable, set[str]] = {}
    for score in result.scores:
        row = rows[score.row]
        kinds: list[Hashable] = [(row.division, row.category, score.benchmark, score.scaling)]
        if score.energy_joules is not None:
            kinds.append("energy")
        for kind in kinds:
            submitters.setdefault(kind, set()).add(row.submitter)
            ids.setdefault(kind, set()).add(row.id)
    alone = set[str]()
    for kind, names in submitters.items():
        if len(names) == 1:
            alone |= ids[kind]
    remarks = [
        "The scores of a row could still identify the submitter, if another summary has the"
        " same scores"
    ]
    if alone:
        why = (
            "the only submitter in a division, category and benchmark, or to the only submitter"
            " there with energy"
        )
        remarks.append(
            f"These ids could also be identified, as each belongs to {why}:"
            f" {wording.shortened(sorted(alone), _MOST_IDS)}"
        )
    return remarks


def _anonymous_reason(score: PublishedScore) -> str:
    """Return the reason without the message of a finding; its code stays."""
    reason = ": ".join(score.reason.split(": ")[:2])
    if reason.startswith(_INVALID):
        return reason
    if score.reason:
        return "no score"
    return ""


# ---- rows -----------------------------------------------------------------------------------


def _row(system: SubmittedSystem, private_id: str, usage: str, round_: str) -> PublishedRow:
    cells, missing = known_cells(system.description)
    gaps = {*missing} - {"notes"}
    described = known_division(cells["division"])
    if described not in DIVISIONS:
        gaps.add("division")
    division = described or known_division(system.division)
    if division not in DIVISIONS:
        division = UNDIVIDED
    status = category(cells["availability"])
    if not status:
        gaps.add("availability")
    urls = url_cells(system.submitter, system.name, usage, round_)
    return PublishedRow(
        key=system.key,
        id=private_id,
        submitter=cells["submitter"] or system.submitter,
        system=cells["system"] or system.name,
        division=division,
        category=CATEGORIES.get(status or "", UNKNOWN),
        processor=cells["host_processor_model_name"],
        processors=_count(cells["host_processors_count"]),
        accelerator=cells["accelerator_model_name"],
        accelerators=_count(cells["accelerators_count"]),
        software=cells["framework"],
        details_url=str(urls["details_url"]),
        code_url=str(urls["code_url"]),
        notes=cells["notes"],
        gaps=tuple(name for name in cells if name in gaps),
    )


def _count(text: str) -> int | None:
    if not text:
        return None
    return int(text)


def _remarks_on(row: PublishedRow, scores: Sequence[PublishedScore]) -> str:
    """Return the remarks on the scores of a row in the tables, by benchmark."""
    remarks = []
    for score in scores:
        if score.row == row.key and score.remarks and not score.reason:
            remarks.append(f"{score.benchmark}: {score.remarks}")
    return " | ".join(remarks)


# ---- scores ---------------------------------------------------------------------------------


def _score(
    result: SetResult, row: PublishedRow, verdict: Basis, shown: Mapping[str, ShownResult]
) -> PublishedScore:
    set_row = result.row
    by_rules = verdict is Basis.RULES or set_row.verdict.official is Verdict.NOT_CHECKED
    minutes = set_row.score_minutes
    energy_joules = set_row.energy_joules
    reason = _reason(result, minutes, by_rules=by_rules)
    if reason:
        minutes = None
        energy_joules = None
    waived = {finding.code for finding in result.observations if finding.waiver is not None}
    return PublishedScore(
        path=set_row.path,
        row=row.key,
        id=row.id,
        benchmark=set_row.benchmark,
        scaling=set_row.scaling,
        minutes=minutes,
        published_minutes=rounded(minutes),
        energy_joules=energy_joules,
        number_of_models=set_row.number_of_models,
        instance_scale=set_row.instance_scale,
        reason=reason,
        official=set_row.verdict.official,
        waived=tuple(sorted(waived)),
        remarks=_remarks(result.observations),
        is_verified=shown[set_row.id].is_verified,
    )


def _reason(result: SetResult, minutes: float | None, *, by_rules: bool) -> str:
    """Return the reason why the tables omit the score of a result set, empty for one they have.

    Unless ``by_rules``, only errors that are both official and by the rules count: scores were
    published that today's checker rejects and the rules of the round allow.
    """
    row = result.row
    verdict = row.verdict
    failing = [finding for finding in result.observations if finding.fails(Basis.RULES)]
    if not by_rules:
        failing = [finding for finding in failing if finding.basis is Basis.BOTH]
    if verdict.rules is Verdict.FAIL and failing:
        reason = f"{_INVALID}: {failing[0].code}: {failing[0].text}"
        if len(failing) > 1:
            reason += f", and {wording.counted(len(failing) - 1, 'more error')}"
        return reason
    if minutes is None:
        return row.score_note or "no score"
    if verdict.rules is Verdict.PASS:
        return ""
    if not by_rules and (verdict.rules is Verdict.FAIL or verdict.official is Verdict.PASS):
        return ""
    if verdict.rules is Verdict.FAIL:
        return _INVALID
    return "not checked"


def _remarks(findings: Sequence[Finding]) -> str:
    """Return the codes of errors: ``rules: RUN157, SET122; official: SEED101``.

    After ``official`` are those of the checker alone.
    """
    by_rules = set()
    official = set()
    for finding in findings:
        if finding.fails(Basis.RULES):
            by_rules.add(finding.code)
        if finding.is_error and finding.basis is Basis.OFFICIAL:
            official.add(finding.code)
    remarks = []
    if by_rules:
        remarks.append(f"rules: {wording.shortened(sorted(by_rules), _MOST_CODES, 'code')}")
    if official:
        remarks.append(f"official: {wording.shortened(sorted(official), _MOST_CODES, 'code')}")
    return "; ".join(remarks)


def rounded(value: float | None) -> float | None:
    """Return a number rounded for publication, None if it is not finite."""
    if value is None or not math.isfinite(value):
        return None
    return float(wording.minutes(value))


def ranks(values: Sequence[tuple[Hashable, float]]) -> list[tuple[int, int]]:
    """Return the rank of each value in its group, 1 for the smallest, and the size of the group."""
    groups = by_key(sorted(values, key=itemgetter(1)))
    ranked = []
    for key, value in values:
        group = groups[key]
        rank = 1 + bisect_left(group, value)
        ranked.append((rank, len(group)))
    return ranked


def _ranked(
    scores: Sequence[PublishedScore], rows: Sequence[PublishedRow]
) -> tuple[PublishedScore, ...]:
    """Return the scores with their ranks, within division, category, scaling and benchmark."""
    tables = {row.key: (row.division, row.category) for row in rows}
    values = {}
    for score in scores:
        if score.published_minutes is not None:
            group = (*tables[score.row], score.scaling, score.benchmark)
            values[score.path] = (group, score.published_minutes)
    by_path = dict(zip(values, ranks([*values.values()]), strict=True))
    ranked = []
    for score in scores:
        rank, of = by_path.get(score.path, (None, None))
        ranked.append(replace(score, rank=rank, of=of))
    return tuple(ranked)


# ---- submitters and remarks -----------------------------------------------------------------


_Pairs = Sequence[tuple[SubmittedSystem, PublishedRow]]


def _submitters(
    rows: Sequence[PublishedRow], scores: Sequence[PublishedScore], report: Report
) -> tuple[Submitter, ...]:
    """Return the submitters with a result set, by rank."""
    companies = {row.path: row.companies for row in report.result_sets}
    by_company: dict[str, list[PublishedScore]] = {}
    for score in scores:
        for company in companies[score.path]:
            by_company.setdefault(company, []).append(score)
    sizes = {row.key: row.accelerators for row in rows}
    unranked = []
    for company, company_scores in sorted(by_company.items()):
        unranked.append(_submitter(company, company_scores, sizes))
    return _by_rank(unranked)


def _by_rank(unranked: Sequence[Submitter]) -> tuple[Submitter, ...]:
    ranking = ranks([("", -submitter.results) for submitter in unranked])
    ranked = []
    for submitter, (rank, _) in zip(unranked, ranking, strict=True):
        ranked.append(replace(submitter, rank=rank))
    ranked.sort(key=lambda submitter: (submitter.rank, submitter.name))
    return tuple(ranked)


def _submitter(
    company: str, scores: Sequence[PublishedScore], sizes: Mapping[str, int | None]
) -> Submitter:
    reasons = [score.reason for score in scores]
    largest = max((sizes[score.row] or 0 for score in scores), default=0)
    return Submitter(company, len(reasons), reasons.count(""), largest or None)


def _missing(pairs: _Pairs, scores: Sequence[PublishedScore], report: Report) -> Iterator[str]:
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
    pairs: _Pairs, scores: Sequence[PublishedScore], ids: PrivateIds, reference: str
) -> Iterator[str]:
    """Yield what the chair should look at, or decide, such as the number of waived scores."""
    for names in spellings(row.submitter for _, row in pairs).values():
        if len(names) > 1:
            yield f"the name of one submitter has {len(names)} spellings: {', '.join(names)}"
    for system, _ in pairs:
        written = own_id(system)
        used = ids[system.key]
        if written and written != used:
            file = f"{system.folder.place.label}/privateid.json"
            yield f"{file}: {written} is not used; {name(str(ids.path))} has {used}"
    shown = [score for score in scores if not score.reason]
    numbers = {
        f"that {reference} rejects": sum(score.official is Verdict.FAIL for score in shown),
        "with errors by the written rules": sum("rules:" in score.remarks for score in shown),
        "with waived findings": sum(bool(score.waived) for score in shown),
    }
    for what, number in numbers.items():
        if number:
            yield f"the tables have {wording.counted(number, 'result set')} {what}"
