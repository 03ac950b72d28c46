"""A report as JUnit XML, which most CI servers show as tests.

There is a suite per result set, named by its id, with a test for the set and one for each run, then
suites for logs outside result sets, for systems, and for the rest of the tree. An error that is not
waived fails a test.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from xml.etree import ElementTree as ET

from msgspec import Struct

from mlperf_pkg.findings import Basis, Finding, Verdict, Verdicts, verdicts_of
from mlperf_pkg.infra.text import visible
from mlperf_pkg.render import ci, headings
from mlperf_pkg.render.view import View
from mlperf_pkg.results import wording
from mlperf_pkg.results.report import Report, RunRow

_NOT_CHECKED = Verdicts(Verdict.NOT_CHECKED, Verdict.NOT_CHECKED)


class _Case(Struct, frozen=True):
    """A test: something that was checked, named by its id or path, with its findings."""

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
    """Render all suites; both verdicts are properties of each suite and lines of each test."""
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


# ---- suites and tests ---------------------------------------------------------------------


def _suites(report: Report, view: View) -> Iterator[tuple[str, list[_Case]]]:
    by_item = _by_item(report)

    def case(path: str, verdict: Verdicts) -> _Case:
        return _Case(view.checkout.path(path), verdict, by_item.pop((None, path), ()))

    members: dict[str | None, list[RunRow]] = {}
    for run in report.runs:
        members.setdefault(run.set, []).append(run)
    for row in report.result_sets:
        whole = _Case(row.id, row.verdict, by_item.pop((row.id, ""), ()))
        yield row.id, [whole, *(case(run.path, run.verdict) for run in members.pop(row.id, ()))]
    loose = [case(run.path, run.verdict) for runs in members.values() for run in runs]
    yield "logs outside result sets", loose
    yield "systems", [case(row.path, row.verdict) for row in report.systems]
    rest = [(view.checkout.path_of(group[0]), group) for group in by_item.values()]
    yield "tree", [_Case(path, verdicts_of(group), group) for path, group in rest]


def _by_item(report: Report) -> dict[tuple[str | None, str], list[Finding]]:
    """Return findings by what they blame: the id of a set, or a path, such as that of a run.

    A finding on a set blames the set, unless its place is one of the runs of this set.
    """
    sets = {run.path: run.set for run in report.runs}
    by_item: dict[tuple[str | None, str], list[Finding]] = {}
    for finding in report.findings:
        for place in finding.occurrences:
            is_of_set = finding.set is not None and finding.set != sets.get(place.path)
            item = (finding.set, "") if is_of_set else (None, place.path)
            by_item.setdefault(item, []).append(finding.at(place))
    return by_item


# ---- XML ----------------------------------------------------------------------------------


def _count(element: ET.Element, cases: Sequence[_Case]) -> None:
    failed = sum(bool(case.errors) for case in cases)
    for name, number in (("tests", len(cases)), ("failures", failed), ("errors", 0)):
        element.set(name, str(number))


def _describe(suite: ET.Element, report: Report) -> None:
    properties = ET.SubElement(suite, "properties")
    about = {
        "verdict.official": report.verdict.official.value,
        "verdict.rules": report.verdict.rules.value,
        "round": headings.round_in_words(report),
        **report.tool,
    }
    for name, value in about.items():
        ET.SubElement(properties, "property", name=name, value=visible(value))


def _test(suite: ET.Element, suite_name: str, case: _Case, view: View) -> None:
    test = ET.SubElement(suite, "testcase", name=visible(case.name), classname=visible(suite_name))
    if case.errors:
        _fail(test, case.errors, view)
    if case.skipped:
        ET.SubElement(test, "skipped", message="not checked")
    others = [finding for finding in case.findings if not finding.is_error]
    lines = [*_verdicts(case.verdict), *_lines(others, view)]
    ET.SubElement(test, "system-out").text = "\n".join(lines)


def _fail(test: ET.Element, errors: Sequence[Finding], view: View) -> None:
    """Add a failure: the most important error as its message, all errors as its text."""
    worst = min(errors, key=ci.importance)
    others = f" (and {wording.counted(len(errors) - 1, 'error')} more)" if len(errors) > 1 else ""
    fails = [basis for basis in (Basis.OFFICIAL, Basis.RULES) if _fails(errors, basis)]
    message = visible(f"{worst.code}: {worst.text}") + others
    failure = ET.SubElement(test, "failure", type=" and ".join(fails), message=message)
    failure.text = "\n".join(_lines(errors, view))


def _fails(errors: Iterable[Finding], basis: Basis) -> bool:
    return any(error.fails(basis) for error in errors)


def _verdicts(verdict: Verdicts) -> Iterator[str]:
    yield f"official: {wording.VERDICTS[verdict.official]}"
    yield f"rules: {wording.VERDICTS[verdict.rules]}"


def _lines(group: Iterable[Finding], view: View) -> Iterator[str]:
    for finding in group:
        path = visible(view.checkout.path_of(finding))
        line = f":{finding.line}" if finding.line else ""
        first, *remarks = ci.finding_text(finding).split("\n")
        yield f"{path}{line}: {wording.severity(finding)} {visible(finding.code)}: {first}"
        yield from (f"  {remark}" for remark in remarks)
