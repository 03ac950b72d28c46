"""A report for CI servers and editors: GitHub, GitLab, JUnit XML, SARIF, a line per finding."""

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import quote
from xml.etree import ElementTree as ET

from msgspec import Struct
from msgspec.structs import replace

from mlperf_pkg.findings import Basis, Finding, Severity, Verdict, Verdicts, verdicts_of
from mlperf_pkg.infra.text import visible
from mlperf_pkg.render import findings as words
from mlperf_pkg.render.findings import BASES, Checkout, View
from mlperf_pkg.render.table import by_key
from mlperf_pkg.results import wording
from mlperf_pkg.results.report import Report, as_json

_LINES = re.compile(r"\blines? [0-9]+(, [0-9]+)*")


# ---- what the formats share -------------------------------------------------------------


def finding_text(finding: Finding) -> str:
    """Return a finding with its basis, its places and its remarks, as lines of visible text."""
    basis = "" if finding.basis is Basis.BOTH else f" [{finding.basis}]"
    return "\n".join(map(visible, (f"{words.sentence(finding)}{basis}", *words.remarks(finding))))


def text_with_set(finding: Finding) -> str:
    """Return the text of a finding, after the id of its set if this is one of raw logs."""
    text = finding_text(finding)
    is_of_raw_logs = finding.set and finding.set == finding.subject
    return f"{visible(finding.subject or '')}: {text}" if is_of_raw_logs else text


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
        text = "\0".join((*identity, str(counts[identity]))).encode("utf-8", "surrogatepass")
        yield finding, hashlib.sha256(text).hexdigest()[:32]


# ---- a line for each finding ------------------------------------------------------------


def concise(report: Report, view: View) -> str:
    """Render ``path:line: severity CODE message``; paths are relative to the current folder."""
    paths = replace(view.checkout, root=view.checkout.here)
    return "".join(f"{_line(finding, paths)}\n" for finding in words.shown(report.findings, view))


def _line(finding: Finding, paths: Checkout) -> str:
    severity = Severity.NOTE if finding.waiver else finding.severity
    text = text_with_set(finding).replace("\n", "; ")
    return f"{_place(finding, paths)}: {severity} {finding.code} {text}"


def _place(finding: Finding, paths: Checkout) -> str:
    path = visible(paths.path_of(finding))
    return f"{path}:{finding.line}" if finding.line else path


# ---- GitHub -----------------------------------------------------------------------------

SHOWN = 10  # annotations of one kind that GitHub shows for a step
_KINDS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTE: "notice"}
_OF_DATA = str.maketrans({"%": "%25", "\r": "%0D", "\n": "%0A"})
_OF_PROPERTIES = _OF_DATA | str.maketrans({":": "%3A", ",": "%2C"})


def github(report: Report, view: View) -> str:
    """Render one annotation per line: a notice with the verdicts, then the findings.

    GitHub shows ten errors, ten warnings and ten notices of a step, and fifty annotations of a job,
    so only the most important are written, and the first one says how many are left out.
    """
    shown = sorted(
        words.shown(report.findings, view),
        key=lambda finding: (words.importance(finding), view.checkout.path_of(finding)),
    )
    kinds, lines = Counter(["notice"]), []  # the notice with the verdicts counts, too
    for finding in shown:
        kinds[_kind(finding)] += 1
        if kinds[_kind(finding)] <= SHOWN:
            properties = _properties(finding, view)
            lines.append(_command(_kind(finding), properties, finding_text(finding)))
    left_out = {kind: kinds[kind] - SHOWN for kind in _KINDS.values() if kinds[kind] > SHOWN}
    summary = _command("notice", {"title": "MLPerf check"}, _summary(report, left_out))
    return "\n".join([summary, *lines]) + "\n"


def _kind(finding: Finding) -> str:
    return "notice" if finding.waiver else _KINDS[finding.severity]


def _summary(report: Report, left_out: Mapping[str, int]) -> str:
    verdicts = [f"{basis}: {words.verdict_sentence(report, basis)}" for basis in BASES]
    rest = words.counts_in_words(report), words.round_in_words(report)
    lines = list(map(visible, (*verdicts, *rest)))
    if left_out:
        numbers = ", ".join(wording.counted(number, kind) for kind, number in left_out.items())
        shows = f"GitHub shows {SHOWN} of a kind, the job summary lists all"
        lines.append(f"left out: {numbers}; {shows}")
    return "\n".join(lines)


