"""A report as JUnit XML, which most CI servers show as tests.

A suite per result set with a test for itself and one for each run, then suites for logs of no set,
for the systems, and for the rest of the tree. A test fails by an error that is not waived.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from xml.etree import ElementTree as ET

from msgspec import Struct

from mlperf_pkg.findings import Basis, Finding, Verdict, Verdicts, verdicts_of
from mlperf_pkg.infra.text import visible
from mlperf_pkg.render import ci, findings, headings
from mlperf_pkg.render.view import View
from mlperf_pkg.results import wording
from mlperf_pkg.results.report import Report, ResultSetRow, RunRow, folder

_NOT_CHECKED = Verdicts(Verdict.NOT_CHECKED, Verdict.NOT_CHECKED)


class _Case(Struct, frozen=True):
    """A test: a thing that was checked (its path in the report), with its findings."""

    name: str
    verdict: Verdicts
    findings: Sequence[Finding]

    @property
    def errors(self) -> list[Finding]:
        return [finding for finding in self.findings if finding.is_error]

    @property
    def skipped(self) -> bool:
        return self.verdict == _NOT_CHECKED and not self.errors


def junit(report: Report, view: View) -> str:
    """All suites; both verdicts are properties of each and lines of each test."""
    root = ET.Element("testsuites", name="mlperf-pkg check")
    suites = [(name, cases) for name, cases in _suites(report, view) if cases]
    _count(root, [case for _, cases in suites for case in cases])
    for name, cases in suites:
        suite = ET.SubElement(root, "testsuite", name=visible(name))
        _count(suite, cases)
        suite.set("skipped", str(sum(case.skipped for case in cases)))
        _describe(suite, report)
        for case in cases:
            _test(suite, name, case, view)
    ET.indent(root)
    xml = ET.tostring(root, encoding="unicode")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{xml}\n'


# ---- what becomes a test ------------------------------------------------------------------


def _suites(report: Report, view: View) -> Iterator[tuple[str, list[_Case]]]:
    told: dict[str, list[Finding]] = {}
    for finding in report.findings:
        told.setdefault(finding.path, []).append(finding)

    def case(path: str, verdict: Verdicts, name: str = "") -> _Case:
        return _Case(name or view.checkout.path(path), verdict, told.pop(path, ()))

    members = _members(report)
    for at, row in enumerate(report.result_sets):
        runs = [case(run.path, run.verdict) for run in members.pop(at, ())]
        itself = case(row.path, row.verdict, f"{view.checkout.path(row.path)}: {row.benchmark}")
        yield f"{headings.system_title(row, report)}: {row.benchmark}", [itself, *runs]
    loose = [case(run.path, run.verdict) for several in members.values() for run in several]
    yield "logs of no result set", loose
    yield "systems", [case(row.path, row.verdict) for row in report.systems]
    rest = [(view.checkout.place(several[0]), several) for several in told.values()]
    yield "tree", [_Case(path, verdicts_of(several), several) for path, several in rest]


def _members(report: Report) -> dict[int, list[RunRow]]:
    """The runs of each result set by its place in the report; -1: of none.

    Loose logs of two systems in one folder count to the first of them, which is all the report
    tells.
    """
    places: dict[tuple[str | None, ...], int] = {}
    for at, row in reversed(list(enumerate(report.result_sets))):
        places[_key(row)] = at
    found: dict[int, list[RunRow]] = {}
    for run in report.runs:
        place = folder(run.path) or "."
        loose = places.get((place, run.benchmark, run.division, run.round), -1)
        found.setdefault(places.get((place,), loose), []).append(run)
    return found


def _key(row: ResultSetRow) -> tuple[str | None, ...]:
    """A set of a submission is a folder, one of loose logs what they say of themselves."""
    if row.submitter is not None:
        return (row.path,)
    return (row.path, row.benchmark, row.division, row.round)


# ---- XML ----------------------------------------------------------------------------------


def _count(element: ET.Element, cases: Sequence[_Case]) -> None:
    failed = sum(bool(case.errors) for case in cases)
    for name, number in (("tests", len(cases)), ("failures", failed), ("errors", 0)):
        element.set(name, str(number))


def _describe(suite: ET.Element, report: Report) -> None:
    listed = ET.SubElement(suite, "properties")
    about = {
        "verdict.official": report.verdict.official.value,
        "verdict.rules": report.verdict.rules.value,
        "round": headings.round_in_words(report),
        **report.tool,
    }
    for name, value in about.items():
        ET.SubElement(listed, "property", name=name, value=visible(value))


def _test(suite: ET.Element, group: str, case: _Case, view: View) -> None:
    test = ET.SubElement(suite, "testcase", name=visible(case.name), classname=visible(group))
    if case.errors:
        _fail(test, case.errors, view)
    if case.skipped:
        ET.SubElement(test, "skipped", message="not checked")
    others = [finding for finding in case.findings if not finding.is_error]
    lines = [*_verdicts(case.verdict), *_lines(others, view)]
    ET.SubElement(test, "system-out").text = "\n".join(lines)


def _fail(test: ET.Element, errors: Sequence[Finding], view: View) -> None:
    """The most important error as the message, all of them as the text."""
    worst = min(errors, key=ci.importance)
    others = f" (and {wording.counted(len(errors) - 1, 'error')} more)" if len(errors) > 1 else ""
    fails = [basis for basis in (Basis.OFFICIAL, Basis.RULES) if _fails(errors, basis)]
    message = visible(f"{worst.code}: {worst.message}") + others
    failure = ET.SubElement(test, "failure", type=" and ".join(fails), message=message)
    failure.text = "\n".join(_lines(errors, view))


def _fails(errors: Iterable[Finding], basis: Basis) -> bool:
    return any(error.fails(basis) for error in errors)


def _verdicts(verdict: Verdicts) -> Iterator[str]:
    yield f"official: {wording.VERDICTS[verdict.official]}"
    yield f"rules: {wording.VERDICTS[verdict.rules]}"


def _lines(several: Iterable[Finding], view: View) -> Iterator[str]:
    for finding in several:
        place = visible(view.checkout.place(finding))
        line = f":{finding.line}" if finding.line else ""
        first, *remarks = ci.said(findings.Folded(finding)).split("\n")
        yield f"{place}{line}: {wording.severity(finding)} {visible(finding.code)}: {first}"
        yield from (f"  {remark}" for remark in remarks)
