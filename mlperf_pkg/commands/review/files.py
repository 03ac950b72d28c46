"""The files of a review, and of its packages: a page, Markdown, JSON, and CSV by table."""

from __future__ import annotations

import json as jsonlib
import re
import textwrap
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, TypeAlias

from msgspec import Meta, Struct, ValidationError, convert
from msgspec.structs import asdict, replace

from mlperf_pkg.checker.reading import guarded
from mlperf_pkg.commands.notice import marked, notice
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
from mlperf_pkg.render.table import HEAD, Table, json_text, records
from mlperf_pkg.results import wording
from mlperf_pkg.results.report import as_json

FORMAT = "mlperf-pkg/review/1"
DATA = "review.json"
PAGE = "review.html"
README = "README.md"
TABLES = "tables"  # the folder of CSV

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
    the names of its submissions; ``parts`` are the systems of each in submissions of which it has
    only a part, by name. ``notice`` is what must stand beside its results.
    """

    title: str
    head: Mapping[str, Any]
    problems: Sequence[str]
    submitters: Mapping[str, Sequence[str]]
    sections: Sequence[ReviewSection]
    parts: Mapping[str, Mapping[str, Sequence[str]]] = {}
    notice: Sequence[str] = ()

    @property
    def counts(self) -> str:
        """The first line: ``19 submitters, 184 result sets, 21 with errors, 9 objections``.

        Objections that nobody has filed yet are possible ones.
        """
        counts = self.head["counts"]
        filed = counts["objections"] - counts["possible_objections"]
        words = [
            wording.counted(counts["submitters"], "submitter"),
            wording.counted(counts["result_sets"], "result set"),
            f"{counts['with_errors']} with errors",
        ]
        if filed:
            words.append(wording.counted(filed, "objection"))
        words.append(wording.counted(counts["possible_objections"], "possible objection"))
        return ", ".join(words)

    @property
    def names(self) -> dict[str, str]:
        """The paths of the CSV files by section and table, safe for every file system."""
        stems: dict[str, str] = {}
        for section in self.sections:
            for name in section.tables:
                path = f"{section.name}/{name}"
                stem = re.sub(r"[^a-z0-9_.]+", "-", path.lower())[:_LONGEST]
                stems[path] = unused(stem, stems.values())
        return {path: f"{TABLES}/{stem}.csv" for path, stem in stems.items()}


def review_of(reviewed: ReviewedRound, sections: Sequence[ReviewSection]) -> Review:
    """Return the review of a round with these sections."""
    report = reviewed.report
    outcome = reviewed.outcome
    set_ids = {row.id for row in report.result_sets}
    counts = {
        "submitters": reviewed.number,
        "result_sets": len(report.result_sets),
        "with_errors": len(set_ids & reviewed.with_errors),
        "objections": len(outcome.objections) + len(outcome.new),
        "possible_objections": outcome.possible,
    }
    choices = {**asdict(reviewed.choices), "one_spelling": True}
    head = {name: getattr(report, name) for name in HEAD}
    head |= {"choices": choices, "counts": counts}
    results = [*reviewed.shown.values()]
    derived: list[str] = []
    for section in sections:
        results += section.results
        derived += section.derived
    return Review(
        title=reviewed.title,
        head=head,
        problems=reviewed.problems,
        submitters=reviewed.submitters,
        sections=sections,
        parts=reviewed.parts,
        notice=notice(results, derived),
    )


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
    names = review.names
    for section in review.sections:
        for name, table in section.tables.items():
            files[names[f"{section.name}/{name}"]] = tables.csv(table)
    return dict(sorted(files.items()))


def _readme(review: Review) -> str:
    links = []
    for section in review.sections:
        anchor = re.sub(r"[^a-z0-9]+", "-", section.title.lower())
        line = f"- [{escape_markdown(section.title)}](#{anchor})"
        if section.summary:
            line += f": {escape_markdown(section.summary[0])}"
        links.append(line)
    parts = [
        f"# {escape_markdown(marked(review.title))}: review",
        review.counts,
        "\n".join(links),
        f"This review is also [one page]({PAGE}) and [JSON]({DATA}), and {TABLES}/ has its tables"
        " as CSV files.",
    ]
    if review.problems:
        parts.append("## Missing or unclear")
        parts.append("\n".join(f"- {escape_markdown(text)}" for text in review.problems))
    beside = map(escape_markdown, review.notice)
    return tables.document(*parts, *map(markdown, review.sections), *beside)


# ---- formats ------------------------------------------------------------------------------


def markdown(section: ReviewSection) -> str:
    """Return a section as a part of a document of Markdown; marked cells are bold."""
    parts = [f"## {escape_markdown(section.title)}", *map(escape_markdown, section.text)]
    for table in section.tables.values():
        parts.append(f"### {escape_markdown(table.title)}")
        if section.checks:
            parts.append(_checkboxes(table))
            parts.append(escape_markdown(table.note))
        else:
            parts.append(tables.markdown(table))
    return "\n\n".join(filter(None, parts))


def _checkboxes(table: Table) -> str:
    lines = []
    for row in table.rows:
        cells = [escape_markdown(text) for text, _ in table.spans(row)]
        lines.append(f"- [ ] {': '.join(cells)}")
    return "\n".join(lines)


def json(review: Review) -> str:
    """Return everything as JSON."""
    submitters = []
    for name, folders in review.submitters.items():
        parts = review.parts.get(name, {})
        submitters.append({"name": name, "folders": folders, "parts": parts})
    files = review.names
    sections = [_section_json(section, files) for section in review.sections]
    document = {"format": FORMAT, "title": review.title, **review.head, "submitters": submitters}
    document |= {"problems": review.problems, "notice": review.notice, "sections": sections}
    return json_text(document)


def _section_json(section: ReviewSection, files: Mapping[str, str]) -> dict[str, Any]:
    rows = []
    for name, table in section.tables.items():
        rows.append(
            {
                "name": name,
                "title": table.title,
                "file": files[f"{section.name}/{name}"],
                "columns": [column.key for _, column in table.keyed],
                "rows": [as_json(table.values(row)) for row in table.rows],
                "marked": sorted(table.marked),
                "unverified": sorted(table.unverified),
                "note": table.note,
            }
        )
    return {
        "name": section.name,
        "title": section.title,
        "text": section.text,
        "summary": section.summary,
        "checks": section.checks,
        "tables": rows,
    }


class _TableJson(Struct):
    name: str
    title: str
    columns: list[str]
    rows: list[list[str | int | float | None]]
    marked: frozenset[tuple[int, int]]
    note: str
    unverified: frozenset[tuple[int, int]] = frozenset()


class _SectionJson(Struct):
    name: Annotated[str, Meta(pattern="^[a-z]+$")]  # the stem of a file
    title: str
    text: tuple[str, ...]
    summary: tuple[str, ...]
    checks: bool
    tables: list[_TableJson]

    def section(self) -> ReviewSection:
        made = {}
        for table in self.tables:
            made[table.name] = table_of_cells(
                table.columns,
                table.rows,
                title=table.title,
                marked=table.marked,
                note=table.note,
                unverified=table.unverified,
            )
        return ReviewSection(self.name, self.title, self.text, made, self.summary, self.checks)


class _SubmitterJson(Struct):
    name: str
    folders: list[str]
    parts: dict[str, list[str]] = {}


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
    notice: list[str] = []


def read_review(folder: Path) -> Review:
    """Return the review that was written into a folder.

    Raises:
        UserError: there is none.
    """
    document = _document(folder)
    if document is None:
        raise UserError(f"{folder}: not a review; expected a folder that 'review' wrote")
    try:
        read = convert(document, _ReviewJson)
        parts = [section.section() for section in read.sections]
        submitters = {item.name: item.folders for item in read.submitters}
        submitter_parts = {item.name: item.parts for item in read.submitters}
        head = {name: document[name] for name in (*HEAD, "choices", "counts")}
        review = Review(
            title=read.title,
            head=head,
            problems=read.problems,
            submitters=submitters,
            sections=parts,
            parts=submitter_parts,
            notice=read.notice,
        )
        files_of(review)
    except (ValidationError, LookupError) as error:
        raise UserError(f"{folder / DATA}: not valid, or of another version: {error}") from error
    return review


# ---- the summary --------------------------------------------------------------------------


def summary(review: Review) -> str:
    """Return the text that the command prints: the counts, and a few lines of each section."""
    parts = []
    for section in review.sections:
        parts.append(_summarized(section.title.lower(), section.summary))
    parts.insert(_FIRST, _summarized("missing or unclear", review.problems))
    lines = [review.title, review.counts, *chain.from_iterable(parts)]
    return "\n".join(lines) + "\n"


def _summarized(title: str, texts: Iterable[str]) -> list[str]:
    """Return the lines of a section, of which the page has more; none for an empty section.

    What does not fit is left out text by text, never in the middle of one.
    """
    wrapped = [_WRAPPER.wrap(visible(text)) for text in texts]
    most = _MOST_OF.get(title, _MOST_LINES)
    lines: list[str] = []
    left = len(wrapped)
    for text_lines in wrapped:
        last_line = int(left > 1)  # which says how many are left
        if lines and len(lines) + len(text_lines) + last_line > most:
            lines.append(f"  ... {left} more: see {PAGE}")
            break
        lines += text_lines
        left -= 1
    if lines:
        return ["", title, *lines]
    return []


# ---- the page -----------------------------------------------------------------------------

_OPEN_ROWS = 40  # a table with more rows is folded


def page(review: Review) -> str:
    """Return the page."""
    title = f"{marked(review.title)}: review"
    files = review.names
    links = []
    parts = []
    for section in review.sections:
        links.append(f'<a href="#{section.name}">{escape_html(section.title)}</a>')
        parts.append(_section(section, files))
    if review.problems:
        parts.insert(_FIRST, _problems(review.problems))
    tool = review.head["tool"]
    reason = review.head["round_reason"]
    if review.head["round"]:
        reason = f"round {review.head['round']}: {reason}"
    styles = "\n".join([file("page.css"), file("review.css")])
    script = file("review.js")
    return file("review.html").format(
        head=page_head(title, styles, script),
        script=script,
        notice="\n".join(f"<p>{escape_html(text)}</p>" for text in review.notice),
        title=escape_html(title),
        counts=escape_html(review.counts),
        reason=escape_html(reason),
        links="\n".join(links),
        body="\n".join(parts),
        version=escape_html(tool["version"]),
        reference=escape_html(tool["reference"]),
    )


def _problems(problems: Iterable[str]) -> str:
    lines = ["<h2>Missing or unclear</h2>", '<ul class="problems">']
    lines += [f"<li>{escape_html(text)}</li>" for text in problems]
    lines.append("</ul>")
    return "\n".join(lines)


def _section(section: ReviewSection, files: Mapping[str, str]) -> str:
    parts = [f'<h2 id="{section.name}" tabindex="-1">{escape_html(section.title)}</h2>']
    parts += [f"<p>{escape_html(text)}</p>" for text in section.text]
    for name, table in section.tables.items():
        parts.append(_table(section, table, files[f"{section.name}/{name}"]))
    body = "\n".join(parts)
    return f'<section aria-labelledby="{section.name}">\n{body}\n</section>'


def _table(section: ReviewSection, table: Table, csv: str) -> str:
    title = escape_html(table.title)
    label = escape_html(f"{section.title}: {table.title}")
    number = wording.counted(len(table.rows), "row")
    remark = f'{escape_html(table.note)} <a href="{escape_html(csv)}">CSV</a>'.strip()
    is_folded = len(table.rows) > _OPEN_ROWS or section.checks
    opened = "" if is_folded else " open"
    content = tables.html(table, headed=True, checks=section.checks)
    heading = f'<h3>{title}</h3> <span class="about">{number}</span>'
    return (
        f"<details{opened}>\n<summary>{heading}</summary>\n"
        f'<div class="scroll" role="region" aria-label="{label}" tabindex="0">\n'
        f'{content}\n</div>\n<p class="remark">{remark}</p>\n</details>'
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
        raise UserError(f"{folder} exists already; --force replaces it")
    for entry in walk(folder):
        is_ours = entry.folder if entry.path == TABLES else entry.path in written
        if entry.link is not None or not is_ours:
            reason = f"the review is not replaced, as {entry.path} is not part of it"
            raise UserError(f"{folder}: {reason}; move the file away, or choose another --output")


def write_review(folder: Path, files: Mapping[str, str], *, force: bool) -> None:
    """Write a review as a whole, or leave everything as it is.

    Raises:
        UserError: the folder exists and must not be replaced, or it cannot be written.
    """
    write_together(folder, files, replace=force, former=_written(folder) or ())


def _written(folder: Path) -> set[str] | None:
    """Return the files that an earlier review lists; None if the folder is not a review."""
    written = {README, PAGE, DATA}
    try:
        for section in (_document(folder) or {})["sections"]:
            written.update(table["file"] for table in section["tables"])
    except (TypeError, LookupError):
        return None
    return written


def _document(folder: Path) -> Any:
    """Return the JSON of a review; None if the folder is not one."""
    try:
        document = jsonlib.loads(read_file(folder / DATA, _LARGEST))
        is_one = document["format"] == FORMAT and not folder.is_symlink()
    except (OSError, ValueError, TypeError, LookupError, RecursionError):
        return None
    if is_one:
        return document
    return None


# ---- a package for each submitter ---------------------------------------------------------

_WHOLE = ("calendar",)  # sections that concern all
_OF_REVIEWED = ("findings", "noted", "convergence", "hyperparameters")  # also of whom it reviews
_TABLES = {"hyperparameters": ("outliers",)}  # the others compare all submitters


def packages_of(review: Review) -> dict[str, str]:
    """Return the files of all packages, each in a folder that is named after its submitter."""
    folders = set[str]()
    files = {}
    for submitter in review.submitters:
        stem = re.sub(r"[^\w+-]+", "-", submitter).strip("-") or "submitter"
        folder = unused(stem, folders)
        folders.add(folder)
        for name, text in files_of(_package(review, submitter)).items():
            files[f"{folder}/{name}"] = text
    return files


def _package(review: Review, submitter: str) -> Review:
    """Return the review without what concerns other submitters alone."""
    names = _names_of(review, submitter)
    sections = []
    for section in review.sections:
        kept = names.section(section)
        if kept.tables:
            sections.append(kept)
    package = replace(
        review,
        title=f"{review.title}: {submitter}",
        problems=[text for text in review.problems if _has_name(text, names.own)],
        submitters={submitter: review.submitters[submitter]},
        parts={submitter: review.parts.get(submitter, {})},
        sections=sections,
    )
    row = next(iter(_rows(package, "submitters", "table")), {})
    states = _rows(package, "objections", "states")
    errors = {row["Code"] for row in _rows(package, "objections", "errors")}
    drafted = sum(row["State"] == "drafted" for row in states)
    counts = {
        "submitters": 1,
        "result_sets": row.get("Results", 0),
        "with_errors": row.get("With errors", 0),
        "objections": len(states) + len(errors),
        "possible_objections": drafted + len(errors),
    }
    return replace(package, head={**review.head, "counts": counts})


def _names_of(review: Review, submitter: str) -> _Names:
    parts = review.parts.get(submitter, {})
    own = {submitter, *review.submitters[submitter]} - parts.keys()
    others = set[str]()
    for name, folders in review.submitters.items():
        others.update((name, *folders))
    reviews = set[str]()
    for row in _rows(review, "assignments", "pairs"):
        if row["Reviewer"] == submitter:
            reviews.update(str(row["Folders"]).split(", "))
    return _Names(own, others - own, reviews, parts)


class _Names(Struct, frozen=True):
    """The names that concern a submitter: its ``own``, and submissions that it ``reviews``.

    ``parts`` are its systems in submissions of which it has only a part, by name.
    """

    own: set[str]
    others: set[str]
    reviews: set[str]
    parts: Mapping[str, Sequence[str]]

    def section(self, section: ReviewSection) -> ReviewSection:
        """Return a section without what concerns others alone."""
        if section.name in _WHOLE:
            return section
        kept = {}
        for name in _TABLES.get(section.name, tuple(section.tables)):
            if name in section.tables:
                table = self._table(section, name)
                if table.rows:
                    kept[name] = table
        text = tuple(text for text in section.text if not _has_name(text, self.others))
        return replace(section, text=text, tables=kept, summary=())

    def _table(self, section: ReviewSection, name: str) -> Table:
        table = section.tables[name]
        if section.checks:  # the checklist of a submission
            if name in self.own or name in self.reviews:
                return table
            return replace(table, groups=[])
        own = self.own
        if section.name in _OF_REVIEWED:
            own = self.own | self.reviews
        rows: list[list[Any]] = []
        numbers: dict[int, int] = {}
        for number, row in enumerate(table.rows):
            cells = table.values(row)
            if any(_concerns(cell, own) for cell in cells) or self._is_of_part(cells):
                numbers[number] = len(rows)
                rows.append([_own_part(cell, own) for cell in cells])
        titles = [pair[1].heading for pair in table.keyed]
        kept = table_of_cells(
            titles,
            rows,
            title=table.title,
            marked=_kept(table.marked, numbers),
            unverified=_kept(table.unverified, numbers),
        )
        return kept if _has_name(table.note, self.others) else replace(kept, note=table.note)

    def _is_of_part(self, cells: Sequence[Any]) -> bool:
        """Return whether a row names a submission and a system of its part, in cells or a path."""
        texts = [cell for cell in cells if isinstance(cell, str)]
        for folder, systems in self.parts.items():
            names = {*systems, *(f"{system}.json" for system in systems)}
            if folder in texts and not names.isdisjoint(texts):
                return True
            for text in texts:
                first, *others = text.split("/")
                if first == folder and not names.isdisjoint(others):
                    return True
        return False


def _concerns(cell: Any, names: Collection[str]) -> bool:
    """Return whether a cell is one of these names, a list with one, or a path below it."""
    if not isinstance(cell, str):
        return False
    parts = cell.split(", ")
    return any(part in names or part.split("/")[0] in names for part in parts)


def _own_part(cell: Any, names: Collection[str]) -> Any:
    """Return a cell without the other names of a list."""
    if not isinstance(cell, str):
        return cell
    return ", ".join(filter(names.__contains__, cell.split(", "))) or cell


def _kept(
    cells: Iterable[tuple[int, int]], numbers: Mapping[int, int]
) -> frozenset[tuple[int, int]]:
    """Return the cells of rows that are kept; ``numbers`` are those of the rows now, by before."""
    return frozenset((numbers[row], place) for row, place in cells if row in numbers)


def _has_name(text: str, names: Iterable[str]) -> bool:
    """Return whether one of these names is in the text."""
    return any(re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text) for name in names)


def _rows(review: Review, section_name: str, table_name: str) -> Sequence[dict[str, Any]]:
    """Return the rows of the first section of a name that has such a table."""
    for section in review.sections:
        if section.name == section_name and table_name in section.tables:
            return records(section.tables[table_name])
    return []
