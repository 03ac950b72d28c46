"""The files of a review, and of its packages: a page, JSON, Markdown by section, CSV by table."""

from __future__ import annotations

import json as jsonlib
import re
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any, TypeAlias

from msgspec import Meta, Struct, ValidationError, convert
from msgspec.structs import asdict, replace

from mlperf_pkg.checker.reading import guarded
from mlperf_pkg.commands.page.template import file, page_head
from mlperf_pkg.commands.review import (
    checklist,
    convergence,
    hyperparameters,
    objection_text,
    previews,
    resubmitted,
    submitters,
)
from mlperf_pkg.commands.review.round import ReviewedRound, ReviewSection, table_of_cells
from mlperf_pkg.errors import UserError
from mlperf_pkg.findings import Unchecked
from mlperf_pkg.infra.files import refuse_within, write_together
from mlperf_pkg.infra.paths import read_file, walk
from mlperf_pkg.infra.text import escape_html, escape_markdown, unused, visible
from mlperf_pkg.render import table as tables
from mlperf_pkg.render.table import HEAD, Column, Table, json_text, records
from mlperf_pkg.results import wording
from mlperf_pkg.results.report import as_json

FORMAT = "mlperf-pkg/review/1"
DATA = "review.json"
PAGE = "review.html"
README = "README.md"

_LONGEST = 80  # characters of the stem of a file
_LARGEST = 1 << 29  # bytes of a review
_WRAPPER = textwrap.TextWrapper(80, "  ", "    ", break_on_hyphens=False)
_MOST_LINES = 8  # of a section in the summary
_MOST_OF = {"objections": 16, "findings": 16}

_Part: TypeAlias = Callable[[ReviewedRound], ReviewSection]

PARTS: tuple[tuple[str, _Part], ...] = (
    ("objections", objection_text.section),
    ("findings", partial(submitters.findings_section, "findings")),
    ("noted", partial(submitters.findings_section, "noted")),
    ("convergence", convergence.section),
    ("resubmitted", resubmitted.section),
    ("previews", previews.section),
    ("assignments", submitters.assignments_section),
    ("calendar", objection_text.calendar_section),
    ("hyperparameters", hyperparameters.section),
    ("checklist", checklist.section),
    ("others", partial(submitters.findings_section, "others")),
    ("submitters", submitters.submitters_section),
)
"""The sections: what has to be settled first, and what is looked up by name last."""
_FIRST = 3  # sections before the problems


class Review(Struct, frozen=True):
    """What a review says: of a round that was checked, or as read from its JSON.

    ``head`` has the fields with which the JSON begins; ``submitters`` are the companies, each with
    the names of its submissions.
    """

    title: str
    head: Mapping[str, Any]
    problems: Sequence[str]
    submitters: Mapping[str, Sequence[str]]
    sections: Sequence[ReviewSection]

    @property
    def counts(self) -> str:
        """The first line: ``19 submitters, 184 result sets, 21 with errors, 9 objections``."""
        counts = self.head["counts"]
        counted = wording.counted
        first = (
            counted(counts["submitters"], "submitter"),
            counted(counts["result_sets"], "result set"),
        )
        last = f"{counts['with_errors']} with errors", counted(counts["objections"], "objection")
        return ", ".join((*first, *last))

    @property
    def names(self) -> dict[str, str]:
        """The names of the CSV files by section and table, safe for every file system."""
        stems: dict[str, str] = {}
        for path in (f"{s.name}/{name}" for s in self.sections for name in s.tables):
            stem = re.sub(r"[^a-z0-9_.]+", "-", path.lower())[:_LONGEST]
            stems[path] = unused(stem, stems.values())
        return {path: f"{stem}.csv" for path, stem in stems.items()}


def review_of(reviewed: ReviewedRound, sections: Sequence[ReviewSection]) -> Review:
    """Return the review of a round with these sections."""
    report = reviewed.report
    outcome = reviewed.outcome
    counts = {
        "submitters": reviewed.number,
        "result_sets": len(report.results),
        "with_errors": sum(row.id in reviewed.with_errors for row in report.results),
        "objections": len(outcome.objections) + len(outcome.new),
    }
    choices = {**asdict(reviewed.choices), "one_spelling": True}
    head = {name: getattr(report, name) for name in HEAD}
    head |= {"choices": choices, "counts": counts}
    return Review(reviewed.title, head, reviewed.problems, reviewed.submitters, sections)


def sections(
    reviewed: ReviewedRound, parts: Iterable[tuple[str, _Part]] = PARTS
) -> Iterator[ReviewSection]:
    """Yield all sections; a section that fails has only the reason, and does not affect others."""
    for name, part in parts:
        doing = f"writing the section {name}"
        section = guarded(".", doing, part, reviewed)
        if isinstance(section, Unchecked):
            why = (section.text,)
            section = ReviewSection(name, name.capitalize(), why, summary=why)
        yield section


