"""A report for CI servers and editors: GitHub, GitLab, JUnit XML, SARIF, a line per finding."""

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple, TypeAlias
from urllib.parse import quote
from xml.etree import ElementTree as ET

from msgspec import Struct
from msgspec.structs import replace

from mlperf_pkg.findings import (
    Basis,
    Finding,
    Occurrence,
    Severity,
    Verdict,
    Verdicts,
    Waiver,
    verdicts_of,
)
from mlperf_pkg.infra.text import visible
from mlperf_pkg.render import findings as words
from mlperf_pkg.render.findings import BASES, Checkout, View, verdict_on
from mlperf_pkg.render.table import by_key
from mlperf_pkg.results import wording
from mlperf_pkg.results.report import Report, RunRow, SystemRow, as_json

_LINES = re.compile(r"\blines? [0-9]+(, [0-9]+)*")


# ---- what the formats share -------------------------------------------------------------


def finding_text(finding: Finding) -> str:
    """Return a finding with its basis, its places and its remarks, as lines of visible text."""
    sentence = words.sentence(finding)
    if finding.basis is not Basis.BOTH:
        sentence = f"{sentence} [{finding.basis}]"
    lines = [sentence, *words.remarks(finding)]
    return "\n".join(map(visible, lines))


def text_with_set(finding: Finding) -> str:
    """Return the text of a finding, after the id of its set if this is one of raw logs."""
    text = finding_text(finding)
    if finding.set and finding.set == finding.subject:
        return f"{visible(finding.set)}: {text}"
    return text


def fingerprinted(findings: Iterable[Finding], view: View) -> Iterator[tuple[Finding, str]]:
    """Yield each finding with its fingerprint, which identifies it in later checks.

    It contains the id of the result set or, without one, the path, but no lines and values, as
    these change. Equal findings are numbered.
    """
    counts: Counter[tuple[str, ...]] = Counter()
    for finding in findings:
        message = _LINES.sub("line", finding.message)
        about = finding.set or view.checkout.path_of(finding, finding.about)
        identity = (finding.code, about, finding.basis.value, message)
        counts[identity] += 1
        parts = [*identity, str(counts[identity])]
        data = "\0".join(parts).encode("utf-8", "surrogatepass")
        yield finding, hashlib.sha256(data).hexdigest()[:32]


# ---- a line for each finding ------------------------------------------------------------


def concise(report: Report, view: View) -> str:
    """Render ``path:line: severity CODE message``; paths are relative to the current folder."""
    paths = replace(view.checkout, root=view.checkout.here)
    lines = [_line(finding, paths) for finding in words.shown(report.findings, view)]
    return "".join(f"{line}\n" for line in lines)


def _line(finding: Finding, paths: Checkout) -> str:
    severity = Severity.NOTE if finding.waiver else finding.severity
    text = text_with_set(finding).replace("\n", "; ")
    return f"{_place(finding, paths)}: {severity} {finding.code} {text}"


def _place(finding: Finding, paths: Checkout) -> str:
    path = visible(paths.path_of(finding))
    if finding.line:
        return f"{path}:{finding.line}"
    return path


# ---- GitHub -----------------------------------------------------------------------------

SHOWN = 10  # annotations of one kind that GitHub shows for a step
_KINDS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTE: "notice"}
_OF_DATA = str.maketrans({"%": "%25", "\r": "%0D", "\n": "%0A"})
_OF_PROPERTIES = _OF_DATA | str.maketrans({":": "%3A", ",": "%2C"})


def github(report: Report, view: View) -> str:
    """Render one annotation per line: a notice with the verdicts, then the findings.

    GitHub shows ten errors, ten warnings and ten notices of a step, and fifty annotations of a job,
    so only the most important are written, and the first one says how many are left out. What
    follows from another finding comes after the rest of its kind.
    """

    def order(finding: Finding) -> tuple[bool, tuple[int, int], str]:
        follows = finding.cause is not None
        return follows, words.importance(finding), view.checkout.path_of(finding)

    numbers = Counter(["notice"])  # the notice with the verdicts counts, too
    annotations = []
    for finding in sorted(words.shown(report.findings, view), key=order):
        kind = _kind(finding)
        numbers[kind] += 1
        if numbers[kind] <= SHOWN:
            annotations.append(_command(kind, _properties(finding, view), finding_text(finding)))
    summary = _command("notice", {"title": "MLPerf check"}, _summary(report, numbers))
    return "\n".join([summary, *annotations]) + "\n"


def _kind(finding: Finding) -> str:
    return "notice" if finding.waiver else _KINDS[finding.severity]


