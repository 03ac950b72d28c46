"""The rows and scores of a round, from a check."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from posixpath import commonpath

from msgspec import Struct
from msgspec.structs import replace

from mlperf_pkg.checker.values import Checked
from mlperf_pkg.checks.described import CATEGORIES, category
from mlperf_pkg.checks.result_sets import SetResult
from mlperf_pkg.checks.systems import SystemFile
from mlperf_pkg.commands.official_tables.specs import known_cells, url_cells
from mlperf_pkg.commands.publication.ids import Candidate, PrivateIds, hashed_text, own_id
from mlperf_pkg.commands.publication.model import (
    UNDIVIDED,
    UNKNOWN,
    Publication,
    Row,
    Score,
    Submitter,
)
from mlperf_pkg.commands.publication.ranks import ranks, rounded
from mlperf_pkg.errors import UserError
from mlperf_pkg.findings import Basis, Finding, Verdict
from mlperf_pkg.infra.paths import ListedPath
from mlperf_pkg.published.model import known_division
from mlperf_pkg.results import wording
from mlperf_pkg.results.report import Report, ResultSetRow, name
from mlperf_pkg.rulebook.load import load_round
from mlperf_pkg.rulebook.model import DIVISIONS
from mlperf_pkg.submission.membership import submitters
from mlperf_pkg.submission.model import SCALINGS, Submission, SystemFolder

_, WEAK = SCALINGS
_MOST_CODES = 3  # of each basis in the remarks on a score


class Tested(Struct, frozen=True):
    """A folder of results before its row has an id.

    ``path`` is the path of its system description, ``logged`` the division in its logs.
    """

    key: str
    path: str
    submitter: str
    folder: SystemFolder
    system: SystemFile | None
    results: tuple[SetResult, ...]
    logged: str

    @property
    def description(self) -> Mapping[str, object]:
        """The fields of the system description, empty if it cannot be read."""
        return (self.system and self.system.contents) or {}

    @property
    def candidate(self) -> Candidate:
        """The row for which an id is chosen."""
        return Candidate(
            key=self.key,
            text=hashed_text(self.description) if self.description else self.key,
            system=self.folder.place.name,
            own=own_id(self.folder.private_id),
        )


def systems_with_results(argument: str, checked: Checked) -> list[Tested]:
    """Return the systems of all submissions in ``argument``, in the order of their keys.

    Raises:
        UserError: there is no submission, or the submissions are of several rounds.
    """
    submissions = [submission for source in checked.inputs for submission in source.submissions]
    if not submissions:
        raise UserError(
            f"{argument}: no submission; expected <submitter>/systems and <submitter>/results"
        )
    if checked.report.round is None:
        raise UserError(
            f"{argument}: submissions of several rounds; expected one round, or --round"
        )
    systems = {system.path: system for system in checked.systems}
    sets = {result.row.path: result for result in checked.sets}
    divisions = {run.path: run.division for run in checked.report.runs}
    root = _root(submissions)
    tested = [
        _tested(submission, folder, systems, sets, divisions, root=root)
        for submission in submissions
        for folder in submission.tested
    ]
    return sorted(tested, key=lambda system: system.key)


def _root(submissions: Sequence[Submission]) -> str:
    """Return the common prefix of all labels in an archive, empty for a folder."""
    if not isinstance(submissions[0].place.path, ListedPath):
        return ""
    return commonpath([submission.place.folder.label for submission in submissions])


def _tested(
    submission: Submission,
    folder: SystemFolder,
    systems: Mapping[str, SystemFile],
    sets: Mapping[str, SetResult],
    divisions: Mapping[str, str],
    *,
    root: str,
) -> Tested:
    system = folder.place.name
    submitter = submission.place.label.removeprefix(root).lstrip("/") or submission.name
    path = submission.place.child("systems").child(f"{system}.json").label
    results = tuple(
        sets[files.place.label]
        for files in submission.result_sets
        if files.system == system
        and files.place.label in sets
        and sets[files.place.label].row.runs_found
    )
    logged = next((divisions[run] for result in results for run in result.runs), "")
    return Tested(
        key=f"{submitter}/{system}",
        path=path,
        submitter=submission.name,
        folder=folder,
        system=systems.get(path),
        results=results,
        logged=logged,
    )


def publication(
    checked: Checked,
    systems: Sequence[Tested],
    ids: PrivateIds,
    verdict: Basis = Basis.OFFICIAL,
) -> Publication:
    """Return the summary of a round; ``ids`` has an id for each of its systems.

    ``verdict`` (OFFICIAL or RULES) decides which result sets have a score in the tables.
    """
    report = checked.report
    round_ = report.round or ""
    rows = tuple(_row(system, ids[system.key], report.usage, round_) for system in systems)
    scores = _ranked(
        [
            _score(result, row, verdict)
            for row, system in zip(rows, systems, strict=True)
            for result in system.results
        ],
        rows,
    )
    benchmarks = load_round(report.usage, round_).benchmarks
    others = dict.fromkeys(score.benchmark for score in scores if not score.reason)
    return Publication(
        tool=report.tool,
        usage=report.usage,
        round=round_,
        round_reason=report.round_reason,
        benchmarks=tuple(dict.fromkeys((*benchmarks, *others))),
        verdict=verdict,
        rows=tuple(_remarked(rows, scores)),
        scores=scores,
        submitters=_submitters(systems, rows, scores),
        missing=tuple(_missing(systems, rows, scores, report)),
        notes=(
            *_spellings(rows),
            *_other_ids(systems, ids),
            *_verdicts(scores, report.tool["reference"]),
        ),
    )


# ---- rows -----------------------------------------------------------------------------------


def _row(system: Tested, private_id: str, usage: str, round_: str) -> Row:
    cells, gaps = known_cells(system.description)
    folder = system.folder.place.name
    urls = url_cells({"submitter": system.submitter}, folder, usage, round_)
    of_description, of_logs = known_division(cells["division"]), known_division(system.logged)
    division = of_description or of_logs
    status = category(cells["availability"])
    usable = {
        "division": of_description in DIVISIONS,
        "availability": status is not None,
        "notes": True,
    }
    return Row(
        key=system.key,
        id=private_id,
        submitter=cells["submitter"] or system.submitter,
        system=cells["system"] or folder,
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


# ---- scores ---------------------------------------------------------------------------------


def _score(result: SetResult, row: Row, verdict: Basis) -> Score:
    of_set = result.row
    by_rules = verdict is Basis.RULES or of_set.verdict.official is Verdict.NOT_CHECKED
    minutes = _minutes(of_set, by_rules=by_rules)
    reason = _reason(result, minutes, by_rules=by_rules)
    minutes = None if reason else minutes
    return Score(
        path=of_set.path,
        row=row.key,
        id=row.id,
        benchmark=of_set.benchmark,
        scaling=of_set.scaling,
        minutes=minutes,
        published_minutes=rounded(minutes),
        energy_joules=None if reason else of_set.energy_joules,
        number_of_models=of_set.number_of_models,
        instance_scale=of_set.instance_scale,
        reason=reason,
        official=of_set.verdict.official,
        waived=tuple(sorted({f.code for f in result.observations if f.waiver is not None})),
        remarks=_remarks(result.observations),
    )


def _minutes(row: ResultSetRow, *, by_rules: bool) -> float | None:
    """Return the score of the official tables; that by the rules if they cannot have one."""
    if by_rules or row.scaling == WEAK or row.official_minutes is None:
        return row.score_minutes
    return row.official_minutes


def _reason(result: SetResult, minutes: float | None, *, by_rules: bool) -> str:
    """Return the reason why the tables omit the score of a result set, empty for one they have.

    Unless ``by_rules``, only errors that are both official and by the rules count: scores were
    published that today's checker rejects and the rules of the round allow.
    """
    row = result.row
    failing = [
        finding
        for finding in result.observations
        if finding.fails(Basis.RULES) and (by_rules or finding.basis is Basis.BOTH)
    ]
    if row.verdict.rules is Verdict.FAIL and failing:
        others = f", and {len(failing) - 1} more" if len(failing) > 1 else ""
        return f"not valid: {failing[0].code}: {failing[0].text}{others}"
    if minutes is None:
        return row.score_note or "no score"
    accepted = {Verdict.PASS} if by_rules else {Verdict.PASS, Verdict.FAIL}
    if row.verdict.rules in accepted or (not by_rules and row.verdict.official is Verdict.PASS):
        return ""
    return "not valid" if row.verdict.rules is Verdict.FAIL else "not checked"


def _remarks(findings: Sequence[Finding]) -> str:
    """Return the codes of errors: ``rules: RUN157, SET122; official: SEED101``.

    After ``official`` are those of the checker alone.
    """
    errors = {
        "rules": {f.code for f in findings if f.fails(Basis.RULES)},
        "official": {f.code for f in findings if f.is_error and f.basis is Basis.OFFICIAL},
    }
    return "; ".join(
        f"{basis}: {wording.shortened(sorted(codes), _MOST_CODES)}"
        for basis, codes in errors.items()
        if codes
    )


def _remarked(rows: Sequence[Row], scores: Sequence[Score]) -> Iterator[Row]:
    """Yield the rows with the remarks on their scores in the tables, by benchmark."""
    for row in rows:
        own = (s for s in scores if s.row == row.key and s.remarks and not s.reason)
        yield replace(row, remarks=" | ".join(f"{s.benchmark}: {s.remarks}" for s in own))


def _ranked(scores: Sequence[Score], rows: Sequence[Row]) -> tuple[Score, ...]:
    """Return the scores with their ranks, within division, category, scaling and benchmark."""
    tables = {row.key: (row.division, row.category) for row in rows}
    values = {
        index: ((*tables[score.row], score.scaling, score.benchmark), score.published_minutes)
        for index, score in enumerate(scores)
        if score.published_minutes is not None
    }
    by_index = dict(zip(values, ranks(list(values.values())), strict=True))
    return tuple(
        replace(score, rank=by_index[index][0], of=by_index[index][1])
        if index in by_index
        else score
        for index, score in enumerate(scores)
    )


# ---- submitters and remarks -----------------------------------------------------------------


def _submitters(
    systems: Sequence[Tested], rows: Sequence[Row], scores: Sequence[Score]
) -> tuple[Submitter, ...]:
    """Return the submitters with a result set, by rank."""
    by_row: dict[str, list[Score]] = {}
    for score in scores:
        by_row.setdefault(score.row, []).append(score)
    by_name: dict[str, list[Row]] = {}
    for system, row in zip(systems, rows, strict=True):
        if system.results:
            by_name.setdefault(system.submitter, []).append(row)
    unranked = [
        _submitter(name, [row for spelling in spellings for row in by_name[spelling]], by_row)
        for name, spellings in submitters(by_name).items()
    ]
    ranking = ranks([("", -submitter.results) for submitter in unranked])
    ranked = [replace(s, rank=rank) for s, (rank, _) in zip(unranked, ranking, strict=True)]
    return tuple(sorted(ranked, key=lambda submitter: (submitter.rank, submitter.name)))


def _submitter(name: str, rows: Sequence[Row], scores: Mapping[str, Sequence[Score]]) -> Submitter:
    own = [score for row in rows for score in scores[row.key]]
    sizes = [row.accelerators for row in rows if row.accelerators is not None]
    return Submitter(
        name=name,
        results=len(own),
        valid=sum(not score.reason for score in own),
        largest=max(sizes, default=None),
    )


def _missing(
    systems: Sequence[Tested], rows: Sequence[Row], scores: Sequence[Score], report: Report
) -> Iterator[str]:
    for system, row in zip(systems, rows, strict=True):
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


def _spellings(rows: Sequence[Row]) -> Iterator[str]:
    for names in submitters(row.submitter for row in rows).values():
        if len(names) > 1:
            yield f"one submitter in {len(names)} spellings: {', '.join(names)}"


def _verdicts(scores: Sequence[Score], reference: str) -> Iterator[str]:
    """Yield the numbers of scores in the tables that require a decision of the chair."""
    shown = [score for score in scores if not score.reason]
    if rejected := sum(score.official is Verdict.FAIL for score in shown):
        yield f"result sets in the tables that {reference} rejects: {rejected}"
    if by_rules := sum("rules:" in score.remarks for score in shown):
        yield f"result sets in the tables with errors by the written rules: {by_rules}"
    if waived := sum(bool(score.waived) for score in shown):
        yield f"result sets in the tables with waived findings: {waived}"


def _other_ids(systems: Sequence[Tested], ids: PrivateIds) -> Iterator[str]:
    for system in systems:
        own = system.candidate.own
        if own and own != ids[system.key]:
            file = f"{system.folder.place.label}/privateid.json"
            yield f"{file}: {own} is not used; {name(str(ids.path))} has {ids[system.key]}"
