"""A report as SARIF 2.1.0, the Static Analysis Results Interchange Format of OASIS."""

import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

from mlperf_pkg.findings import Finding, Severity
from mlperf_pkg.infra.text import visible
from mlperf_pkg.render import ci, findings
from mlperf_pkg.render.findings import View
from mlperf_pkg.results.report import Report, as_json
from mlperf_pkg.rulebook import explain

VERSION = "2.1.0"
SCHEMA = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)
FINGERPRINT_NAME = "mlperfPkgFinding/v2"
_LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTE: "note"}
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
    run = {
        "tool": {"driver": driver},
        "invocations": [invocation | {"exitCodeDescription": findings.counts_in_words(report)}],
        "properties": {name: as_json(getattr(report, name)) for name in _PROPERTIES},
        "results": [
            _result(finding, index[finding.code], fingerprint, view)
            for finding, fingerprint in ci.fingerprinted(report.findings, view)
        ],
    }
    return json.dumps({"$schema": SCHEMA, "version": VERSION, "runs": [run]}, indent=2) + "\n"


# ---- rules --------------------------------------------------------------------------------


def _rule(code: str) -> dict[str, Any]:
    """Return the meaning of a code; an unknown code has only its name."""
    from mlperf_pkg.render.rules import code_lines  # noqa: PLC0415 - the same
    from mlperf_pkg.rulebook.load import codes  # noqa: PLC0415 - reads every explanation

    if code in codes():
        title, text = codes()[code].title, codes()[code].explanation
    elif code in explain.rulebook_codes():  # in the newest round that has it, and in all rounds
        spans = [span for history in explain.histories(code) for span in history.spans]
        keys = ", ".join(dict.fromkeys(span.rule.key for span in spans))
        texts = dict.fromkeys(f"{explain.with_basis(s.rule)} ({s.words})" for s in spans)
        title = f"{keys}: {explain.requirement(spans[-1].rule)}"
        text = f"{keys}: {'; '.join(texts)}"
    else:
        return {"id": visible(code)}
    return {
        "id": code,
        "shortDescription": _message(title),
        "fullDescription": _message(text),
        "help": _message("\n".join(code_lines(code))),
    }


# ---- results ------------------------------------------------------------------------------


def _result(finding: Finding, rule: int, fingerprint: str, view: View) -> dict[str, Any]:
    first, *others = _locations(finding, view)
    related = {"relatedLocations": others[:_MOST_RELATED]} if others else {}
    suppressed: dict[str, Any] = {}
    if waiver := finding.waiver:
        why = visible(f"{waiver.reason} (approved by {waiver.approved_by} until {waiver.until})")
        accepted = {"kind": "external", "status": "accepted", "justification": why}
        suppressed = {"suppressions": [accepted]}
    return {
        "ruleId": visible(finding.code),
        "ruleIndex": rule,
        "level": _LEVELS[finding.severity],
        "message": _message(ci.text_with_set(finding)),
        "locations": [first],
        **related,
        "partialFingerprints": {FINGERPRINT_NAME: fingerprint},
        **suppressed,
        "properties": _finding_properties(finding),
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


def _finding_properties(finding: Finding) -> dict[str, Any]:
    """Return the basis, the verdicts that the finding fails, and its other fields."""
    return {
        "basis": finding.basis.value,
        "fails": {basis.value: finding.fails(basis) for basis in findings.BASES},
        **as_json({name: getattr(finding, name) for name in _FIELDS}),
        "count": finding.count,
        "places": len(finding.occurrences),
    }


def _message(text: str) -> dict[str, str]:
    """Return plain text; braces would be placeholders and [text](target) a link (SARIF, 3.11)."""
    lines = map(visible, text.rstrip("\n").split("\n"))
    plain = "\n".join(lines).replace("{", "{{").replace("}", "}}")
    return {"text": plain.replace("](", r"\](")}
