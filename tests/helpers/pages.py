"""The content of pages, of simulated result sets, and what is in their text."""

import base64
import hashlib
import json
import re
import zlib
from collections.abc import Iterable
from typing import Any

from msgspec.structs import replace

from mlperf_pkg.checks.descriptions import SystemFile
from mlperf_pkg.commands.charts.sets import DrawnSet
from mlperf_pkg.commands.page.content import PageContent, ResultSection
from mlperf_pkg.commands.page.html import html
from mlperf_pkg.findings import Finding
from mlperf_pkg.infra.streams import kept
from tests.helpers.charts import drawn
from tests.helpers.reports import report

RUNTIME = "window.vegaEmbed = null;"


def html_of(content: PageContent, runtime: str = RUNTIME, jobs: int = 1) -> str:
    """The page as one text."""
    return b"".join(map(kept, html(content, runtime, jobs=jobs))).decode()


def page_of(
    *sets: DrawnSet, findings: tuple[Finding, ...] = (), settings: Any = None
) -> PageContent:
    made = report(result_sets=tuple(one.row for one in sets), findings=findings)
    lines = {("a/b.txt", 7): "<b>raw</b>"}
    return PageContent(made, [ResultSection(one, settings=settings or {}) for one in sets], lines)


def several(rows: Iterable[dict[str, Any]], settings: Any = None) -> PageContent:
    """A page of sets that differ in fields of their rows."""
    one = drawn("bert")
    return page_of(*(replace(one, row=replace(one.row, **row)) for row in rows), settings=settings)


def assert_policy(page: str, style: str, *scripts: str) -> None:
    """The policy allows this style, these scripts and nothing else."""
    [policy] = re.findall('Content-Security-Policy" content="([^"]*)"', page)
    allowed = f"script-src {' '.join(map(digest, scripts))}; " if scripts else ""
    rest = "img-src data:; base-uri 'none'; form-action 'none'"
    assert policy == f"default-src 'none'; {allowed}style-src {digest(style)}; {rest}"


def assert_policy_of_page(page: str) -> None:
    """The policy allows the style and the scripts in a page, which asks for nothing else."""
    [style] = re.findall("<style>(.*?)</style>", page, re.DOTALL)
    [script] = re.findall("<script>(.*?)</script>", page, re.DOTALL)
    assert_policy(page, style, script, *([RUNTIME] if 'id="runtime"' in page else []))
    assert not re.search(r"<[^>]*\s(on\w+|style)=", page)
    assert not re.search(r"(src|href)=\"(?!#|data:,)", page)


def digest(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def many(number: int) -> PageContent:
    """A page of result sets with as many hyperparameters as most have."""
    settings = {f"opt_hyperparameter_{index}": "0.0012345" for index in range(25)}
    names = [f"system-{n}" for n in range(number)]
    rows = (
        {"system": s, "path": f"results/{s}", "score_minutes": n} for n, s in enumerate(names, 5)
    )
    return several(rows, settings)


def section(
    minutes: float | None, accelerators: int | None, submitter: str | None = "ACME", **changes: Any
) -> ResultSection:
    one = drawn("resnet")
    row = replace(one.row, score_minutes=minutes, submitter=submitter, **changes)
    names = {"path": "s.json", "id": "s", "system_name": "s", "status": "Available on-premise"}
    fields: dict[str, Any] = {"submitter": submitter, "division": "closed", "findings": (), **names}
    contents = {"accelerator_model_name": "X1"}
    system = SystemFile(contents=contents, accelerators=accelerators, **fields)
    return ResultSection(replace(one, row=row), system)


def unpacked(page: str, element: str) -> Any:
    match = re.search(f'id="{element}">([^<]*)<', page)
    assert match
    return json.loads(zlib.decompress(base64.b64decode(match[1]), 31))