def _summary(report: Report, numbers: Mapping[str, int]) -> str:
    """Return the verdicts, the counts, the round, and how many annotations are left out."""
    lines = [words.verdict_line(report, basis) for basis in BASES]
    lines += [words.counts_in_words(report), words.round_in_words(report)]
    left_out = []
    for kind in _KINDS.values():
        if numbers[kind] > SHOWN:
            left_out.append(wording.counted(numbers[kind] - SHOWN, kind))
    if left_out:
        shows = f"GitHub shows at most {SHOWN} of each severity, and the job summary lists all"
        lines.append(f"not shown here: {', '.join(left_out)}; {shows}")
    return "\n".join(map(visible, lines))


def _properties(finding: Finding, view: View) -> dict[str, str]:
    title = f"waived {finding.code}" if finding.waiver else finding.code
    if finding.set:
        title = f"{title} {finding.set}"
    properties = {"file": visible(view.checkout.path_of(finding))}
    if finding.line:
        properties["line"] = str(finding.line)
    properties["title"] = visible(title)
    return properties


def _command(kind: str, properties: dict[str, str], message: str) -> str:
    pairs = []
    for name, value in properties.items():
        pairs.append(f"{name}={value.translate(_OF_PROPERTIES)}")
    return f"::{kind} {','.join(pairs)}::{message.translate(_OF_DATA)}"


# ---- GitLab -----------------------------------------------------------------------------

_ERRORS = {Basis.BOTH: "blocker", Basis.OFFICIAL: "critical", Basis.RULES: "major"}
_OTHERS = {Severity.ERROR: "major", Severity.WARNING: "minor", Severity.NOTE: "info"}


def gitlab(report: Report, view: View) -> str:
    """Render an array of all findings, including notes and waived findings."""
    issues = []
    for finding, fingerprint in fingerprinted(report.findings, view):
        issues.append(_issue(finding, fingerprint, view))
    return json.dumps(issues, indent=2) + "\n"


def _issue(finding: Finding, fingerprint: str, view: View) -> dict[str, Any]:
    location = {
        "path": visible(view.checkout.path_of(finding)),
        "lines": {"begin": finding.line or 1},
    }
    return {
        "description": text_with_set(finding).replace("\n", "; "),
        "check_name": finding.code,
        "fingerprint": fingerprint,
        "severity": _gitlab_severity(finding),
        "location": location,
    }


def _gitlab_severity(finding: Finding) -> str:
    if finding.is_error and finding.basis in _ERRORS:
        return _ERRORS[finding.basis]
    return "info" if finding.waiver else _OTHERS[finding.severity]


# ---- JUnit ------------------------------------------------------------------------------

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
    """Render all suites; both verdicts are properties of each suite and lines of each test.

    There is a suite per result set, named by its id, with a test for the set and one for each run,
    then suites for logs outside result sets, for systems, and for the rest of the tree. An error
    that is not waived fails a test.
    """
    root = ET.Element("testsuites", name="mlperf-pkg check")
    suites = [suite for suite in _suites(report, view) if suite.cases]
    all_cases = chain.from_iterable(suite.cases for suite in suites)
    _count(root, list(all_cases))
    about = {f"verdict.{basis}": verdict_on(report, basis).value for basis in BASES}
    about["round"] = words.round_in_words(report)
    about.update(report.tool)
    for suite in suites:
        _add_suite(root, suite, about, view)
    ET.indent(root)
    xml = ET.tostring(root, encoding="unicode")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{xml}\n'


# ---- suites and tests ---------------------------------------------------------------------


class _Suite(NamedTuple):
    name: str
    cases: Sequence[_Case]


def _suites(report: Report, view: View) -> Iterator[_Suite]:
    findings_by_blamed = _by_blamed(report)

    def case(row: RunRow | SystemRow) -> _Case:
        name = row.label if isinstance(row, RunRow) else row.path
        findings = findings_by_blamed.pop((None, name), ())
        return _Case(view.checkout.path(name), row.verdict, findings)

    runs_by_set = by_key((run.set, run) for run in report.runs)
    for row in report.result_sets:
        findings_of_set = findings_by_blamed.pop((row.id, ""), ())
        cases = [_Case(row.id, row.verdict, findings_of_set)]
        cases += map(case, runs_by_set.pop(row.id, ()))
        yield _Suite(row.id, cases)
    loose_runs = chain.from_iterable(runs_by_set.values())
    yield _Suite("logs outside result sets", list(map(case, loose_runs)))
    yield _Suite("systems", list(map(case, report.systems)))
    rest = []
    for findings in findings_by_blamed.values():
        path = view.checkout.path_of(findings[0])
        rest.append(_Case(path, verdicts_of(findings), findings))
    yield _Suite("tree", rest)