def files_of(review: Review) -> dict[str, str]:
    """Return the files of a review by name."""
    files = {README: _readme(review), PAGE: page(review), DATA: json(review)}
    for section in review.sections:
        files[f"{section.name}.md"] = markdown(section)
        for name, table in section.tables.items():
            files[review.names[f"{section.name}/{name}"]] = tables.csv(table)
    return dict(sorted(files.items()))


def _readme(review: Review) -> str:
    lines = [f"# {escape_markdown(review.title)}: review", "", review.counts, ""]
    for section in review.sections:
        link = f"[{escape_markdown(section.title)}]({section.name}.md)"
        lines.append(": ".join([f"- {link}", *map(escape_markdown, section.summary[:1])]))
    lines += ["", f"All sections: [one page]({PAGE}), [JSON]({DATA})."]
    if review.problems:
        lines += ["", "## Missing or unclear", ""]
        lines += [f"- {escape_markdown(text)}" for text in review.problems]
    return "\n".join(lines) + "\n"


# ---- formats ------------------------------------------------------------------------------


def markdown(section: ReviewSection) -> str:
    """Return a section as a document of Markdown; marked cells are bold."""
    parts = [f"# {escape_markdown(section.title)}", *map(escape_markdown, section.text)]
    for table in section.tables.values():
        parts.append(f"## {escape_markdown(table.title)}")
        if section.checks:
            items = ([escape_markdown(text) for text, _ in table.spans(row)] for row in table.rows)
            parts.append("\n".join(f"- [ ] {': '.join(item)}" for item in items))
            parts.append(escape_markdown(table.note))
        else:
            parts.append(tables.markdown(_headed(section, table)))
    return tables.document(*parts)


def _headed(section: ReviewSection, table: Table) -> Table:
    """Return a table with capitals in its headings; its data keep the keys of the columns.

    Names of hyperparameters and submitters, which are headings too, stay as they are.
    """

    def headed(column: Column) -> Column:
        is_name = section.name == "hyperparameters" and column.title != "rules"
        title = column.heading
        return column if is_name else replace(column, title=f"{title[:1].upper()}{title[1:]}")

    return replace(table, columns=list(map(headed, table.columns)))


def json(review: Review) -> str:
    """Return everything as JSON."""
    submitters = [{"name": name, "folders": folders} for name, folders in review.submitters.items()]
    document = {"format": FORMAT, "title": review.title, **review.head, "submitters": submitters}
    sections = [_section_json(section, review.names) for section in review.sections]
    return json_text({**document, "problems": review.problems, "sections": sections})


def _section_json(section: ReviewSection, files: Mapping[str, str]) -> dict[str, Any]:
    rows = [
        {
            "name": name,
            "title": table.title,
            "file": files[f"{section.name}/{name}"],
            "columns": [column.key for _, column in table.keyed],
            "rows": [as_json(table.values(row)) for row in table.rows],
            "marked": sorted(table.marked),
            "note": table.note,
        }
        for name, table in section.tables.items()
    ]
    names = ("name", "title", "text", "summary", "checks")
    return {**{name: getattr(section, name) for name in names}, "tables": rows}


class _TableJson(Struct):
    name: str
    title: str
    columns: list[str]
    rows: list[list[str | int | float | None]]
    marked: frozenset[tuple[int, int]]
    note: str


class _SectionJson(Struct):
    name: Annotated[str, Meta(pattern="^[a-z]+$")]  # the stem of a file
    title: str
    text: tuple[str, ...]
    summary: tuple[str, ...]
    checks: bool
    tables: list[_TableJson]

    def section(self) -> ReviewSection:
        fields = [asdict(table) for table in self.tables]
        made = {table.pop("name"): table_of_cells(**table) for table in fields}
        return ReviewSection(**{**asdict(self), "tables": made})


class _SubmitterJson(Struct):
    name: str
    folders: list[str]


class _ReviewJson(Struct):
    title: str
    tool: dict[str, str]
    usage: str
    round: str | None
    round_reason: str
    choices: dict[str, Any]
    counts: dict[str, int]
    problems: list[str]
    submitters: list[_SubmitterJson]
    sections: list[_SectionJson]


def read_review(folder: Path) -> Review:
    """Return the review that was written into a folder.

    Raises:
        UserError: there is none.
    """
    document = _document(folder)
    if document is None:
        raise UserError(f"{folder}: not a review; expected a folder that 'review' wrote")
    try:
        file_ = convert(document, _ReviewJson)
        parts = [section.section() for section in file_.sections]
        submitters = {item.name: item.folders for item in file_.submitters}
        head = {name: document[name] for name in (*HEAD, "choices", "counts")}
        review = Review(file_.title, head, file_.problems, submitters, parts)
        files_of(review)
    except (ValidationError, LookupError) as error:
        raise UserError(f"{folder / DATA}: not valid, or of another version: {error}") from error
    return review


