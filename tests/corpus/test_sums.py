"""Every number of findings, result sets and submitters that an output shows is that of the JSON.

The counts are made anew here, from the JSON report alone.
"""

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any, TypeAlias
from xml.etree import ElementTree as ET

import pytest

from mlperf_pkg.checker.values import Options, scores
from mlperf_pkg.commands.page.content import PageContent, sections
from mlperf_pkg.commands.page.site import files as site_files
from mlperf_pkg.commands.page.site import site_page
from mlperf_pkg.commands.rcp import tested
from mlperf_pkg.commands.rcp.reference import PACKAGE
from mlperf_pkg.commands.results.score import text as score_text
from mlperf_pkg.commands.review import files as reviews
from mlperf_pkg.commands.review.round import Choices, read_round
from mlperf_pkg.findings import Basis
from mlperf_pkg.render import FORMATS, Show, View
from tests.helpers.corpus import CORPUS, FULL, ROUNDS, checked, needs_corpus
from tests.helpers.pages import html_of

pytestmark = [
    needs_corpus,
    pytest.mark.parametrize("name", ROUNDS if FULL else ["v0.7", "v2.1", "hpc_v2.0"]),
]

Amount: TypeAlias = tuple[int, str, int, str]
"""A number of findings, their severity, and of how many things of which kind."""

WIDE = View(width=1_000_000, show=Show.NOTES)
KINDS = ("result set", "system description", "log", "submission", "file")
SEVERITIES = ("error", "warning", "note")
_AMOUNT = re.compile(
    rf"([\d,]+)(?: ({'|'.join(SEVERITIES)})s?)? in ([\d,]+)(?: of ([\d,]+))? ({'|'.join(KINDS)})s?"
)
_GROUP = re.compile(
    rf"^    ((?:[\d,]+ (?:{'|'.join(KINDS)})s?(?:, | and )?)+)(, (?:both|all) |: )(.*?)(; first|$)",
    re.M,
)


# ---- what the JSON has ----------------------------------------------------------------------