def _properties(finding: Finding, view: View) -> dict[str, str]:
    title = f"waived {finding.code}" if finding.waiver else finding.code
    title = f"{title} {finding.set}" if finding.set else title
    line = {"line": str(finding.line)} if finding.line else {}
    return {"file": visible(view.checkout.path_of(finding)), **line, "title": visible(title)}


def _command(kind: str, properties: dict[str, str], message: str) -> str:
    pairs = (f"{name}={value.translate(_OF_PROPERTIES)}" for name, value in properties.items())
    return f"::{kind} {','.join(pairs)}::{message.translate(_OF_DATA)}"


# ---- GitLab -----------------------------------------------------------------------------

_ERRORS = {Basis.BOTH: "blocker", Basis.OFFICIAL: "critical", Basis.RULES: "major"}
_OTHERS = {Severity.ERROR: "major", Severity.WARNING: "minor", Severity.NOTE: "info"}


def gitlab(report: Report, view: View) -> str:
    """Render an array of all findings, including notes and waived findings."""
    issues = [_issue(*pair, view) for pair in fingerprinted(report.findings, view)]
    return json.dumps(issues, indent=2) + "\n"


def _issue(finding: Finding, fingerprint: str, view: View) -> dict[str, Any]:
    severity = "info" if finding.waiver else _OTHERS[finding.severity]
    severity = _ERRORS.get(finding.basis, severity) if finding.is_error else severity
    path = visible(view.checkout.path_of(finding))
    lines = {"begin": finding.line or 1}
    return {
        "description": text_with_set(finding).replace("\n", "; "),
        "check_name": finding.code,
        "fingerprint": fingerprint,
        "severity": severity,
        "location": {"path": path, "lines": lines},
    }


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
    verdicts = {f"verdict.{basis}": getattr(report.verdict, basis).value for basis in BASES}
    about = {**verdicts, "round": words.round_in_words(report), **report.tool}
    suites = [(name, cases) for name, cases in _suites(report, view) if cases]
    _count(root, [case for _, cases in suites for case in cases])
    for name, cases in suites:
        suite = ET.SubElement(root, "testsuite", name=visible(name))
        _count(suite, cases)
        suite.set("skipped", str(sum(case.skipped for case in cases)))
        properties = ET.SubElement(suite, "properties")
        for key, value in about.items():
            ET.SubElement(properties, "property", name=key, value=visible(value))
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

    members = by_key((run.set, run) for run in report.runs)
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

    def item(finding: Finding, path: str) -> tuple[str | None, str]:
        is_of_set = finding.set is not None and finding.set != sets.get(path)
        return (finding.set, "") if is_of_set else (None, path)

    places = ((finding, place) for finding in report.findings for place in finding.occurrences)
    return by_key((item(one, place.path), one.at(place)) for one, place in places)


# ---- XML ----------------------------------------------------------------------------------


def _count(element: ET.Element, cases: Sequence[_Case]) -> None:
    failed = sum(bool(case.errors) for case in cases)
    element.attrib.update(tests=str(len(cases)), failures=str(failed), errors="0")


def _test(suite: ET.Element, suite_name: str, case: _Case, view: View) -> None:
    test = ET.SubElement(suite, "testcase", name=visible(case.name), classname=visible(suite_name))
    errors = case.errors
    if errors:  # the most important one is the message, all are the text
        worst = min(errors, key=words.importance)
        number = wording.counted(len(errors) - 1, "error")
        fails = [basis for basis in BASES if any(error.fails(basis) for error in errors)]
        message = visible(f"{worst.code}: {worst.text}")
        message += f" (and {number} more)" if len(errors) > 1 else ""
        failure = ET.SubElement(test, "failure", type=" and ".join(fails), message=message)
        failure.text = "\n".join(_lines(errors, view))
    if case.skipped:
        ET.SubElement(test, "skipped", message="not checked")
    others = [finding for finding in case.findings if not finding.is_error]
    verdicts = [f"{basis}: {wording.VERDICTS[getattr(case.verdict, basis)]}" for basis in BASES]
    lines = [*verdicts, *_lines(others, view)]
    ET.SubElement(test, "system-out").text = "\n".join(lines)


def _lines(group: Iterable[Finding], view: View) -> Iterator[str]:
    for finding in group:
        place, first, *remarks = _place(finding, view.checkout), *finding_text(finding).split("\n")
        yield f"{place}: {wording.severity(finding)} {visible(finding.code)}: {first}"
        yield from (f"  {remark}" for remark in remarks)


# ---- SARIF 2.1.0, the Static Analysis Results Interchange Format of OASIS ----------------