# ---- the summary --------------------------------------------------------------------------


def summary(review: Review) -> str:
    """Return the text that the command prints: the counts, and a few lines of each section."""
    parts = [(s.title.lower(), s.summary, f"{s.name}.md") for s in review.sections]
    parts.insert(_FIRST, ("missing or unclear", tuple(review.problems), README))
    lines = [review.title, review.counts]
    for title, texts, file_ in parts:
        wrapped = [line for text in texts for line in _WRAPPER.wrap(visible(text))]
        most = _MOST_OF.get(title, _MOST_LINES)
        more = len(wrapped[most:])
        if more:
            wrapped[most - 1 :] = [f"  ... {more + 1} more lines: see {file_}"]
        lines += ["", title, *wrapped] if wrapped else []
    return "\n".join(lines) + "\n"


# ---- the page -----------------------------------------------------------------------------

_OPEN_ROWS = 40  # a table with more rows is folded


def page(review: Review) -> str:
    """Return the page."""
    title = f"{review.title}: review"
    links = (f'<a href="#{s.name}">{escape_html(s.title)}</a>' for s in review.sections)
    parts = [_section(section, review.names) for section in review.sections]
    if review.problems:
        items = "\n".join(f"<li>{escape_html(text)}</li>" for text in review.problems)
        parts.insert(_FIRST, f'<h2>Missing or unclear</h2>\n<ul class="problems">\n{items}\n</ul>')
    tool = review.head["tool"]
    round_ = review.head["round"]
    reason = f"round {round_}: " * bool(round_) + review.head["round_reason"]
    return file("review.html").format(
        head=page_head(title, "\n".join(map(file, ("page.css", "review.css")))),
        title=escape_html(title),
        counts=escape_html(review.counts),
        reason=escape_html(reason),
        links="\n".join(links),
        body="\n".join(parts),
        version=escape_html(tool["version"]),
        reference=escape_html(tool["reference"]),
    )


def _section(section: ReviewSection, files: Mapping[str, str]) -> str:
    heading = f'<h2 id="{section.name}" tabindex="-1">{escape_html(section.title)}</h2>'
    paragraphs = (f"<p>{escape_html(text)}</p>" for text in section.text)
    tables_by_file = ((files[f"{section.name}/{n}"], table) for n, table in section.tables.items())
    parts = (_table(section, table, file_) for file_, table in tables_by_file)
    body = "\n".join([heading, *paragraphs, *parts])
    return f'<section aria-labelledby="{section.name}">\n{body}\n</section>'


def _table(section: ReviewSection, table: Table, csv: str) -> str:
    label = escape_html(f"{section.title}: {table.title}")
    remark = f'{escape_html(table.note)} <a href="{escape_html(csv)}">CSV</a>'.strip()
    folded = "" if len(table.rows) > _OPEN_ROWS or section.checks else " open"
    about = f'<span class="about">{wording.counted(len(table.rows), "row")}</span>'
    return (
        f"<details{folded}>\n<summary><h3>{escape_html(table.title)}</h3> {about}</summary>\n"
        f'<div class="scroll" role="region" aria-label="{label}" tabindex="0">\n'
        f"{tables.html(_headed(section, table), headed=True, checks=section.checks)}\n</div>\n"
        f'<p class="remark">{remark}</p>\n</details>'
    )


# ---- the folder ---------------------------------------------------------------------------


def refuse_early(folder: Path, inputs: Sequence[str], *, force: bool) -> None:
    """Check before the work starts that the folder can be written.

    Raises:
        UserError: the folder is in an input, or exists and must not be replaced.
    """
    refuse_within(folder, inputs)
    if not (folder.exists() or folder.is_symlink()):
        return
    written = _written(folder)
    if written is None:
        raise UserError(f"{folder}: exists, but is not a review; choose another --output")
    if not force:
        raise UserError(f"{folder}: exists already; --force replaces it")
    for entry in walk(folder):
        if entry.folder or entry.link is not None or entry.path not in written:
            reason = f"not replaced, as {entry.path} is not part of the review"
            raise UserError(f"{folder}: {reason}; move it away or choose another --output")


def write_review(folder: Path, files: Mapping[str, str], *, force: bool) -> None:
    """Write a review as a whole, or leave everything as it is.

    Raises:
        UserError: the folder exists and must not be replaced, or it cannot be written.
    """
    write_together(folder, files, replace=force, former=_written(folder) or ())