@cache
def report(name: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(FORMATS["json"](checked(name).report, View()))
    return document


def number(text: str) -> int:
    return int(text.replace(",", ""))


def subject(document: Mapping[str, Any], finding: Mapping[str, Any]) -> tuple[str, str]:
    """The kind of thing that a finding is about, and its id or path."""
    about = finding["subject"] or finding["path"]
    if finding["set"]:
        return "result set", finding["set"]
    if any(system["path"] == about for system in document["systems"]):
        return "system description", about
    if any(run["path"] == finding["path"] and not run["set"] for run in document["runs"]):
        return "log", about
    return ("submission" if finding["subject"] else "file"), about


def of_severity(document: Mapping[str, Any], severity: str) -> list[dict[str, Any]]:
    """The findings of a severity that are not waived."""
    findings = document["findings"]
    return [f for f in findings if f["severity"] == severity and not f["waiver"]]


def amounts(document: Mapping[str, Any], basis: Basis) -> list[Amount]:
    """What the line of a verdict must say."""
    expected: list[Amount] = []
    for severity in ("error", "warning"):
        findings = of_severity(document, severity)
        subjects = [subject(document, f) for f in findings if f["basis"] in ("both", basis)]
        for kind in KINDS:
            about = [thing for thing in subjects if thing[0] == kind]
            if about:
                expected.append((len(about), severity, len(set(about)), kind))
    return expected


def said(line: str, sets: int) -> list[Amount]:
    """What a line says; a number of all result sets must be ``sets``."""
    line_amounts: list[Amount] = []
    severity = ""
    for findings, noun, affected, total, kind in _AMOUNT.findall(line):
        severity = noun or severity
        assert total == (f"{sets:,}" if kind == "result set" else "")
        line_amounts.append((number(findings), severity, number(affected), kind))
    return line_amounts


def totals(document: Mapping[str, Any]) -> list[int]:
    return [len(of_severity(document, severity)) for severity in SEVERITIES]


def counted(text: str) -> list[list[int]]:
    """The numbers of errors, warnings and notes, wherever an output has all three."""
    pattern = r"([\d,]+) errors?, ([\d,]+) warnings?, ([\d,]+) notes?"
    return [[number(one) for one in match] for match in re.findall(pattern, text)]


# ---- the outputs ----------------------------------------------------------------------------


@cache
def page(name: str) -> PageContent:
    made = checked(name)
    return PageContent(made.report, list(sections(made, {})), {})


@cache
def review(name: str) -> dict[str, Any]:
    reviewed = read_round(str(CORPUS / name), Options(), Choices(), checked=checked(name))
    made = reviews.review_of(reviewed, list(reviews.sections(reviewed)))
    document: dict[str, Any] = json.loads(reviews.json(made))
    return {**document, "line": made.counts}


def table(name: str, section: str) -> list[dict[str, Any]]:
    """The rows of the first table of a section of the review."""
    [of_name] = [one for one in review(name)["sections"] if one["name"] == section]
    [first, *_] = of_name["tables"] or [{"columns": [], "rows": []}]
    return [dict(zip(first["columns"], row, strict=True)) for row in first["rows"]]


def cells(text: str, heading: str) -> list[list[str]]:
    """The rows of a table of text, without titles and remarks; a long cell is continued below."""
    lines = text.split("\n")
    [start] = [index for index, line in enumerate(lines) if line.startswith(heading)]
    rows: list[list[str]] = []
    for line in lines[start + 1 : lines.index("", start)]:
        row = re.split(r" {2,}", line.strip())
        if len(row) > 1:
            rows.append(row)
        elif line.startswith(" " * 10):
            rows[-1][-1] += f" {row[0]}"
    return rows


@pytest.mark.parametrize("basis", [Basis.OFFICIAL, Basis.RULES])
def test_the_lines_of_a_verdict(name: str, basis: Basis) -> None:
    document = report(name)
    made = checked(name).report
    number_of_sets = len(document["result_sets"])
    shown = {}
    for output in ("text", "markdown", "log", "github"):
        text = FORMATS[output](made, WIDE).replace("%0A", "\n")
        lines = [line for line in text.split("\n") if re.search(rf"\b{basis}\W.*: ", f"{line}: ")]
        amounts_of_lines = [said(line, number_of_sets) for line in lines]
        shown[output] = next(filter(None, amounts_of_lines), [])
    for verdict, _, words, _ in page(name).verdicts:
        if verdict == basis.value:
            shown["page"] = said(words, number_of_sets)
    assert shown == dict.fromkeys(shown, amounts(document, basis))


def test_the_counts(name: str) -> None:
    made = checked(name).report
    texts = {output: FORMATS[output](made, WIDE) for output in ("text", "markdown", "github")}
    texts["sarif"] = FORMATS["sarif"](made, WIDE)
    texts["page"] = html_of(page(name), "1")
    shown = {output: counted(text)[0] for output, text in texts.items()}
    assert shown == {output: totals(report(name)) for output in texts}


def test_the_lists(name: str) -> None:
    """A format that lists all findings has as many as the JSON."""
    made = checked(name).report
    number_of = len(report(name)["findings"])
    assert len(json.loads(FORMATS["gitlab"](made, View()))) == number_of
    assert len(json.loads(FORMATS["sarif"](made, View()))["runs"][0]["results"]) == number_of
    assert FORMATS["concise"](made, View(show=Show.ALL)).count("\n") == number_of
    assert len(page(name).findings) == number_of


def test_junit(name: str) -> None:
    root = ET.fromstring(FORMATS["junit"](checked(name).report, View()))
    cases = list(root.iter("testcase"))
    failures = [case for case in cases if case.find("failure") is not None]
    own = Counter[str]()
    for suite in root.iter("testsuite"):
        own.update(tests=int(suite.attrib["tests"]), failures=int(suite.attrib["failures"]))
    assert (own["tests"], own["failures"]) == (len(cases), len(failures))
    assert (root.attrib["tests"], root.attrib["failures"]) == (f"{len(cases)}", f"{len(failures)}")
    names = {suite.attrib["name"] for suite in root.iter("testsuite")}
    assert {row["id"] for row in report(name)["result_sets"]} <= names


def sums(rows: Iterable[list[str]], *columns: int) -> list[int]:
    return [sum(number(row[column].replace("-", "0")) for row in rows) for column in columns]


def test_the_table_of_submitters(name: str) -> None:
    document = report(name)
    shown = FORMATS["text"](checked(name).report, WIDE)
    rows = cells(shown, "Submitters")
    errors, warnings, _ = totals(document)
    assert sums(rows, 1, 4, 5) == [len(document["result_sets"]), errors, warnings]


def test_the_groups(name: str) -> None:
    """Submitters have as many result sets, or other things, as are named before them."""
    wrong = []
    for things, how, whose, _ in _GROUP.findall(FORMATS["text"](checked(name).report, WIDE)):
        total = sum(map(number, re.findall(r"[\d,]+", things)))
        owners = re.sub(r" and [\d,]+ more submitters?$", "", whose).split(", ")
        numbers = [number(owner.split()[0]) for owner in owners if " by " in owner]
        listed_sum = sum(numbers) if numbers else len(owners)
        is_cut = whose.endswith(("submitter", "submitters"))
        if how == ": " and (listed_sum > total or (listed_sum < total and not is_cut)):
            wrong.append((things, whose))
    assert wrong == []


def test_the_statistics(name: str) -> None:
    document = report(name)
    shown = FORMATS["text"](checked(name).report, View(width=1_000_000, statistics=True))
    rows = cells(shown, "Codes")
    findings = len(document["findings"])
    places = sum(place["count"] for f in document["findings"] for place in f["places"])
    assert sums(rows, 1, 2) == [findings, places]
    of_submitters = [row for row in rows if "more submitter" not in row[3]]
    counts = [sum(map(number, re.findall(r"([\d,]+) by ", row[3]))) for row in of_submitters]
    assert counts == [number(row[1]) for row in of_submitters]


def test_numbers_of_result_sets(name: str) -> None:
    document = report(name)
    made = checked(name)
    total = f"{len(document['result_sets']):,} result set"
    site = site_files({"a": site_page(page(name), {}, "1")}, None, ())["index.html"]
    shown = {
        "score": score_text(scores(made), View()),
        "page": html_of(page(name), "1"),
        "review": review(name)["line"],
        "review, submitters": str(review(name)["sections"][-1]["summary"]),
        "rcp check": tested.CHECK_FORMATS["text"](tested.tested_sets(made, PACKAGE), View()),
    }
    assert [output for output, text in shown.items() if total not in text] == []
    assert f'data-label="Result sets">{len(document["result_sets"])}<' in site


def test_the_review(name: str) -> None:
    document = report(name)
    with_errors = {f["set"] for f in of_severity(document, "error") if f["set"]}
    counts = review(name)["counts"]
    assert (counts["result_sets"], counts["with_errors"]) == (
        len(document["result_sets"]),
        len(with_errors),
    )
    severities = Counter(row["Severity"] for row in table(name, "findings"))
    errors, warnings, _ = totals(document)
    assert (severities["error"], severities["warning"]) == (errors, warnings)


def test_the_submitters_of_a_review(name: str) -> None:
    """Those of one company; the entries of a joint submission are those of several."""
    document = report(name)
    folders = Counter[str]()
    for company in review(name)["submitters"]:
        folders.update(company["folders"])
    rows = {row["Submitter"]: row for row in table(name, "submitters")}
    shown = {}
    expected = {}
    for company in review(name)["submitters"]:
        if any(folders[folder] > 1 for folder in company["folders"]):
            continue
        row = rows[company["name"]]
        shown[company["name"]] = [row["Results"], row["Errors"], row["Warnings"]]
        tops = tuple(f"{folder}/" for folder in company["folders"])
        sets = [row for row in document["result_sets"] if row["path"].startswith(tops)]
        of_company = []
        for severity in ("error", "warning"):
            abouts = [f["subject"] or f["path"] for f in of_severity(document, severity)]
            of_company.append(len([about for about in abouts if f"{about}/".startswith(tops)]))
        expected[company["name"]] = [len(sets), *of_company]
    assert shown == expected
