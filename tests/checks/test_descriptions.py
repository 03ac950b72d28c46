"""System descriptions: tables of files and findings, and the official checker live."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from mlperf_logging.system_desc_checker import system_desc_checker

from mlperf_pkg.checks import descriptions
from mlperf_pkg.checks.descriptions import SystemFile, check_system
from mlperf_pkg.findings import Severity, Verdict, verdicts_of
from mlperf_pkg.infra.resources import data_folder
from mlperf_pkg.rulebook.documents import rounds
from mlperf_pkg.rulebook.load import codes
from tests.helpers.descriptions import written
from tests.helpers.stored import compared

Row = tuple[str, int | None, str, str]  # code, line, severity, basis


def rows(system: SystemFile) -> list[Row]:
    return [(f.code, f.line, f.severity.value, f.basis.value) for f in system.findings]


FATAL = ("error", "official")
AGREED = ("error", "both")
ADVISED = ("warning", "advice")
NOTED = ("note", "advice")
WARNED = ("warning", "rules")

CASES: list[tuple[str, bytes, str, list[Row]]] = [  # what, bytes, round, findings
    ("good", written(), "2.0", []),
    ("good today", written(), "6.1", []),
    ("tabs and CRLF", written().replace(b"  ", b"\t").replace(b"\n", b"\r\n"), "5.1", []),
    ("unknown fields", written(notes=None, colour=[1]), "2.0", [("SYS303", 37, *ADVISED)]),
    ("open", written(division="open"), "2.0", []),
    # The file.
    ("empty", b"", "2.0", [("SYS001", 1, *AGREED)]),
    ("trailing comma", b'{"a": "b",\n}', "2.0", [("SYS001", 1, *AGREED)]),
    ("comment", b'{\n# note\n"a": 1}', "2.0", [("SYS001", 2, *AGREED)]),
    ("UTF-16", written().decode().encode("utf-16"), "2.0", [("SYS001", 1, *AGREED)]),
    ("BOM", b"\xef\xbb\xbf" + written(), "2.0", [("SYS002", 1, *FATAL)]),
    ("Latin-1", written(cooling="?").replace(b"?", b"\xfc"), "2.0", [("SYS003", 29, *FATAL)]),
    ("list", b"[]", "2.0", [("SYS004", 1, *AGREED)]),
    ("text", b'\n"submitter system_name"', "2.0", [("SYS004", 2, *AGREED)]),
    ("null", b"null", "2.0", [("SYS004", 1, *AGREED)]),
    (
        "duplicate",
        written()[:-2] + b',\n"cooling": "?"}',
        "3.0",
        [("SYS202", 37, *WARNED), ("SYS005", 37, *NOTED)],
    ),
    ("infinite", written(cooling=float("inf")), "2.0", [("SYS006", 29, *ADVISED)]),
    # Required fields and their types.
    ("missing", written(cooling=...), "2.1", [("SYS101", 1, *AGREED)]),
    ("missing two", written(submitter=..., framework=...), "0.7", [("SYS101", 1, *AGREED)] * 2),
    (
        "not asked for",
        written(cooling=..., host_networking=...),
        "2.0",
        [("SYS101", 1, *FATAL)] * 2,
    ),
    ("asked for", written(cooling=..., host_networking=...), "2.1", [("SYS101", 1, *AGREED)] * 2),
    (
        "optional",
        written(hw_notes=..., sw_notes=..., accelerator_frequency=..., host_processor_caches=...),
        "6.1",
        [("SYS101", 1, *FATAL)] * 4,
    ),
    ("no vcpus", written(host_processor_vcpu_count=...), "2.0", [("SYS101", 1, *FATAL)]),
    (
        "no cores but vcpus",
        written(host_processor_core_count=..., host_processor_vcpu_count="8"),
        "2.0",
        [("SYS101", 1, *FATAL)],
    ),
    (
        "neither cores nor vcpus",
        written(host_processor_core_count=..., host_processor_vcpu_count=...),
        "2.0",
        [("SYS101", 1, *AGREED)] * 2,
    ),
    (
        "a preview without both",
        written(status="Preview", host_processor_core_count=..., host_processor_vcpu_count=...),
        "2.1",
        [("SYS101", 1, *FATAL)] * 2,
    ),
    (
        "a preview without both, early",
        written(status="preview", host_processor_core_count=..., host_processor_vcpu_count=...),
        "2.0",
        [("SYS101", 1, *AGREED)] * 2,
    ),
    (
        "no field for network cards",
        written(host_network_card_count=...),
        "2.1",
        [("SYS305", None, "note", "rules")],
    ),
    (
        "no field for network cards today",
        written(host_network_card_count=...),
        "6.1",
        [("SYS305", None, *WARNED)],
    ),
    ("no field for network cards, early", written(host_network_card_count=...), "2.0", []),
    ("no type of the system", written(system_type=...), "1.0", [("SYS305", None, "note", "rules")]),
    ("no type, not asked for", written(system_type=...), "0.7", []),
    (
        "no version",
        written(framework="PyTorch", other_software_stack={"driver": "new"}),
        "2.0",
        [("SYS306", 31, "warning", "rules")],
    ),
    (
        "an empty stack",
        written(framework="PyTorch", other_software_stack=""),
        "2.0",
        [("SYS202", 32, *WARNED)],
    ),
    ("a version in the stack", written(framework="PyTorch"), "2.0", []),
    ("misspelt", written(division=..., divison="open"), "2.0", [("SYS101", 36, *AGREED)]),
    (
        "numbers",
        written(accelerators_per_node=8, number_of_nodes=2),
        "2.0",
        [("SYS102", 20, *FATAL)],
    ),
    ("submitter", written(submitter=1), "2.0", [("SYS102", 2, *FATAL)]),
    ("system_name", written(system_name=["x"]), "2.0", [("SYS102", 5, *FATAL)]),
    ("host model", written(host_processor_model_name={"x": 1}), "2.0", [("SYS102", 8, *FATAL)]),
    ("core count", written(host_processor_core_count=32), "2.0", [("SYS102", 9, *FATAL)]),
    ("accelerator", written(accelerator_model_name=True), "2.0", [("SYS102", 21, *FATAL)]),
    ("framework", written(framework=2.1), "2.0", [("SYS102", 31, *FATAL)]),
    ("harmless number", written(host_memory_capacity=512), "2.0", []),
    ("harmless null", written(hw_notes=None), "2.0", [("SYS303", 30, *ADVISED)]),
    # Availability.
    ("old word", written(status="onprem"), "3.1", []),
    ("any case", written(status=" Cloud "), "3.1", []),
    ("no category", written(status="soon"), "3.1", [("SYS104", 4, "warning", "rules")]),
    ("old word, new round", written(status="onprem"), "4.0", [("SYS103", 4, *FATAL)]),
    ("as in the text", written(status="Available in the cloud"), "5.1", [("SYS103", 4, *FATAL)]),
    (
        "as in the text of research",
        written(status="Research, Development or Internal"),
        "5.1",
        [("SYS103", 4, *FATAL)],
    ),
    ("as in the text, old round", written(status="Available on premises"), "3.1", []),
    ("wrong case", written(status="preview"), "6.1", [("SYS103", 4, *FATAL)]),
    ("no category, new round", written(status="soon"), "4.1", [("SYS103", 4, *AGREED)]),
    (
        "not a string, new round",
        written(status=["Preview"]),
        "4.1",
        [("SYS103", 4, *AGREED), ("SYS303", 4, *ADVISED)],
    ),
    (
        "none, new round",
        written(status=""),
        "5.0",
        [("SYS202", 4, "warning", "rules"), ("SYS103", 4, *AGREED)],
    ),
    ("none, old round", written(status=""), "2.0", [("SYS202", 4, "warning", "rules")]),
    ("missing, new round", written(status=...), "5.0", [("SYS101", 1, *AGREED)]),
    ("research", written(status="Research, Development, or Internal (RDI)"), "4.0", []),
    # Division.
    ("close", written(division="close"), "1.0", [("SYS201", 3, "error", "rules")]),
    ("Closed", written(division="Closed"), "1.0", [("SYS201", 3, *NOTED)]),
    ("Open", written(division="Open"), "6.1", [("SYS201", 3, *NOTED)]),
    ("Closed and a blank", written(division="Closed "), "1.0", [("SYS201", 3, "error", "rules")]),
    (
        "null division",
        written(division=None),
        "1.0",
        [("SYS201", 3, "error", "rules"), ("SYS202", 3, "warning", "rules")],
    ),
    # Left to a human by "system init": reported once, beside what the official checker reports.
    ("to fill in", written(cooling="FILL IN: air?"), "2.0", [("SYS203", 29, "error", "rules")]),
    ("FILL IN alone", written(sw_notes="FILL IN"), "6.1", [("SYS203", 34, "error", "rules")]),
    (
        "two to fill in",
        written(cooling="FILL IN", sw_notes="FILL IN"),
        "2.0",
        [("SYS203", 29, "error", "rules")],
    ),
    ("division", written(division="FILL IN: x"), "2.0", [("SYS203", 3, "error", "rules")]),
    ("a count", written(number_of_nodes="FILL IN"), "2.0", [("SYS203", 6, "error", "rules")]),
    ("old status", written(status="FILL IN"), "3.1", [("SYS203", 4, "error", "rules")]),
    (
        "status",
        written(status="FILL IN"),
        "4.0",
        [("SYS103", 4, "error", "both"), ("SYS203", 4, "error", "rules")],
    ),
    ("filled in", written(sw_notes="no FILL IN here"), "4.0", []),
    # Answers.
    (
        "cores for vcpus",
        written(host_processor_core_count="", host_processor_vcpu_count="64"),
        "2.0",
        [],
    ),
    ("no cores", written(host_processor_core_count=""), "2.0", [("SYS202", 9, *WARNED)]),
    (
        "cores to come",
        written(host_processor_core_count="TBD"),
        "2.0",
        [("SYS202", 9, "warning", "rules")],
    ),
    (
        "no answers",
        written(cooling="-", host_networking="<placeholder>", framework=" "),
        "3.0",
        [("SYS202", 17, *WARNED)],
    ),
    (
        "a version to come",
        written(framework="PyTorch, version TBD"),
        "2.0",
        [("SYS202", 31, "warning", "rules")],
    ),
    ("a name like a placeholder", written(accelerator_model_name="Motodo X1"), "2.0", []),
    ("no system", written(operating_system=""), "1.0", [("SYS202", 33, "warning", "rules")]),
    (
        "no answers, early",
        written(cooling="TODO", host_networking="?", framework=" "),
        "2.0",
        [("SYS202", 31, "warning", "rules")],
    ),
    (
        "early",
        written(
            cooling="",
            host_networking="",
            host_networking_topology="",
            host_memory_configuration="",
            accelerator_host_interconnect="",
            accelerator_interconnect="",
        ),
        "2.0",
        [],
    ),
    (
        "storage and memory",
        written(host_storage_type="", host_storage_capacity="", accelerator_memory_capacity=""),
        "0.7",
        [("SYS202", 15, *WARNED)],
    ),
    ("no name", written(accelerator_model_name="N/A"), "2.0", [("SYS202", 21, *WARNED)]),
    (
        "no accelerators",
        written(
            accelerators_per_node="0", accelerator_model_name="N/A", accelerator_interconnect=""
        ),
        "3.0",
        [],
    ),
    (
        "a preview without cores, early",
        written(status="preview", host_processor_core_count=""),
        "2.0",
        [("SYS202", 9, *WARNED)],
    ),
    ("a preview without cores", written(status="preview", host_processor_core_count=""), "3.1", []),
    (
        "no network cards",
        written(host_network_card_count="?"),
        "3.0",
        [("SYS202", 36, "warning", "rules")],
    ),
    ("no network cards, early", written(host_network_card_count="?"), "2.0", []),
    ("network cards", written(host_network_card_count="8"), "3.0", []),
    ("an empty stack", written(other_software_stack={}), "2.0", [("SYS202", 32, *WARNED)]),
    # Letters.
    ("a Cyrillic A", written(submitter="\u0410cme"), "2.0", [("SYS208", 2, *ADVISED)]),
    ("a Greek O", written(system_name="b\u03bfx"), "2.0", [("SYS208", 5, *ADVISED)]),
    ("an umlaut", written(submitter="M\u00fcller"), "2.0", []),
    ("Greek alone", written(submitter="\u0391\u03b8\u03ae\u03bd\u03b1"), "2.0", []),
    ("Chinese", written(submitter="\u6d6a\u6f6e Inspur"), "2.0", []),
    # Names.
    (
        "HBM3e",
        written(accelerator_model_name="AMD Instinct MI325X 256GB HBM3e"),
        "5.1",
        [("SYS304", 21, *NOTED)],
    ),
    (
        "H200 NVL",
        written(accelerator_model_name="NVIDIA H200 NVL 141GB"),
        "5.1",
        [("SYS304", 21, *NOTED)],
    ),
    ("as published", written(accelerator_model_name="NVIDIA H200-NVL-141GB"), "5.1", []),
    (
        "another model",
        written(host_processor_model_name="Intel(R) Xeon(R) Platinum 8480"),
        "5.1",
        [],
    ),
    (
        "capitals",
        written(host_processor_model_name="INTEL XEON PLATINUM 8480+"),
        "5.1",
        [("SYS304", 8, *NOTED)],
    ),
    # Counts.
    ("decimal", written(accelerators_per_node="8.0"), "2.0", [("SYS301", 20, *ADVISED)]),
    ("words", written(number_of_nodes="two"), "2.0", [("SYS301", 6, *ADVISED)]),
    ("half", written(number_of_nodes=1.5), "2.0", [("SYS301", 6, *ADVISED)]),
    ("whole", written(number_of_nodes=2.0), "2.0", []),
    ("no node", written(number_of_nodes="0"), "2.0", [("SYS204", 6, "error", "rules")]),
    (
        "below zero",
        written(number_of_nodes="-1"),
        "2.0",
        [("SYS204", 6, "error", "rules"), ("SYS301", 6, *ADVISED)],
    ),
    ("no accelerator", written(accelerators_per_node="0"), "2.0", []),
    ("negative", written(host_processors_per_node="-2"), "2.0", [("SYS301", 7, *ADVISED)]),
]
TABLE = pytest.mark.parametrize(
    ("data", "round_", "findings"), [case[1:] for case in CASES], ids=[case[0] for case in CASES]
)


@TABLE
def test_findings(data: bytes, round_: str, findings: list[Row]) -> None:
    assert sorted(rows(compared(check_system("a.json", data, "training", round_)))) == sorted(
        findings
    )


@TABLE
@pytest.mark.parametrize("usage", ["training", "hpc"])
def test_official_verdict_is_the_official_checkers(
    data: bytes, round_: str, findings: list[Row], usage: str, tmp_path: Path
) -> None:
    if usage == "hpc" and round_ not in rounds("hpc"):
        round_ = "3.0"
    file = tmp_path / "a.json"
    file.write_bytes(data)
    try:
        valid, *_ = system_desc_checker.check_system_desc(str(file), usage, f"{round_}.0")
    except (ValueError, TypeError):
        valid = False
    ours = verdicts_of(compared(check_system("a.json", data, usage, round_)).findings).official
    assert ours is Verdict.of(not valid)


def test_hpc_has_no_fixed_availabilities() -> None:
    assert rows(compared(check_system("a.json", written(status="onprem"), "hpc", "3.0"))) == []


NAMES = [  # path, id, findings
    ("Acme/systems/anvil.json", "anvil", []),
    ("Acme/systems/anvil_1.5.x.json", "anvil_1.5.x", []),
    ("Acme/systems/two words.json", "two words", [("SYS302", None, *NOTED)]),
    ("Acme/systems/.hidden.json", ".hidden", [("SYS302", None, *NOTED)]),
    ("two words/.systems/anvil.json", "anvil", []),
    ("Acme/systems/2xanvil.json", "2xanvil", []),
    ("Acme/systems/anvil_ngpu16.json", "anvil_ngpu16", []),
    ("Acme/systems/anvil_n3_cuda.json", "anvil_n3_cuda", [("SYS206", 6, *ADVISED)]),
    ("Acme/systems/3xanvil.json", "3xanvil", [("SYS206", 6, *ADVISED)]),
    ("Acme/systems/anvil_n3x.json", "anvil_n3x", []),
    ("Acme/systems/anvil_7773X_mxnet.json", "anvil_7773X_mxnet", []),
    ("Acme/systems/anvil_7773X_n2.json", "anvil_7773X_n2", []),
    ("Acme/systems/anvil_7773X_n3.json", "anvil_7773X_n3", [("SYS206", 6, *ADVISED)]),
    ("Acme/systems/anvil_8xH100.json", "anvil_8xH100", []),
    ("Acme/systems/b\u03bfx.json", "b\u03bfx", [("SYS208", None, *ADVISED)]),
    ("Acme/systems/anvil_7774x.json", "anvil_7774x", [("SYS206", 6, *ADVISED)]),
]


ACCELERATORS = [  # name of the file, model, number of nodes, findings
    ("anvil_h200", "NVIDIA H200-SXM5-141GB", "1", []),
    ("anvil_h200", "NVIDIA H100-SXM5-80GB", "1", [("SYS207", 21, *ADVISED)]),
    ("dgxh200_n2", "NVIDIA H100-SXM5-80GB", "2", [("SYS207", 21, *ADVISED)]),
    ("carina_gb200", "NVIDIA Blackwell GPU (GB200)", "1", []),
    ("carina_gb200", "NVIDIA Blackwell GPU (B200-SXM-180GB)", "1", [("SYS207", 21, *ADVISED)]),
    ("anvil_h200", "Hammer 1", "1", []),
    ("8xanvilx8H100", "NVIDIA H100-SXM5-80GB", "8", []),
    ("16xH100", "NVIDIA H100-SXM5-80GB", "2", []),
    ("8xH100", "NVIDIA H100-SXM5-80GB", "2", []),
    ("anvilx4H100", "NVIDIA H100-SXM5-80GB", "1", [("SYS207", 20, *ADVISED)]),
    ("anvil_H100x4", "NVIDIA H100-SXM5-80GB", "1", [("SYS207", 20, *ADVISED)]),
    ("4xMI300X", "AMD Instinct MI300X 192GB HBM3", "1", [("SYS207", 20, *ADVISED)]),
    ("anvil_670_H100", "NVIDIA H100-SXM5-80GB", "1", []),
]


@pytest.mark.parametrize(("stem", "model", "nodes", "findings"), ACCELERATORS)
def test_accelerators_in_names(stem: str, model: str, nodes: str, findings: list[Row]) -> None:
    data = written(accelerator_model_name=model, number_of_nodes=nodes)
    system = compared(check_system(f"Acme/systems/{stem}.json", data, "training", "4.1"))
    assert rows(system) == findings


@pytest.mark.parametrize(("path", "name", "findings"), NAMES)
def test_names(path: str, name: str, findings: list[Row]) -> None:
    system = compared(check_system(path, written(), "training", "2.0"))
    assert (system.path, system.id, rows(system)) == (path, name, findings)


MESSAGES = [  # changes, message, hint
    ({"cooling": ...}, "missing fields: cooling", None),
    (
        {"cooling": ..., "coolling": ""},
        'the field "coolling" is unknown; expected "cooling"',
        'rename "coolling" to "cooling"',
    ),
    ({"submitter": 7}, "submitter is 7; expected text", "write the value in double quotes"),
    (
        {"division": "Close"},
        'division is "Close"; expected "closed" or "open"',
        'for "Close", did you mean "closed"?',
    ),
    (
        {"status": "cloud"},
        (
            'status is "cloud"; expected "Available on-premise", "Available cloud",'
            ' "Research, Development, or Internal (RDI)" or "Preview"'
        ),
        'for "cloud", did you mean "Available cloud"?',
    ),
    (
        {"status": "Availble cloud"},
        (
            'status is "Availble cloud"; expected "Available on-premise", "Available cloud",'
            ' "Research, Development, or Internal (RDI)" or "Preview"'
        ),
        'for "Availble cloud", did you mean "Available cloud"?',
    ),
    (
        {"accelerator_model_name": "Nvidia h100-sxm5-80GB"},
        (
            'accelerator_model_name is "Nvidia h100-sxm5-80GB"; expected "NVIDIA H100-SXM5-80GB"'
            ", as in published descriptions (only the case differs)"
        ),
        None,
    ),
    (
        {"cooling": "", "host_processor_core_count": "?"},
        (
            "fields without a value, or with only a placeholder: host_processor_core_count or"
            " host_processor_vcpu_count, cooling"
        ),
        None,
    ),
    (
        {"number_of_nodes": "a" * 99},
        f'number_of_nodes is "{"a" * 76}...; expected a whole '
        "number of at most 1,000,000,000, as the results table computes the number of accelerators"
        " from this field",
        None,
    ),
    (
        {"host_processors_per_node": "2\ud83d"},
        'host_processors_per_node is "2\\\\ud83d"; '
        "expected a whole number of at most 1,000,000,000, as the results table computes the number"
        " of processors from this field",
        None,
    ),
]


@pytest.mark.parametrize(("changes", "message", "hint"), MESSAGES)
def test_messages(changes: dict[str, Any], message: str, hint: str | None) -> None:
    (finding,) = compared(check_system("a.json", written(**changes), "training", "5.0")).findings
    assert (finding.text, finding.hint) == (message, hint)


@pytest.mark.parametrize("value", [float("nan"), [float("inf")], {"a": "\ud83d"}, 1e400, "\ud83d"])
def test_findings_can_be_written_as_json(value: object) -> None:
    system = compared(
        check_system("a.json", written(status=value, submitter=value), "training", "4.0")
    )
    for finding in system.findings:
        json.dumps([finding.found, finding.text], allow_nan=False, ensure_ascii=False).encode()


def test_model() -> None:
    data, path = written(), "Acme/systems/anvil.json"
    fields = ("Acme", "closed", "Available on-premise", "anvil", 16, (), 2, 2)
    system = SystemFile(path, "anvil", json.loads(data), *fields)
    assert compared(check_system(path, data, "training", "2.0")) == system


COUNTS = [  # nodes, accelerators per node, total
    ("2", "8", 16),
    (" 2 ", 8, 16),
    (2.0, "0", 0),
    ("2", "8.0", None),
    ("2", None, None),
    ("2", True, None),
    ("2", float("inf"), None),
    ("2", "9" * 5000, None),
    (..., "8", None),
]


@pytest.mark.parametrize(("nodes", "per_node", "total"), COUNTS)
def test_accelerators(nodes: Any, per_node: Any, total: int | None) -> None:
    data = written(number_of_nodes=nodes, accelerators_per_node=per_node)
    assert compared(check_system("a.json", data, "training", "2.0")).accelerators == total


@pytest.mark.parametrize(
    ("data", "code"), [(b"", "SYS001"), (b"[]", "SYS004"), (b" " * (1 << 21), "SYS001")]
)
def test_unreadable_files_have_no_fields(data: bytes, code: str) -> None:
    system = compared(check_system("a.json", data, "training", "2.0"))
    fields = (system.contents, system.submitter, system.division, system.accelerators)
    assert (fields, [f.code for f in system.findings]) == ((None,) * 4, [code])
    assert system.unchecked is (len(data) > 2)  # too large


def test_every_code_is_found_here() -> None:
    tested = {finding[0] for case in CASES for finding in case[3]}
    tested |= {"SYS302", "SYS206", "SYS207"}  # by the name of the file
    tested |= {"SYS205"}  # by the submission, in test_traps
    assert tested == {code for code in codes() if code.startswith("SYS")}


SYSTEMS = sorted(data_folder("systems").glob("*.json"))


@pytest.mark.parametrize("file", SYSTEMS, ids=[file.stem for file in SYSTEMS])
@pytest.mark.parametrize("round_", ["2.0", "6.1"])
def test_our_own_systems_are_clean(file: Path, round_: str) -> None:
    system = compared(check_system(file.name, file.read_bytes(), "training", round_))
    assert all(finding.severity is not Severity.ERROR for finding in system.findings)
    assert {finding.code for finding in system.findings} <= {"SYS202", "SYS301"}
    assert (system.division, bool(system.accelerators)) == ("closed", True)


def test_prices_are_of_our_own_systems() -> None:
    prices = yaml.safe_load((data_folder("systems") / "prices.yaml").read_text("utf-8"))
    assert set(prices) <= {file.stem for file in SYSTEMS}
    assert all(type(p["price_usd"]) is int and p["source"] for p in prices.values())


FIELDS = sorted(descriptions.schema("system")["properties"])
PLAIN = st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from(["closed", "x"])
VALUES: st.SearchStrategy[Any] = st.one_of(PLAIN, st.lists(PLAIN), st.just({}))


@given(st.dictionaries(st.sampled_from(FIELDS), VALUES))
def test_wrong_fields_are_those_of_json_schema(contents: dict[str, Any]) -> None:
    validator = Draft202012Validator(descriptions.schema("system"))
    errors = [e for e in validator.iter_errors(contents) if e.validator != "required"]
    theirs = [(str(e.validator), str(e.path[0]), e.validator_value) for e in errors]
    ours = list(descriptions.violations(contents))
    assert sorted(ours, key=repr) == sorted(theirs, key=repr)
