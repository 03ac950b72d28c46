"""What is said of made-up machines; a human is asked for the rest, by ``system check`` too."""

import json
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from mlperf_logging.system_desc_checker import system_desc_checker

from mlperf_pkg.checks.descriptions import FILL_IN, check_system, needing_answer, required_fields
from mlperf_pkg.commands.system import machine
from mlperf_pkg.commands.system.description import UserValues, describe
from mlperf_pkg.commands.system.machine import MachineSources, this_machine
from mlperf_pkg.errors import UserError
from mlperf_pkg.findings import MAX_LINES, Severity, Verdict, verdicts_of
from mlperf_pkg.rulebook.documents import rounds
from tests.helpers.machines import ARM, BROKEN, CONTAINER, EPYC, HOST, Machine

USER_VALUES = UserValues("5.1", "ACME", "closed", "onprem", "ACME X8", 4)
NOWHERE = MachineSources(Path("/dev/null"), lambda *_: "", lambda _: "")


def detected(machine: Machine, root: Path, user_values: UserValues = USER_VALUES) -> dict[str, Any]:
    """Return the fields that are neither empty nor left to the user."""
    fields = describe(machine.sources(root), user_values)
    assert list(fields) == [*required_fields(), "system_type", "host_network_card_count"]
    assert HOST not in json.dumps(fields)
    return {k: v for k, v in fields.items() if v and not str(v).startswith(FILL_IN)}


SAID = {
    "submitter": "ACME",
    "division": "closed",
    "status": "Available on-premise",
    "system_name": "ACME X8",
    "number_of_nodes": "4",
}


def test_two_sockets_and_eight_accelerators(tmp_path: Path) -> None:
    assert detected(EPYC, tmp_path) == SAID | {
        "host_processors_per_node": "2",
        "host_processor_model_name": "AMD EPYC 9654",
        "host_processor_core_count": "2",
        "host_processor_vcpu_count": "8",
        "host_processor_frequency": "2.40 GHz base, 3.71 GHz boost",
        "host_processor_caches": "4 x 32 KiB L1d, 4 x 64 KiB L1i, 4 x 512 KiB L2, 32 MiB L3",
        "host_processor_interconnect": "Infinity Fabric",
        "host_memory_capacity": "2048 GiB",
        "host_memory_configuration": "24 x 96 GiB Registered-DDR5",
        "host_storage_type": "NVMe SSD, SSD",
        "host_storage_capacity": "4 x 3.84 TB, 480 GB",
        "host_networking": "8 x InfiniBand NDR 400 Gb/s, 25 GbE",
        "accelerators_per_node": "8",
        "accelerator_model_name": "NVIDIA H100 80GB HBM3",
        "accelerator_host_interconnect": "PCIe Gen5 x16",
        "accelerator_frequency": "1980 MHz",
        "accelerator_memory_capacity": "81559 MiB",
        "accelerator_interconnect": "NVLink: 18 x 26.562 GB/s",
        "hw_notes": "ACME X8, 2 NUMA nodes",
        "framework": "PyTorch 2.3.0+cu121",
        "other_software_stack": {
            "CUDA": "12.1.105",
            "cuDNN": "8.9.2.26",
            "NCCL": "2.20.5",
            "NVIDIA driver": "550.54.15",
        },
        "operating_system": "Ubuntu 22.04.4 LTS",
    }


def test_arm_with_a_tool_that_fails(tmp_path: Path) -> None:
    assert detected(ARM, tmp_path) == SAID | {
        "host_processors_per_node": "1",
        "host_processor_model_name": "Neoverse-V2",
        "host_processor_core_count": "2",
        "host_processor_vcpu_count": "2",
        "host_memory_capacity": "479 GiB",
        "host_networking": "1 GbE",
        "accelerators_per_node": "1",
        "accelerator_model_name": "NVIDIA GH200 480GB",
        "other_software_stack": {"NVIDIA driver": "560.1"},
    }


def test_a_container_without_devices(tmp_path: Path) -> None:
    assert detected(CONTAINER, tmp_path) == SAID | {
        "host_processors_per_node": "1",
        "host_processor_model_name": "Intel(R) Xeon(R) Platinum 8481C",
        "host_processor_core_count": "1",
        "host_processor_vcpu_count": "1",
        "host_processor_frequency": "2.70 GHz base",
        "host_memory_capacity": "63 GiB",
        "operating_system": "Debian GNU/Linux 12 (bookworm)",
    }


@pytest.mark.parametrize("machine", [BROKEN, Machine()])
def test_what_cannot_be_read_is_left_to_a_human(machine: Machine, tmp_path: Path) -> None:
    assert detected(machine, tmp_path).keys() <= {*SAID, "host_processor_vcpu_count"}