_Blamed: TypeAlias = tuple[str | None, str]
"""What a finding blames: the id of a set, or a path, such as that of a run."""


def _by_blamed(report: Report) -> dict[_Blamed, list[Finding]]:
    """Return findings by what they blame.

    A finding on a set blames the set, unless its place is one of the runs of this set.
    """
    sets = {run.label: run.set for run in report.runs}
    parts = by_key((run.path, run) for run in report.runs if run.lines)
    by_blamed: dict[_Blamed, list[Finding]] = {}
    for finding in report.findings:
        for place in finding.occurrences:
            name = _name_of(place, parts.get(place.path, ()))
            blamed: _Blamed = (None, name)
            if finding.set is not None and finding.set != sets.get(name):
                blamed = (finding.set, "")
            by_blamed.setdefault(blamed, []).append(finding.at(place))
    return by_blamed


def _name_of(place: Occurrence, parts: Iterable[RunRow]) -> str:
    """Return the path of a place or, of a file that has ``parts``, the run that wrote its line."""
    line = next(iter(place.lines), 0)
    for run in parts:
        if run.lines and run.lines[0] <= line <= run.lines[1]:
            return run.label
    return place.path


# ---- XML ----------------------------------------------------------------------------------


def _add_suite(root: ET.Element, suite: _Suite, about: Mapping[str, str], view: View) -> None:
    name = visible(suite.name)
    element = ET.SubElement(root, "testsuite", name=name)
    _count(element, suite.cases)
    skipped = [case for case in suite.cases if case.skipped]
    element.set("skipped", str(len(skipped)))
    properties = ET.SubElement(element, "properties")
    for key, value in about.items():
        ET.SubElement(properties, "property", name=key, value=visible(value))
    for case in suite.cases:
        test = ET.SubElement(element, "testcase", name=visible(case.name), classname=name)
        _describe(test, case, view)


def _count(element: ET.Element, cases: Sequence[_Case]) -> None:
    failed = [case for case in cases if case.errors]
    element.attrib.update(tests=str(len(cases)), failures=str(len(failed)), errors="0")


def _describe(test: ET.Element, case: _Case, view: View) -> None:
    """Add what failed, that nothing was checked, and the rest: verdicts and other findings."""
    if case.errors:
        _add_failure(test, case.errors, view)
    if case.skipped:
        ET.SubElement(test, "skipped", message="not checked")
    lines = [f"{basis}: {wording.VERDICTS[verdict_on(case, basis)]}" for basis in BASES]
    for finding in case.findings:
        if not finding.is_error:
            lines += _lines(finding, view)
    ET.SubElement(test, "system-out").text = "\n".join(lines)


def _add_failure(test: ET.Element, errors: Sequence[Finding], view: View) -> None:
    """Add the errors of a test: the most important cause is the message, all are the text."""
    causes = [error for error in errors if error.cause is None]
    worst = min(causes or errors, key=words.importance)
    message = visible(f"{worst.code}: {worst.text}")
    if len(errors) > 1:
        message += f" (and {wording.counted(len(errors) - 1, 'more error')})"
    failed = [basis for basis in BASES if any(error.fails(basis) for error in errors)]
    failure = ET.SubElement(test, "failure", type=" and ".join(failed), message=message)
    lines: list[str] = []
    for error in errors:
        lines += _lines(error, view)
    failure.text = "\n".join(lines)


def _lines(finding: Finding, view: View) -> Iterator[str]:
    place = _place(finding, view.checkout)
    sentence, *remarks = finding_text(finding).split("\n")
    yield f"{place}: {wording.severity(finding)} {visible(finding.code)}: {sentence}"
    for remark in remarks:
        yield f"  {remark}"


# ---- SARIF 2.1.0, the Static Analysis Results Interchange Format of OASIS ----------------

_VERSION = "2.1.0"
_SCHEMA = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)
FINGERPRINT_NAME = "mlperfPkgFinding/v2"
_MOST_RELATED = 100  # places of one result; the property "places" is their number
_ROOT = "%SRCROOT%"  # by convention: the root of the repository
_FIELDS = (
    "found", "expected", "hint", "source", "set", "subject", "runs", "of_runs", "id", "cause",
)  # fmt: skip
_PROPERTIES = ("usage", "round", "round_reason", "verdict", "hidden")