_VERSION = "2.1.0"
_SCHEMA = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)
FINGERPRINT_NAME = "mlperfPkgFinding/v2"
_MOST_RELATED = 100  # places of one result; the property "places" is their number
_ROOT = "%SRCROOT%"  # by convention: the root of the repository
_FIELDS = ("found", "expected", "hint", "source", "set", "subject", "runs", "of_runs")
_PROPERTIES = ("usage", "round", "round_reason", "verdict", "hidden")


def sarif(report: Report, view: View) -> str:
    """Render one run with all findings, including notes; waived findings are suppressed."""
    codes = sorted({finding.code for finding in report.findings})
    index = {code: number for number, code in enumerate(codes)}
    about = {"rules": list(map(_rule, codes)), "properties": dict(report.tool)}
    driver = {"name": "mlperf-pkg", "version": report.tool["version"], **about}
    invocation = {"executionSuccessful": True, "exitCode": int(report.has_errors)}
    marked = fingerprinted(report.findings, view)
    run = {
        "tool": {"driver": driver},
        "invocations": [invocation | {"exitCodeDescription": words.counts_in_words(report)}],
        "properties": {name: as_json(getattr(report, name)) for name in _PROPERTIES},
        "results": [_result(one, index[one.code], mark, view) for one, mark in marked],
    }
    return json.dumps({"$schema": _SCHEMA, "version": _VERSION, "runs": [run]}, indent=2) + "\n"


def _rule(code: str) -> dict[str, Any]:
    """Return the meaning of a code; an unknown code has only its name."""
    from mlperf_pkg.render.rules import code_lines  # noqa: PLC0415 - slow to import
    from mlperf_pkg.rulebook import explain  # noqa: PLC0415 - slow to import
    from mlperf_pkg.rulebook.load import codes  # noqa: PLC0415 - reads every explanation

    if code in codes():
        title = codes()[code].title
        text = codes()[code].explanation
    elif code in explain.rulebook_codes():  # in the newest round that has it, and in all rounds
        spans = [span for history in explain.histories(code) for span in history.spans]
        keys = ", ".join(dict.fromkeys(span.rule.key for span in spans))
        texts = dict.fromkeys(f"{explain.with_basis(s.rule)} ({s.words})" for s in spans)
        title = f"{keys}: {explain.requirement(spans[-1].rule)}"
        text = f"{keys}: {'; '.join(texts)}"
    else:
        return {"id": visible(code)}
    helps = "\n".join(code_lines(code))
    parts = {"shortDescription": title, "fullDescription": text, "help": helps}
    return {"id": code, **{name: _message(part) for name, part in parts.items()}}


def _result(finding: Finding, rule: int, fingerprint: str, view: View) -> dict[str, Any]:
    first, *others = _locations(finding, view)
    related = {"relatedLocations": others[:_MOST_RELATED]} if others else {}
    suppressed: dict[str, Any] = {}
    waiver = finding.waiver
    if waiver:
        why = visible(f"{waiver.reason} (approved by {waiver.approved_by} until {waiver.until})")
        accepted = {"kind": "external", "status": "accepted", "justification": why}
        suppressed = {"suppressions": [accepted]}
    return {
        "ruleId": visible(finding.code),
        "ruleIndex": rule,
        "level": finding.severity.value,
        "message": _message(text_with_set(finding)),
        "locations": [first],
        **related,
        "partialFingerprints": {FINGERPRINT_NAME: fingerprint},
        **suppressed,
        "properties": {
            "basis": finding.basis.value,
            "fails": {basis.value: finding.fails(basis) for basis in BASES},
            **as_json({name: getattr(finding, name) for name in _FIELDS}),
            "count": finding.count,
            "places": len(finding.occurrences),
        },
    }


def _locations(finding: Finding, view: View) -> Iterator[dict[str, Any]]:
    """Yield every line, or file, of a finding, with the id of its result set."""
    logical: dict[str, Any] = {}
    if finding.set:
        logical = {"logicalLocations": [{"fullyQualifiedName": visible(finding.set)}]}
    for place in finding.occurrences:
        uri = quote(view.checkout.path_of(finding, place.path), errors="surrogateescape")
        artifact = {"artifactLocation": {"uri": uri, "uriBaseId": _ROOT}}
        for line in place.lines or (None,):
            region = {"region": {"startLine": line}} if line else {}
            yield {"physicalLocation": {**artifact, **region}, **logical}


def _message(text: str) -> dict[str, str]:
    """Return plain text; braces would be placeholders and [text](target) a link (SARIF, 3.11)."""
    plain = "\n".join(map(visible, text.rstrip("\n").split("\n")))
    return {"text": plain.replace("{", "{{").replace("}", "}}").replace("](", r"\](")}
