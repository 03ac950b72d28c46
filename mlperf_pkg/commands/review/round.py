"""A round under review, its sections, and the sides of a comparison: as checked, or published.

A section has paragraphs and tables; a list has results across rounds, in all formats.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain
from operator import attrgetter
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from mlperf_pkg.checker.check import check
from mlperf_pkg.checker.values import Checked, Options
from mlperf_pkg.checks.descriptions import SystemFile, as_published
from mlperf_pkg.checks.resubmission import submitted_set
from mlperf_pkg.commands.notice import ShownResult, notice, published_result, score, shown_results
from mlperf_pkg.commands.review import objections
from mlperf_pkg.commands.review.calendar import calendar_here, calendar_of
from mlperf_pkg.commands.review.examined import Examined, ResultName
from mlperf_pkg.errors import UserError
from mlperf_pkg.findings import Finding, Unchecked, Verdict
from mlperf_pkg.infra.text import did_you_mean, escape_markdown, letters
from mlperf_pkg.published.model import PublishedSet, comparable, digests_of, log_hash, run_hash
from mlperf_pkg.published.results import PublishedResults, published_results, usable_results
from mlperf_pkg.render import table as tables
from mlperf_pkg.render.findings import View
from mlperf_pkg.render.table import HEADING, PLAIN, Column, RowGroup, Table, records, table_of
from mlperf_pkg.render.terminal import Terminal
from mlperf_pkg.results import wording
from mlperf_pkg.results.report import Report, ResultSetRow, SystemRow, description_path
from mlperf_pkg.rulebook.documents import usages
from mlperf_pkg.rulebook.load import codes, submission_date
from mlperf_pkg.rulebook.model import is_round_name, version_of
from mlperf_pkg.rulebook.rounds import TRAINING, round_of_tree
from mlperf_pkg.run.model import Run
from mlperf_pkg.run.relations import originals
from mlperf_pkg.submission.model import Submission
from mlperf_pkg.submission.submitters import SubmitterNames, companies

_NAMED = 3
_UNREAD_TREE = ("TREE108", "TREE109", "TREE111", "TREE112", "TREE114")
_UNREAD = ("CHECK", "LOG11", "SYS001", "SYS004", *_UNREAD_TREE)


class Choices(Struct, frozen=True):
    """The options that the chair chooses for a review.

    ``joint`` are the joint submissions, as A+B or FOLDER=A+B. ``excluded`` submitters have no
    assignments. ``seed`` breaks ties.
    """

    joint: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()
    seed: int = 0


class ReviewedRound(Struct, frozen=True, dict=True):
    """A checked round. ``problems`` are sentences about missing or unclear parts.

    ``previous`` is an earlier round; without it, the published record has those. ``outcome`` are
    the objections in the file of their states, and the errors that it does not name; it has the
    calendar.
    """

    checked: Checked
    choices: Choices = Choices()
    problems: tuple[str, ...] = ()
    previous: ReviewSide | None = None
    outcome: objections.ObjectionOutcome = objections.ObjectionOutcome(())

    @property
    def report(self) -> Report:
        """The report of the check."""
        return self.checked.report

    @property
    def title(self) -> str:
        """The name of the round: ``MLPerf Training 5.1``."""
        return wording.edition(self.report.usage, self.report.round)

    @property
    def submissions(self) -> tuple[Submission, ...]:
        """The submissions by name."""
        return tuple(sorted(self.checked.submissions, key=lambda submission: submission.name))

    @cached_property
    def submitters(self) -> Mapping[str, list[str]]:
        """The companies that submit, each with the names of the submissions that it has a part in.

        Raises:
            UserError: ``--joint`` names fewer than two companies, or an unknown submission.
        """
        folders: dict[str, set[str]] = {}
        for entry, of_entry in self.entries.items():
            for company in of_entry:
                folders.setdefault(company, set()).add(entry.folder)
        return {company: sorted(folders[company]) for company in sorted(folders)}

    @cached_property
    def results(self) -> Mapping[str, tuple[ResultSetRow, ...]]:
        """The result sets of each company, in the order of submissions and paths."""
        results: dict[str, list[ResultSetRow]] = {company: [] for company in self.submitters}
        for rows in self.sets.values():
            for row in rows:
                for company in self.companies[row.id]:
                    results[company].append(row)
        return {company: tuple(rows) for company, rows in results.items()}

    @cached_property
    def companies(self) -> Mapping[str, tuple[str, ...]]:
        """The companies that submit each result set, by its id."""
        return {set_id: self.entries[entry] for set_id, entry in self._names.items()}

    @cached_property
    def parts(self) -> Mapping[str, Mapping[str, Sequence[str]]]:
        """The systems of each company in submissions of which it has only a part, by name."""
        parts: dict[str, dict[str, list[str]]] = {}
        for company, results in self.results.items():
            own = {row.id for row in results}
            of_company: dict[str, list[str]] = {}
            for folder in self.submitters[company]:
                rows = self.sets[folder]
                if any(row.id not in own for row in rows):
                    systems = {row.system or "" for row in rows if row.id in own}
                    of_company[folder] = sorted(systems)
            parts[company] = of_company
        return parts

    def own_folders(self, company: str) -> list[str]:
        """Return the submissions of which all entries are those of one company."""
        shared = set[str]()
        for entry, of_entry in self.entries.items():
            if of_entry != (company,):
                shared.add(entry.folder)
        return [folder for folder in self.submitters[company] if folder not in shared]

    @cached_property
    def _names(self) -> Mapping[str, SubmitterNames]:
        """The names of the submitter of each result set, by its id, as ``--joint`` has them."""
        joint = self._joint_folders()
        names = {}
        for set_id, entry in self.report.submitter_names.items():
            described = joint.get(entry.folder, entry.described)
            names[set_id] = SubmitterNames(entry.folder, described)
        return names

    @cached_property
    def entries(self) -> Mapping[SubmitterNames, tuple[str, ...]]:
        """The companies of each entry, and of submissions without any."""
        joint = self._joint_folders()
        entries = [*self._names.values()]
        with_entries = {entry.folder for entry in entries}
        for submission in self.submissions:
            name = submission.name
            if name not in with_entries:
                entries.append(SubmitterNames(name, joint.get(name, "")))
        return companies(entries)

    def _joint_folders(self) -> dict[str, str]:
        """Return the submissions that ``--joint`` names, with their companies as A+B.

        Raises:
            UserError: as ``submitters``.
        """
        names = [submission.name for submission in self.submissions]
        joint = {}
        for text in self.choices.joint:
            folder, equals, partners = text.rpartition("=")
            named = list(filter(letters, partners.split("+")))
            if len(named) <= 1:
                needed = "expected A+B, or FOLDER=A+B for a folder with another name"
                raise UserError(f"--joint {text}: fewer than two companies; {needed}")
            if equals or letters(partners) in map(letters, names):
                joint[known_name(folder or partners, names, "--joint")] = partners
        return joint

    @property
    def number(self) -> int:
        """The number of submitters with a result set."""
        return sum(map(bool, self.results.values()))

    @cached_property
    def sets(self) -> Mapping[str, tuple[ResultSetRow, ...]]:
        """The result sets of each submission, by its name, in the order of their paths."""
        sets: dict[str, list[ResultSetRow]] = {item.name: [] for item in self.submissions}
        for row in sorted(self.report.result_sets, key=lambda row: row.path):
            if row.submitter in sets:
                sets[row.submitter].append(row)
        return {name: tuple(rows) for name, rows in sets.items()}

    @cached_property
    def with_errors(self) -> set[str | None]:
        """The ids of the result sets with an error that is not waived."""
        return {finding.set for finding in self.report.findings if finding.is_error}

    @cached_property
    def systems(self) -> Mapping[str, SystemRow]:
        """The system descriptions by path; ``description_path`` returns that of a result set."""
        return {system.path: system for system in self.report.systems}

    @cached_property
    def examined(self) -> Examined:
        """The check, with the names of what its findings are about."""
        return Examined(self.checked)

    @cached_property
    def side(self) -> ReviewSide:
        """The result sets with the hashes of their logs, to compare with other rounds."""
        return checked_side(self.title, self.checked, self.shown)

    @cached_property
    def shown(self) -> Mapping[str, ShownResult]:
        """The result sets with what must stand beside them, by id."""
        return shown_results(self.checked)

    @cached_property
    def earlier(self) -> ReviewSide:
        """The previous round, else all published ones; empty if these are unreadable (CHECK103)."""
        if self.previous is not None:
            return self.previous
        entries = () if usable_results() is None else record_side(self.report.usage).entries
        return ReviewSide("earlier rounds (published)", entries)


def known_name(name: str, names: Iterable[str], option: str) -> str:
    """Return the one of ``names`` that is spelt like ``name``.

    Raises:
        UserError: there is none; the message starts with the ``option``.
    """
    alike = [spelling for spelling in names if letters(spelling) == letters(name)]
    if alike:
        if name in alike:
            return name
        return alike[0]
    suggestion = did_you_mean(name, names) or f"; expected one of {', '.join(sorted(names))}"
    raise UserError(f"{option}: {name.strip()!r} is not a submitter of the round{suggestion}")


def read_round(
    path: str,
    options: Options,
    choices: Choices,
    previous: str | None = None,
    checked: Checked | None = None,
) -> ReviewedRound:
    """Check a round, or any folder of submissions, for its review, unless it is ``checked``.

    Raises:
        UserError: as ``check``, there is no submission, or the ``previous`` round is not earlier.
    """
    side = None
    if previous is not None:
        side = read_side(previous, replace(options, round=None))
    file, entries = _objections_here()
    dates = calendar_here()
    checked = checked or check([path], options)
    report = checked.report
    if dates is None and report.round is not None and report.usage in usages():
        dates = calendar_of(submission_date(report.usage, report.round))
    outcome = objections.judge(entries, Examined(checked), options, file)
    reviewed = ReviewedRound(checked, choices, (), side, replace(outcome, calendar=dates))
    if side is not None:
        _require_later(side, reviewed.side)
    if not reviewed.submissions:
        raise UserError(
            f"{path}: no submission; expected the folder of one round, with a folder for each"
            " submitter that has systems/ and results/"
        )
    return replace(reviewed, problems=tuple(_problems(reviewed)))


def _objections_here() -> tuple[Path, Sequence[objections.ObjectionEntry]]:
    """Return ``objections/objections.yaml``, else ``objections.yaml``, with what it contains."""
    path = Path("objections", objections.NAME)
    if not path.exists():
        path = Path(objections.NAME)
    return path, objections.read_entries(path) if path.exists() else ()


def _problems(reviewed: ReviewedRound) -> Iterator[str]:
    if reviewed.report.round is None:
        yield f"{reviewed.report.round_reason}; review each round by itself"
    for company in reviewed.submitters:
        names = reviewed.own_folders(company)
        if len(names) > 1:
            yield f"{wording.enumerated(names)} are counted as one submitter: {company}"
    if len(reviewed.submitters) == 1:
        yield (
            f"the round has only one submitter, {next(iter(reviewed.submitters))}, so nobody can"
            " review the results"
        )
    for name, rows in reviewed.sets.items():
        if not rows:
            yield f"{name}: no result set"
        without = [row for row in rows if description_path(row) not in reviewed.systems]
        if without:
            yield f"{name}: {_without_system(without)}"
    outside = [row.path for row in reviewed.report.result_sets if row.submitter is None]
    if outside:
        number = wording.counted(len(outside), "result set")
        yield f"{number} outside of all submissions: {wording.shortened(outside, _NAMED)}"
    yield from _unread(reviewed)


def _without_system(rows: Sequence[ResultSetRow]) -> str:
    sets = wording.counted(len(rows), "result set")
    systems = list(dict.fromkeys(str(row.system) for row in rows))
    description = f"description ({wording.shortened(systems, _NAMED)})"
    return f"{sets} without a system {description}, so division and accelerators are unknown"


def _unread(reviewed: ReviewedRound) -> Iterator[str]:
    """Yield the files that could not be read or checked, by code."""
    paths_by_code: dict[str, list[str]] = {}
    for finding in reviewed.report.findings:
        if isinstance(finding, Unchecked) or finding.code.startswith(_UNREAD):
            for place in finding.occurrences:
                paths_by_code.setdefault(finding.code, []).append(place.path)
    for code, paths in paths_by_code.items():
        files = list(dict.fromkeys(paths))
        number = wording.counted(len(files), "file")
        names = wording.shortened(files, _NAMED)
        yield f"{number} not read or checked ({code}, {codes()[code].title}): {names}"


# ---- sections -----------------------------------------------------------------------------

_DECIMALS = 3
_MARKED = "Ask the submitter about marked values."

Cell = str | int | float | None
"""The content of a table; None is an empty cell."""


class ReviewSection(Struct, frozen=True):
    """A part of a review. ``name`` is the stem of its files; ``text`` are paragraphs.

    ``tables`` are by the stem of their files, after that of the section; ``checks`` makes them
    lists of checkboxes. ``summary`` are the lines that the command prints. ``results`` are those of
    other rounds that it shows, ``derived`` its derived metrics, each with its basis.
    """

    name: str
    title: str
    text: tuple[str, ...] = ()
    tables: Mapping[str, Table] = {}
    summary: tuple[str, ...] = ()
    checks: bool = False
    results: Sequence[ShownResult] = ()
    derived: Sequence[str] = ()


def with_rows(tables: Mapping[str, Table]) -> dict[str, Table]:
    """Return the tables that are not empty."""
    return {name: table for name, table in tables.items() if table.rows}


def without_empty(table: Table) -> Table:
    """Return a table without the columns that have no value in any row."""
    rows = [table.values(row) for row in table.rows]
    kept = []
    for place, (_, column_) in enumerate(table.keyed):
        if any(row[place] is not None for row in rows):
            kept.append(column_)
    return replace(table, columns=kept)


def column(
    title: str, of: str | Callable[[Any], Any] | None = None, *, numbers: bool = False
) -> Column:
    """Return a column that has its title in data, too.

    ``of`` is the path of an attribute of the rows, or a function of a row.
    """
    getter = attrgetter(of) if isinstance(of, str) else of
    return Column(title, key=title, of=getter, numbers=numbers)


def data_column(key: str, path: str) -> Column:
    """Return a column of data: the value at a path of attributes, None if one of them is None."""

    def value(row: Any) -> Any:
        content = row
        for name in path.split("."):
            if content is None:
                return None
            content = getattr(content, name)
        return content

    return Column(key=key, of=value)


def table_of_cells(columns: Sequence[str], rows: Sequence[Sequence[Cell]], **more: Any) -> Table:
    """Return a table of cells; a column that contains nothing but numbers is one of numbers."""
    typed_columns = []
    for place, title in enumerate(columns):
        cells = [row[place] for row in rows if row[place] is not None]
        numbers = bool(cells) and all(isinstance(cell, int | float) for cell in cells)
        typed_columns.append(column(title, numbers=numbers))
    return table_of(typed_columns, rows, **more)


# ---- findings ---------------------------------------------------------------------------


class FindingRow(Struct, frozen=True):
    """A finding in a table, with the ``name`` of the result that it is about."""

    finding: Finding
    name: ResultName

    @property
    def runs(self) -> str | None:
        """Of how many runs it is: ``3 of 10``."""
        if self.finding.runs is None:
            return None
        return f"{self.finding.runs} of {self.finding.of_runs}"


FINDING_COLUMNS = (
    column("Severity", "finding.severity.value"),
    column("Code", "finding.code"),
    column("By", "finding.basis.value"),
    column("Submitter", "name.submitter"),
    column("System", "name.system"),
    column("Benchmark", "name.benchmark"),
    column("File", "name.file"),
    column("Line", lambda row: str(row.name.line) if row.name.line else None),
    column("Runs", "runs"),
    column("Found", "finding.text"),
    column("Rule", "finding.source"),
)


def finding_rows(findings: Iterable[Finding], examined: Examined) -> list[FindingRow]:
    """Return the rows of findings."""
    return [FindingRow(finding, examined.name_of(finding)) for finding in findings]


# ---- a list across rounds -----------------------------------------------------------------


class RoundListing(Struct, frozen=True):
    """Results across rounds, and the numbers of them by outcome (``counts``).

    Text shows the rows in groups; ``group_of`` returns the title of that of a row. The rows for
    which ``is_open`` is true have to be settled in the review; only verbose text shows others. A
    section of a review has the columns with the keys ``brief``. ``scores`` return the result set of
    a row, if any, by the key of the column that has its score; ``derived`` is as in a section.
    """

    name: str
    title: str
    summary: tuple[str, ...]
    counts: Mapping[str, int]
    columns: tuple[Column, ...]
    rows: Sequence[Any]
    group_of: Callable[[Any], str]
    is_open: Callable[[Any], bool]
    brief: tuple[str, ...]
    legend: str = ""
    scores: Mapping[str, Callable[[Any], SideEntry | None]] = {}
    derived: tuple[str, ...] = ()

    @property
    def results(self) -> list[ShownResult]:
        """The results whose scores it has."""
        results = []
        for row in self.rows:
            entries = filter(None, (entry_of(row) for entry_of in self.scores.values()))
            results += [entry.shown for entry in entries]
        return results

    def groups(self, *, are_open: bool) -> list[RowGroup]:
        """Return the rows that are open, or all others."""
        rows_by_title: dict[str, list[Any]] = {}
        for row in self.rows:
            if self.is_open(row) is are_open:
                rows_by_title.setdefault(self.group_of(row), []).append(row)
        return [RowGroup(f"{title} ({len(rows)})", rows) for title, rows in rows_by_title.items()]

    def section(self, title: str) -> ReviewSection:
        """Return a section of a review, with the ``brief`` columns that are not empty."""
        tables = {"table": self._brief_table()} if self.rows else {}
        return ReviewSection(
            self.name,
            title,
            self.summary,
            tables,
            self.summary,
            results=self.results,
            derived=self.derived,
        )

    def _brief_table(self) -> Table:
        rows = records(table_of(self.columns, self.rows))
        keys = [key for key in self.brief if any(row[key] is not None for row in rows)]
        cells = []
        for row in rows:
            cells.append([_rounded(row[key]) for key in keys])
        titles = [key.replace("_", " ").capitalize() for key in keys]
        marked = frozenset((place, 0) for place, row in enumerate(self.rows) if self.is_open(row))
        note = _MARKED if marked else ""
        unverified = set[tuple[int, int]]()
        for key in self.scores.keys() & keys:
            for number, row in enumerate(self.rows):
                entry = self.scores[key](row)
                if entry and not entry.shown.is_verified:
                    unverified.add((number, keys.index(key)))
        return table_of_cells(
            titles,
            cells,
            title=self.title,
            note=note,
            marked=marked,
            unverified=frozenset(unverified),
        )


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return round(value, _DECIMALS)
    return value


def text(listing: RoundListing, view: View) -> str:
    """Return the list for a terminal or a pipe, its summary first."""
    terminal = Terminal(view)
    terminal.paragraph((listing.title, HEADING))
    for line in listing.summary:
        terminal.paragraph((line, PLAIN))
    terminal.line()
    groups = listing.groups(are_open=True)
    if view.verbose:
        groups += listing.groups(are_open=False)
    if groups:
        terminal.table(Table(listing.columns, groups), apart=True)
        if listing.legend:
            terminal.paragraph((listing.legend, PLAIN))
    hidden = len(listing.rows) - sum(len(group.rows) for group in groups)
    if hidden:
        terminal.paragraph((f"{wording.counted(hidden, 'more row')}; --verbose shows all", PLAIN))
    return terminal.text()


def json(listing: RoundListing, _: View) -> str:
    """Return all rows as JSON."""
    rows = records(table_of(listing.columns, listing.rows))
    head = {"format": f"mlperf-pkg/review-{listing.name}/1", "title": listing.title}
    return tables.json_text({**head, "counts": listing.counts, listing.name: rows})


def csv(listing: RoundListing, _: View) -> str:
    """Return all rows as CSV."""
    return tables.csv(table_of(listing.columns, listing.rows))


def markdown(listing: RoundListing, _: View) -> str:
    """Return all rows as Markdown, the summary as a list."""
    groups = [*listing.groups(are_open=True), *listing.groups(are_open=False)]
    legend = listing.legend if groups else ""
    results = listing.results
    beside = notice(results, listing.derived) if results else []
    return tables.document(
        f"## {escape_markdown(listing.title)}",
        "\n".join(f"- {escape_markdown(line)}" for line in listing.summary),
        tables.markdown(Table(listing.columns, groups, note=legend)),
        *map(escape_markdown, beside),
    )


LISTING_FORMATS = {"text": text, "json": json, "markdown": markdown, "csv": csv}


# ---- the sides of a comparison ------------------------------------------------------------


class SideEntry(Struct, frozen=True, dict=True):
    """A result set of a side: its published fields, or those that would be published.

    ``logs`` are the hashes of its logs. Only a folder has the rest: the ``runs`` of these logs, the
    whole ``system``, whether the logs pass the ``official`` checker of their round, and what must
    stand ``beside`` its score. ``keys`` are those of each run, as ``matched`` finds them.
    """

    row: PublishedSet
    logs: tuple[int, ...]
    runs: tuple[Run, ...] = ()
    system: SystemFile | None = None
    official: Verdict | None = None
    keys: tuple[frozenset[Hashable], ...] = ()
    beside: ShownResult | None = None

    @property
    def shown(self) -> ShownResult:
        """What must stand beside its score; results of the record are verified."""
        return self.beside or published_result(self.row)

    @property
    def score(self) -> str:
        """The score in minutes, with ``unverified`` where it must say so."""
        return score(self.row.score_minutes, is_verified=self.shown.is_verified)

    @property
    def submitter_names(self) -> SubmitterNames:
        """The names of its submitter; the record has no descriptions."""
        described = self.system.submitter if self.system else None
        return SubmitterNames(self.row.submitter, described or "")

    @property
    def version(self) -> tuple[int, ...]:
        """The round, as numbers that can be compared."""
        return version_of(self.row.round)

    @property
    def name(self) -> str:
        """The round and the name of the set in it."""
        return f"{self.row.round} {self.row.name}"

    @cached_property
    def all_keys(self) -> frozenset[Hashable]:
        """The keys of all its runs."""
        return frozenset[Hashable]().union(*self.keys)

    def shared(self, other: SideEntry) -> int:
        """Return the number of its runs that certainly are in another set."""
        return sum(bool(sure_keys(run_keys & other.all_keys)) for run_keys in self.keys)


class EqualValues(Struct, frozen=True):
    """The key of a run with the values of one of a published set, which has no clock."""

    usage: str
    round: str
    name: str


def sure_keys(keys: Iterable[Hashable]) -> list[Hashable]:
    """Return the keys that show more of a run than that it has equal values."""
    return [key for key in keys if not isinstance(key, EqualValues)]


class ReviewSide(Struct, frozen=True):
    """The result sets of one argument; ``name`` is its name in messages."""

    name: str
    entries: tuple[SideEntry, ...]

    @property
    def newest(self) -> tuple[int, ...]:
        """The newest round, as numbers; empty if there is no result set."""
        return max((entry.version for entry in self.entries), default=())


def matched(old: ReviewSide, new: ReviewSide) -> tuple[ReviewSide, ReviewSide]:
    """Return the sides with the keys of their runs: the same runs share one.

    They are the same as in ``check``, whatever was edited in their logs; runs of a folder are found
    in the record, too. Two published sets have the same runs if logs or means are the same.
    """
    entries = (*old.entries, *new.entries)
    runs = chain.from_iterable(entry.runs for entry in entries)
    firsts = iter(originals(list(runs)))
    record = None
    if not all(entry.runs for entry in entries):
        record = usable_results()
    keyed = [replace(entry, keys=tuple(_keys(entry, firsts, record))) for entry in entries]
    number = len(old.entries)
    old_entries = tuple(keyed[:number])
    new_entries = tuple(keyed[number:])
    return ReviewSide(old.name, old_entries), ReviewSide(new.name, new_entries)


def _keys(
    entry: SideEntry, firsts: Iterator[int], record: PublishedResults | None
) -> Iterator[frozenset[Hashable]]:
    """Yield the keys of each run: its log, the first that is the same, the sets that have it."""
    row = entry.row
    mean = row.unscaled_minutes
    of_set = frozenset[Hashable]()
    if record and mean is not None:
        of_set |= {(row.usage, row.runs, comparable(mean))}
    for log, run in zip(entry.logs, entry.runs, strict=False):
        run_keys: list[Hashable] = [log, ("run", next(firsts))]
        if record:
            by_times = record.names_of_run(run_hash(run.fingerprint)) if run.fingerprint else ()
            run_keys += [(name.usage, name.round, name.name) for name in by_times]
            for name in record.names_of_run(None, run.evaluated, run.losses):
                run_keys.append(EqualValues(name.usage, name.round, name.name))
        yield of_set.union(run_keys)
    if not entry.runs:
        name_in_record = (row.usage, row.round, row.name)
        of_set |= {name_in_record, EqualValues(*name_in_record)}
        for log in entry.logs:
            yield of_set | {log}
        for _ in range(row.runs - len(entry.logs)):
            yield of_set


def read_sides(arguments: Sequence[str], options: Options) -> tuple[ReviewSide, ReviewSide]:
    """Return the old and the new side; without arguments, both are all published rounds.

    Raises:
        UserError: as ``read_side``, or the new side has no later round.
    """
    if not arguments:
        side = record_side(options.usage or options.config.usage or TRAINING)
        return side, side
    old, new = (read_side(argument, options) for argument in arguments)
    _require_later(old, new)
    return old, new


def read_proofs(argument: str, old: ReviewSide, options: Options) -> tuple[SideEntry, ...]:
    """Return the results of a folder, by the rules of the only round of the old side.

    Raises:
        UserError: as ``read_side``, or the old side has several rounds.
    """
    rounds = {entry.row.round for entry in old.entries}
    if len(rounds) != 1:
        raise UserError(f"{old.name} has several rounds; --proof needs one round as OLD")
    return read_side(argument, replace(options, round=rounds.pop())).entries


def _require_later(old: ReviewSide, new: ReviewSide) -> None:
    if new.newest <= min(entry.version for entry in old.entries):
        raise UserError(f"{new.name}: not later than {old.name}; expected OLD, then NEW")


def read_side(argument: str, options: Options) -> ReviewSide:
    """Return the result sets of a folder or, if there is none, of a published round of that name.

    Raises:
        UserError: as ``check``; it is neither a folder nor a published round.
    """
    usage = options.usage or options.config.usage or TRAINING
    round_ = None
    if is_round_name(argument):
        round_ = argument
    elif "/" not in argument:
        named = round_of_tree([argument])
        if named:
            usage = named[0] or usage
            round_ = named[1]
    if round_ and not Path(argument).exists():
        return record_side(usage, round_)
    side = checked_side(argument, check([argument], options))
    if not side.entries:
        raise UserError(f"{argument}: no result set; expected a folder of submissions or a round")
    return side


def record_side(usage: str, round_: str | None = None) -> ReviewSide:
    """Return the published result sets of a round, or of all rounds.

    Raises:
        UserError: no such round was published.
    """
    published = published_results()
    names = [item.name for item in published.provenance.rounds if item.usage == usage]
    if round_ and round_ not in names:
        reason = "no such round was published"
        if names and version_of(round_) > max(map(version_of, names)):
            reason = "the round is newer than the published results in mlperf-pkg"
        raise UserError(
            f"{round_}: not a folder, and {reason} (the rounds of {usage} are {', '.join(names)})"
        )
    hashes = published.hashes()
    entries = []
    for index, row in enumerate(published.sets):
        if row.usage == usage and round_ in (None, row.round):
            entries.append(SideEntry(row, hashes[index]))
    return ReviewSide(f"{round_ or 'all rounds'} (published)", tuple(entries))


def checked_side(
    name: str, checked: Checked, shown: Mapping[str, ShownResult] | None = None
) -> ReviewSide:
    """Return the result sets of a check; ``shown`` is as ``shown_results`` returns it."""
    if shown is None:
        shown = shown_results(checked)
    sources = {}
    for context in checked.contexts:
        for run in context.runs:
            if run.path in context.sources:
                sources[run.path] = context.sources[run.path]
    digests = digests_of(sources)
    entries = []
    for result, context in zip(checked.sets, checked.contexts, strict=True):
        row = as_published(result.row, context.runs, context.system)
        runs = tuple(run for run in context.runs if run.path in digests)
        logs = tuple(log_hash(digests[run.path]) for run in runs)
        official = submitted_set(context).official
        beside = shown[result.row.id]
        entries.append(SideEntry(row, logs, runs, context.system, official, beside=beside))
    return ReviewSide(name, tuple(entries))
