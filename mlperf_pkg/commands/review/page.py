"""The review as one page of HTML, which loads and executes nothing; its style is ``report``'s."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from mlperf_pkg.commands.page.template import file, page_head
from mlperf_pkg.commands.review.formats import cell_text, numbers
from mlperf_pkg.commands.review.model import Round, Section, Table
from mlperf_pkg.infra.text import escape_html
from mlperf_pkg.render import findings
from mlperf_pkg.results import wording

_STYLE = """
.m { font-weight: 700; color: var(--open); }
.problems { border-left: .3rem solid var(--open); padding: .1rem 0 .1rem 2rem; }
main p { max-width: 60rem; overflow-wrap: anywhere; }
.t { min-width: 18rem; max-width: 40rem; white-space: normal; overflow-wrap: anywhere; }
thead th { white-space: normal; }
th label { display: flex; gap: .5rem; align-items: center; }
th input { min-height: 0; }
.remark { font-size: .9rem; margin: .25rem 0 0; }
.scroll th:first-child { position: sticky; left: 0; background: var(--back); }
.n + :not(.n) { padding-left: .75rem; }
"""
_LONG = 40  # characters of a cell, beyond which its lines are wrapped
_OPEN_ROWS = 40  # a table with more rows is folded

_PAGE = """\
{head}
<body>
<a class="skip" href="#main">Skip to the review</a>
<header>
<h1>{title}</h1>
<p>{reason}</p>
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
    title = f"{reviewed.title}: review"
    links = (f'<a href="#{_id(s.name)}">{escape_html(s.title)}</a>' for s in sections)
    return _PAGE.format(
        head=page_head(title, file("page.css") + _STYLE),
        title=escape_html(title),
        reason=escape_html(findings.round_in_words(reviewed.report)),
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
        yield f'<h2>Missing or unclear</h2>\n<ul class="problems">\n{items}\n</ul>'


def _section(section: Section, files: Mapping[str, str]) -> str:
    heading = f'<h2 id="{_id(section.name)}" tabindex="-1">{escape_html(section.title)}</h2>'
    paragraphs = (f"<p>{escape_html(text)}</p>" for text in section.text)
    tables = (
        _table(table, f"{section.title}: {table.title}", files[f"{section.name}/{table.name}"])
        for table in section.tables
    )
    parts = "\n".join([heading, *paragraphs, *tables])
    return f'<section aria-labelledby="{_id(section.name)}">\n{parts}\n</section>'


def _table(table: Table, label: str, csv: str) -> str:
    classes = ["n" if is_number else "" for is_number in numbers(table)]
    head = "".join(
        f'<th scope="col"{_class(kind)}>{_breakable(title)}</th>'
        for title, kind in zip(table.columns, classes, strict=True)
    )
    title = escape_html(table.title)
    remark = f'{escape_html(table.note)} <a href="{escape_html(csv)}">CSV</a>'.strip()
    folded = "" if len(table.rows) > _OPEN_ROWS or table.checks else " open"
    about = f'<span class="about">{wording.counted(len(table.rows), "row")}</span>'
    return (
        f"<details{folded}>\n<summary><h3>{title}</h3> {about}</summary>\n"
        f'<div class="scroll" role="region" aria-label="{escape_html(label)}" tabindex="0">\n'
        f"<table>\n<thead><tr>{head}</tr></thead>\n"
        f"<tbody>\n{_rows(table, classes)}</tbody>\n</table>\n</div>\n"
        f'<p class="remark">{remark}</p>\n</details>'
    )


def _rows(table: Table, classes: Sequence[str]) -> str:
    return "".join(
        f"<tr>{''.join(_cells(table, number, classes))}</tr>\n" for number in range(len(table.rows))
    )


def _cells(table: Table, number: int, classes: Sequence[str]) -> Iterator[str]:
    """Yield the cells of a row; the first is its heading."""
    for column, (value, kind) in enumerate(zip(table.rows[number], classes, strict=True)):
        text = cell_text(value)
        kinds = [kind, "t" * (len(text) > _LONG), "m" * ((number, column) in table.marked)]
        tag, end = ("td", "td") if column else ('th scope="row"', "th")
        words = escape_html(text)
        if table.checks and not column:
            words = f'<label><input type="checkbox"> {words}</label>'
        yield f"<{tag}{_class(' '.join(filter(None, kinds)))}>{words}</{end}>"


def _breakable(text: str) -> str:
    """Return the name of a column as HTML that may be wrapped after underscores."""
    return escape_html(text).replace("_", "_<wbr>")


def _class(kinds: str) -> str:
    return f' class="{kinds}"' if kinds else ""