@pytest.mark.parametrize("round_", rounds("training"))
def test_the_check_names_every_line_that_is_left(round_: str, tmp_path: Path) -> None:
    text = json.dumps(describe(NOWHERE, UserValues(round_)), indent=2)
    findings = check_system("x.json", text.encode(), "training", round_).findings
    left = [number for number, line in enumerate(text.splitlines(), 1) if FILL_IN in line]
    (finding,) = (finding for finding in findings if finding.code == "SYS203")
    (place,) = finding.occurrences
    assert (finding.line, place.lines, place.count) == (left[0], tuple(left[:MAX_LINES]), len(left))
    names = ", ".join(name for name, value in json.loads(text).items() if FILL_IN in str(value))
    assert finding.text == f"{len(left)} fields are not filled in: {names}"
    assert len(left) == len(needing_answer())
    assert {finding.code for finding in findings} <= {"SYS203", "SYS103"}
    assert verdicts_of(findings).rules is Verdict.FAIL


@pytest.mark.parametrize("round_", rounds("training"))
def test_a_description_that_is_filled_in_passes(round_: str, tmp_path: Path) -> None:
    fields = describe(EPYC.sources(tmp_path), UserValues(round_, "A", "open", "Cloud", "B", 1))
    filled = {k: "known" if str(v).startswith(FILL_IN) else v for k, v in fields.items()}
    data = json.dumps(filled).encode()
    findings = check_system("x.json", data, "training", round_).findings
    assert [f for f in findings if f.severity is Severity.ERROR] == []
    (tmp_path / "x.json").write_bytes(data)
    file = str(tmp_path / "x.json")
    assert system_desc_checker.check_system_desc(file, "training", f"{round_}.0")[0]


@pytest.mark.parametrize(("round_", "words"), [("4.0", "available"), ("3.1", "soon"), ("4.0", "")])
def test_an_unknown_status(round_: str, words: str) -> None:
    with pytest.raises(UserError, match=f"round {round_} has no status '{words}'"):
        describe(NOWHERE, UserValues(round_, status=words))


@pytest.mark.parametrize(
    ("round_", "words", "status"),
    [
        ("3.1", "OnPrem", "onprem"),
        ("4.0", "onprem", "Available on-premise"),
        ("4.0", "rdi", "Research, Development, or Internal (RDI)"),
        ("6.1", "available cloud", "Available cloud"),
    ],
)
def test_status_in_the_words_of_the_round(round_: str, words: str, status: str) -> None:
    assert describe(NOWHERE, UserValues(round_, status=words))["status"] == status


def test_answers_to_choose_from(tmp_path: Path) -> None:
    fields = describe(ARM.sources(tmp_path), UserValues("5.1"))
    assert fields["framework"] == "FILL IN: PyTorch 2.4.0 or JAX 0.4.30"
    assert fields["division"] == "FILL IN: closed or open"
    assert fields["status"].startswith("FILL IN: Available on-premise or Available cloud or ")


# ---- the sources of this machine, and a tool that misbehaves -------------------------------


def tool(folder: Path, script: str) -> None:
    path = folder / "nvidia-smi"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


@pytest.mark.parametrize(
    ("script", "output"),
    [
        ("echo $1,2", "--query,2\n"),
        ("echo half; exit 9", ""),
        ("printf '\\377'", "\ufffd"),
        ("kill -9 $$", ""),
        ("sleep 60", ""),
    ],
)
def test_the_tool(
    script: str, output: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    tool(tmp_path, script)
    monkeypatch.setattr(machine, "_PATIENCE_S", 0.3 if "sleep" in script else 30)
    assert this_machine().nvidia_smi("--query") == output


@pytest.mark.parametrize("path", ["", ".", "/nowhere"])
def test_no_tool(path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tool(tmp_path, "echo here")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", path)
    assert this_machine().nvidia_smi() == ""


def test_versions_and_files_which_only_linux_has(monkeypatch: pytest.MonkeyPatch) -> None:
    assert this_machine().version_of("click") == version("click")
    assert this_machine().version_of("no-such-distribution") == ""
    assert this_machine().text("proc/cpuinfo") or sys.platform != "linux"
    monkeypatch.setattr(sys, "platform", "darwin")
    nowhere = this_machine()
    assert (nowhere.text("proc/cpuinfo"), nowhere.paths("proc/*")) == ("", [])


def test_files(tmp_path: Path) -> None:
    (tmp_path / "b").write_text(" 12\n")
    (tmp_path / "a").write_bytes(b"\xff\x00x")
    (tmp_path / "c").write_text("\u0663")
    sources = MachineSources(tmp_path, lambda *_: "", lambda _: "")
    assert [sources.text(name) for name in "abd"] == ["\ufffdx", "12", ""]
    assert [sources.number(name) for name in "abcd"] == [None, 12, None, None]
    assert sources.paths("[a-b]") == ["a", "b"]
