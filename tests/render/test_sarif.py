"""SARIF: valid by the specification, and as code scanning uses it."""

import json
import os
from pathlib import Path
from typing import Any
from urllib.parse import unquote_to_bytes

from hypothesis import given, settings
from jsonschema import Draft202012Validator
from sarif_pydantic import Sarif

from mlperf_pkg.findings import Basis, Finding, Waiver, folded
from mlperf_pkg.render import FORMATS, Checkout, View
from mlperf_pkg.results.report import Report
from tests.helpers import hostile_reports as hostile
from tests.helpers.reports import FAIL, SET, finding, report

SCHEMA = json.loads((Path(__file__).parent / "schemas/sarif.schema.json").read_text("utf-8"))
IN_LOGS = View(checkout=Checkout("/repo", "/repo", "/repo/logs"))


def run_of(report_: Report, view: View = IN_LOGS) -> Any:
    """The only run of a valid SARIF file."""
    shown = FORMATS["sarif"](report_, view)
    assert shown.isascii()
    read = json.loads(shown)
    assert not [
        f"{error.json_path}: {error.message}"
        for error in Draft202012Validator(SCHEMA).iter_errors(read)
    ]
    (parsed,) = Sarif.model_validate_json(shown).runs  # by a reader of other people
    assert len(parsed.results or ()) == len(report_.findings)
    return read["runs"][0]


def only(**changes: Any) -> Any:
    path, line = changes.pop("path", "a.log"), changes.pop("line", None)
    return run_of(report(findings=[finding(path, line, **changes)]))["results"][0]


def test_a_result() -> None:
    result = only(line=3, basis=Basis.RULES, found=1.5, expected="2", hint="fix", source="s")
    mark = result.pop("partialFingerprints")["mlperfPkgFinding/v2"]
    assert len(mark) == 32
    assert result == {
        "ruleId": "X1",
        "ruleIndex": 0,
        "level": "error",
        "message": {"text": "wrong [rules]\nhint: fix"},
        "locations": [
            {
                "physicalLocation": {
                    "artifactLocation": {"uri": "logs/a.log", "uriBaseId": "%SRCROOT%"},
                    "region": {"startLine": 3},
                }
            }
        ],
        "properties": {
            "basis": "rules",
            "fails": {"official": False, "rules": True},
            "found": 1.5,
            "expected": "2",
            "hint": "fix",
            "source": "s",
            "subject": None,
            "runs": None,
            "of_runs": None,
            "set": None,
            "count": 1,
            "places": 1,
        },
    }


def location(path: str, line: int | None = None) -> dict[str, Any]:
    region = {"region": {"startLine": line}} if line else {}
    artifact = {"uri": path, "uriBaseId": "%SRCROOT%"}
    return {"physicalLocation": {"artifactLocation": artifact, **region}}


def folded_result(*made: Finding, set_id: str | None = None) -> Any:
    one = folded(made, "set", ["set/a.log", "set/b.log", "set/c.log"], set_id)
    return run_of(report(findings=one))["results"][0]


def test_a_folded_finding_is_one_result_with_its_places() -> None:
    result = folded_result(
        finding("set/a.log", 3, message="x is {found}", found=1),
        finding("set/a.log", 5, message="x is {found}", found=2),
        finding("set/b.log", message="x is {found}", found=3),
    )
    assert result["message"]["text"] == "x is 1 to 3 (2 of 3 runs; first a.log:3)"
    assert result["locations"] == [location("logs/set/a.log", 3)]
    assert result["relatedLocations"] == [location("logs/set/a.log", 5), location("logs/set/b.log")]
    properties = result["properties"]
    names = ("subject", "runs", "of_runs", "count", "places", "found")
    assert [properties[name] for name in names] == ["set", 2, 3, 3, 2, 1]


def test_every_location_names_the_set() -> None:
    result = folded_result(finding("set/a.log", 3), finding("set/b.log"), set_id=SET)
    named = {"logicalLocations": [{"fullyQualifiedName": SET}]}
    assert result["locations"] == [{**location("logs/set/a.log", 3), **named}]
    assert result["relatedLocations"] == [{**location("logs/set/b.log"), **named}]
    assert result["properties"]["set"] == SET


def test_related_locations_are_limited_and_counted() -> None:
    result = folded_result(*(finding(f"set/{number}.log", 1) for number in range(500)))
    assert len(result["relatedLocations"]) == 100
    assert result["properties"]["places"] == 500


def test_what_is_waived_is_suppressed() -> None:
    result = only(waiver=Waiver("agreed", "Jane", "2026-12-31"))
    assert result["suppressions"] == [
        {
            "kind": "external",
            "status": "accepted",
            "justification": "agreed (approved by Jane until 2026-12-31)",
        }
    ]
    assert result["properties"]["fails"] == {"official": True, "rules": False}


def test_rules_explain_themselves() -> None:
    findings = [finding(code=code) for code in ("SET101", "BERT111", "BERT111")]
    run = run_of(report(findings=findings))
    bert, set_ = run["tool"]["driver"]["rules"]
    assert [result["ruleIndex"] for result in run["results"]] == [0, 0, 1]
    assert (bert["id"], set_["id"]) == ("BERT111", "SET101")
    for rule in (bert, set_):
        for part in ("shortDescription", "fullDescription", "help"):
            assert len(rule[part]["text"]) > 10
        assert "source " in rule["help"]["text"]
    assert bert["shortDescription"]["text"].startswith("eval_accuracy: at least once")


def test_the_run() -> None:
    run = run_of(report(verdict=FAIL, findings=[finding()]))
    assert run["invocations"] == [
        {
            "executionSuccessful": True,
            "exitCode": 1,
            "exitCodeDescription": "1 error, 0 warnings, 0 notes",
        }
    ]
    assert run["properties"]["verdict"] == {"official": "fail", "rules": "pass"}
    assert run["tool"]["driver"]["properties"]["reference"] == "mlperf-logging 9.9.9"
    assert run_of(report())["invocations"][0]["exitCode"] == 0


def test_messages_are_plain_text() -> None:
    for message, text in (
        ("{0} and }", "{{0}} and }}"),
        ("[a](http://x)", "[a\\](http://x)"),
        ("[1, 2]", "[1, 2]"),
        ("a\n\x1b", "a\\n\\x1b"),
    ):
        assert only(message=message)["message"]["text"] == text


@settings(deadline=None)
@given(hostile.texts(), hostile.names())
def test_hostile_text_is_escaped(text: str, file: str) -> None:
    run = run_of(hostile.hostile(text, file), View())
    locations = [result["locations"][0]["physicalLocation"] for result in run["results"]]
    paths = {os.fsdecode(unquote_to_bytes(path["artifactLocation"]["uri"])) for path in locations}
    assert paths == {file, f"{file}/a", "other"}