def _written(folder: Path) -> set[str] | None:
    """Return the files that an earlier review lists; None if the folder is not a review."""
    try:
        sections = (_document(folder) or {})["sections"]
        data = {table["file"] for section in sections for table in section["tables"]}
        return {README, PAGE, DATA, *data, *(f"{section['name']}.md" for section in sections)}
    except (TypeError, LookupError):
        return None


def _document(folder: Path) -> Any:
    """Return the JSON of a review; None if the folder is not one."""
    try:
        document = jsonlib.loads(read_file(folder / DATA, _LARGEST))
        is_one = document["format"] == FORMAT and not folder.is_symlink()
    except (OSError, ValueError, TypeError, LookupError, RecursionError):
        return None
    return document if is_one else None


# ---- a package for each submitter ---------------------------------------------------------

_WHOLE = ("calendar",)  # sections that concern all
_LEFT_OUT = ("findings", "noted", "others")  # of all; the checklists have them, too
_TABLES = {"hyperparameters": ("outliers", "differing-runs")}  # the others compare all submitters


def packages_of(review: Review) -> dict[str, str]:
    """Return the files of all packages, each in a folder that is named after its submitter."""
    packages: dict[str, dict[str, str]] = {}
    for submitter in review.submitters:
        stem = re.sub(r"[^\w+-]+", "-", submitter).strip("-") or "submitter"
        packages[unused(stem, packages)] = files_of(_package(review, submitter))
    every = ((folder, item) for folder, files in packages.items() for item in files.items())
    return {f"{folder}/{name}": text for folder, (name, text) in every}


def _package(review: Review, submitter: str) -> Review:
    """Return the review without what concerns other submitters alone."""
    own = {submitter, *review.submitters[submitter]}
    others = {n for name, folders in review.submitters.items() for n in (name, *folders)} - own
    pairs = (r for r in _rows(review, "assignments", "pairs") if r["Reviewer"] == submitter)
    reviews = {folder for row in pairs for folder in str(row["Folders"]).split(", ")}
    names = _Names(own, others, reviews)
    sections = [names.section(s) for s in review.sections if s.name not in _LEFT_OUT]
    package = replace(
        review,
        title=f"{review.title}: {submitter}",
        problems=[text for text in review.problems if _names(text, own)],
        submitters={submitter: review.submitters[submitter]},
        sections=[section for section in sections if section.tables],
    )
    row = next(iter(_rows(package, "submitters", "table")), {})
    counts = {
        "submitters": 1,
        "result_sets": row.get("Results", 0),
        "with_errors": row.get("With errors", 0),
        "objections": sum(len(_rows(package, "objections", n)) for n in ("states", "errors")),
    }
    return replace(package, head={**review.head, "counts": counts})


class _Names(Struct, frozen=True):
    """The names that concern a submitter: its ``own``, and submissions that it ``reviews``."""

    own: set[str]
    others: set[str]
    reviews: set[str]

    def section(self, section: ReviewSection) -> ReviewSection:
        if section.name in _WHOLE:
            return section
        names = _TABLES.get(section.name, tuple(section.tables))
        made = {name: self._table(section, name) for name in names if name in section.tables}
        text = tuple(text for text in section.text if not _names(text, self.others))
        tables = {name: table for name, table in made.items() if table.rows}
        return replace(section, text=text, tables=tables, summary=())

    def _table(self, section: ReviewSection, name: str) -> Table:
        table = section.tables[name]
        if section.checks:  # the checklist of a submission
            return table if name in self.own | self.reviews else replace(table, groups=[])
        cells = [table.values(row) for row in table.rows]
        kept = [number for number, row in enumerate(cells) if any(map(self._concerns, row))]
        marked = frozenset((kept.index(row), place) for row, place in table.marked if row in kept)
        titles = [column.heading for _, column in table.keyed]
        rows = [[self._own_part(cell) for cell in cells[number]] for number in kept]
        note = "" if _names(table.note, self.others) else table.note
        return table_of_cells(titles, rows, title=table.title, marked=marked, note=note)

    def _concerns(self, cell: Any) -> bool:
        """Return whether a cell is a name of the submitter, a list with one, or a path below it."""
        parts = cell.split(", ") if isinstance(cell, str) else []
        return any(part in self.own or part.split("/")[0] in self.own for part in parts)

    def _own_part(self, cell: Any) -> Any:
        """Return a cell without the other names of a list."""
        parts = cell.split(", ") if isinstance(cell, str) else []
        return ", ".join(filter(self.own.__contains__, parts)) or cell


def _names(text: str, names: Iterable[str]) -> bool:
    """Return whether one of these names is in the text."""
    return any(re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text) for name in names)


def _rows(review: Review, section: str, table: str) -> Sequence[dict[str, Any]]:
    tables = (s.tables.get(table) for s in review.sections if s.name == section)
    return next((records(rows) for rows in tables if rows), [])