def sarif(report: Report, view: View) -> str:
    """Render one run with all findings, including notes; waived findings are suppressed."""
    codes = sorted({finding.code for finding in report.findings})
    places = {code: place for place, code in enumerate(codes)}
    results = []
    for finding, fingerprint in fingerprinted(report.findings, view):
        results.append(_result(finding, places[finding.code], fingerprint, view))
    driver = {
        "name": "mlperf-pkg",
        "version": report.tool["version"],
        "rules": list(map(_rule, codes)),
        "properties": dict(report.tool),
    }
    invocation = {
        "executionSuccessful": True,
        "exitCode": int(report.has_errors),
        "exitCodeDescription": words.counts_in_words(report),
    }
    properties = {}
    for name in _PROPERTIES:
        properties[name] = as_json(getattr(report, name))
    run = {
        "tool": {"driver": driver},
        "invocations": [invocation],
        "properties": properties,
        "results": results,
    }
    return json.dumps({"$schema": _SCHEMA, "version": _VERSION, "runs": [run]}, indent=2) + "\n"


def _rule(code: str) -> dict[str, Any]:
    """Return the meaning of a code; an unknown code has only its name."""
    from mlperf_pkg.render.rules import code_lines  # noqa: PLC0415 - slow to import
    from mlperf_pkg.rulebook import explain  # noqa: PLC0415 - slow to import
    from mlperf_pkg.rulebook.load import codes  # noqa: PLC0415 - reads every explanation

    explained = codes().get(code)
    if explained:
        title = explained.title
        text = explained.explanation
    elif code in explain.rulebook_codes():  # in the newest round that has it, and in all rounds
        keys: dict[str, None] = {}
        texts: dict[str, None] = {}
        for history in explain.histories(code):
            for span in history.spans:
                rule = span.rule
                keys[rule.key] = None
                texts[f"{explain.with_basis(rule)} ({span.words})"] = None
        title = f"{', '.join(keys)}: {explain.requirement(rule)}"
        text = f"{', '.join(keys)}: {'; '.join(texts)}"
    else:
        return {"id": visible(code)}
    return {
        "id": code,
        "shortDescription": _message(title),
        "fullDescription": _message(text),
        "help": _message("\n".join(code_lines(code))),
    }


def _result(finding: Finding, rule: int, fingerprint: str, view: View) -> dict[str, Any]:
    first, *others = _locations(finding, view)
    result: dict[str, Any] = {
        "ruleId": visible(finding.code),
        "ruleIndex": rule,
        "level": finding.severity.value,
        "message": _message(text_with_set(finding)),
        "locations": [first],
    }
    if others:
        result["relatedLocations"] = others[:_MOST_RELATED]
    result["partialFingerprints"] = {FINGERPRINT_NAME: fingerprint}
    if finding.waiver:
        result["suppressions"] = [_suppression(finding.waiver)]
    result["properties"] = _properties_of_result(finding)
    return result


def _properties_of_result(finding: Finding) -> dict[str, Any]:
    properties: dict[str, Any] = {
        "basis": finding.basis.value,
        "fails": {basis.value: finding.fails(basis) for basis in BASES},
    }
    properties.update(as_json({name: getattr(finding, name) for name in _FIELDS}))
    properties["count"] = finding.count
    properties["places"] = len(finding.occurrences)
    return properties


def _suppression(waiver: Waiver) -> dict[str, str]:
    why = f"{waiver.reason} (approved by {waiver.approved_by} until {waiver.until})"
    return {"kind": "external", "status": "accepted", "justification": visible(why)}


def _locations(finding: Finding, view: View) -> Iterator[dict[str, Any]]:
    """Yield every line, or file, of a finding, with the id of its result set."""
    for place in finding.occurrences:
        uri = quote(view.checkout.path_of(finding, place.path), errors="surrogateescape")
        for line in place.lines or (None,):
            physical: dict[str, Any] = {"artifactLocation": {"uri": uri, "uriBaseId": _ROOT}}
            if line:
                physical["region"] = {"startLine": line}
            location: dict[str, Any] = {"physicalLocation": physical}
            if finding.set:
                location["logicalLocations"] = [{"fullyQualifiedName": visible(finding.set)}]
            yield location


def _message(text: str) -> dict[str, str]:
    """Return plain text; braces would be placeholders and [text](target) a link (SARIF, 3.11)."""
    plain = "\n".join(map(visible, text.rstrip("\n").split("\n")))
    without_placeholders = plain.replace("{", "{{").replace("}", "}}")
    return {"text": without_placeholders.replace("](", r"\](")}
