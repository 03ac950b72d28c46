"""The review as one page of HTML in the style of ``report``, which loads and executes nothing."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from importlib import resources

from mlperf_pkg.commands.review.formats import cell_text, numbers
from mlperf_pkg.commands.review.model import Round, Section, Table
from mlperf_pkg.infra.text import escape_html

_STYLE = """
.m { font-weight: 700; color: var(--open); }
.problems { border-left: .3rem solid var(--open); padding: .1rem 0 .1rem 2rem; }
main p { max-width: 60rem; overflow-wrap: anywhere; }
td { max-width: 32rem; white-space: normal; overflow-wrap: anywhere; min-width: 3rem; }
"""
_OPEN_ROWS = 40  # a table with more rows is folded

_PAGE = """\
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="referrer" content="no-referrer">
<link rel="icon" href="data:,">
<title>{title}: review</title>
<style>{style}</style>
</head>
<body>
<a class="skip" href="#main">Skip to the review</a>
<header>
<h1>{title}: review</h1>
<p>The round is {reason}.</p>
<nav aria-label="Sections">
{links}
</nav>
</header>
<main id="main" tabindex="-1">
{body}
</main>
<footer>
<p>mlperf-pkg {version}, {reference}. This page makes no request.</p>
</footer>
</body>
</html>
"""


def page(reviewed: Round, sections: Sequence[Section], files: Mapping[str, str]) -> str:
    """Return the page; ``files`` are those of the tables, by section and table."""
    style = resources.files("mlperf_pkg.commands.page").joinpath("templates/page.css")
    css = style.read_text("utf-8") + _STYLE
    digest = base64.b64encode(hashlib.sha256(css.encode()).digest()).decode("ascii")
    links = (f'<a href="#{_id(s.name)}">{escape_html(s.title)}</a>' for s in sections)
    return _PAGE.format(
        policy=f"default-src 'none'; style-src 'sha256-{digest}'; img-src data:",
        style=css,
        title=escape_html(reviewed.title),
        reason=escape_html(reviewed.report.round_reason),
        links="\n".join(links),
        body="\n".join([*_problems(reviewed), *(_section(s, files) for s in sections)]),
        version=escape_html(reviewed.report.tool["version"]),
        reference=escape_html(reviewed.report.tool["reference"]),
    )


def _id(name: str) -> str:
    return escape_html(name.replace(" ", "-"))


def _problems(reviewed: Round) -> Iterator[str]:
    if reviewed.problems:
        items = "\n".join(f"<li>{escape_html(text)}</li>" for text in reviewed.problems)
        yield f'<h2>Missing</h2>\n<ul class="problems">\n{items}\n</ul>'


def _section(section: Section, files: Mapping[str, str]) -> str:
    heading = f'<h2 id="{_id(section.name)}" tabindex="-1">{escape_html(section.title)}</h2>'
    paragraphs = (f"<p>{escape_html(text)}</p>" for text in section.text)
    tables = (_table(table, files[f"{section.name}/{table.name}"]) for table in section.tables)
    parts = "\n".join([heading, *paragraphs, *tables])
    return f'<section aria-labelledby="{_id(section.name)}">\n{parts}\n</section>'


def _table(table: Table, file: str) -> str:
    classes = ["n" if is_number else "" for is_number in numbers(table)]
    head = "".join(
        f'<th scope="col"{_class(kind)}>{escape_html(title)}</th>'
        for title, kind in zip(table.columns, classes, strict=True)
    )
    title = escape_html(table.title)
    caption = f'{escape_html(table.note)} <a href="{escape_html(file)}">CSV</a>'
    folded = "" if len(table.rows) > _OPEN_ROWS else " open"
    return (
        f'<details{folded}>\n<summary><h3>{title}</h3> <span class="about">{len(table.rows)}</span>'
        f'</summary>\n<div class="scroll" role="region" aria-label="{title}" tabindex="0">\n'
        f"<table>\n<caption>{caption.strip()}</caption>\n<thead><tr>{head}</tr></thead>\n"
        f"<tbody>\n{_rows(table, classes)}</tbody>\n</table>\n</div>\n</details>"
    )


def _rows(table: Table, classes: Sequence[str]) -> str:
    rows = []
    for number, row in enumerate(table.rows):
        cells = []
        for column, (value, kind) in enumerate(zip(row, classes, strict=True)):
            kinds = f"{kind} m".strip() if (number, column) in table.marked else kind
            cells.append(f"<td{_class(kinds)}>{escape_html(cell_text(value))}</td>")
        rows.append(f"<tr>{''.join(cells)}</tr>\n")
    return "".join(rows)


def _class(kinds: str) -> str:
    return f' class="{kinds}"' if kinds else ""
