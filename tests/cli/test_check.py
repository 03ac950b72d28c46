"""``mlperf-pkg check``: its arguments, what it writes, and its exit status."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.broken_runs import SET, every_log, fast, same_seed
from tests.helpers.program import call
from tests.helpers.traps import shifted
from tests.helpers.trees import simulated, write_set, write_submission


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_set(tmp_path / "logs", simulated())


def spoil(folder: Path) -> None:
    """Take the seed, which the rules want logged, from one log and the benchmark from another."""
    for number, key in ((0, b'"seed"'), (1, b'"submission_benchmark"')):
        log = folder / f"result_{number}.txt"
        lines = log.read_bytes().splitlines(keepends=True)
        log.write_bytes(b"".join(line for line in lines if key not in line))


def test_without_a_path(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder.parent)
    assert call("check").exit_code == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "no PATH given, and there is no folder logs/ here"),
        (["empty"], "no MLPerf log in empty"),
    ],
)
def test_without_a_log(
    arguments: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("empty").mkdir()
    result = call("check", *arguments)
    assert (result.exit_code, message in result.stderr) == (2, True)


@pytest.mark.parametrize(
    ("file", "message"),
    [
        ("logs/result_0.txt", "refusing to write inside an input folder"),  # a log is never lost
        ("none/report.txt", "/none does not exist"),
        (".", "is a folder"),
    ],
)
def test_output_refused(file: str, message: str, folder: Path, tmp_path: Path) -> None:
    before = sorted(tmp_path.rglob("*"))
    result = call("check", folder, "--force", "-o", tmp_path / file)
    assert (result.exit_code, message in result.stderr) == (2, True)
    assert sorted(tmp_path.rglob("*")) == before


# ---- waivers, --select and --ignore -------------------------------------------------------

WAIVER = """\
waivers:
  - {code: RUN119, path: result_1.txt, reason: a reason, approved_by: Jane, until: 9999-12-31}
"""


def test_a_waiver_of_what_only_the_rules_forbid(folder: Path, tmp_path: Path) -> None:
    log = (folder / "result_0.txt").read_bytes()
    copy = re.sub(rb'("key": "seed", "value": )', rb"\g<1>9", log)
    (folder / "result_1.txt").write_bytes(shifted(copy, 3_600_000))
    (tmp_path / "waivers.yaml").write_text(WAIVER.replace("RUN119", "SET112"))
    assert call("check", folder).exit_code == 1
    result = call("check", folder, "--config", tmp_path / "waivers.yaml")
    assert result.exit_code == 0
    assert "official: pass" in result.stdout
    assert re.search(r"0 errors, .*, 1 waived", result.stdout)


@pytest.mark.parametrize("line", ["logs", ".", "logs .", ". --config mlperf-pkg.yaml"])
def test_the_configuration_here_is_read_unless_it_is_inside_the_input(
    line: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder.parent)
    spoil(folder)
    Path("mlperf-pkg.yaml").write_text(WAIVER)
    note = "note: mlperf-pkg.yaml is inside the input ., so its waivers are not read; to read"
    is_read = line == "logs" or "--config" in line
    result = call("check", *line.split())
    assert (note in result.stderr, "waived by Jane" in result.stdout) == (not is_read, is_read)
    assert result.exit_code == 1


@pytest.mark.parametrize(
    ("options", "status", "prefixes"),
    [
        (("--select", "RUN119"), 1, {"RUN119"}),
        (("--select", "run11"), 1, {"RUN119"}),
        (("--select", "LOG"), 0, set()),
        (("--select", "RUN", "--ignore", "RUN1"), 0, set()),
        (("--ignore", "RUN", "--ignore", "SEED,SET,RN"), 0, set()),
    ],
)
def test_select_and_ignore(
    options: tuple[str, str] | tuple[str, str, str, str],
    status: int,
    prefixes: set[str],
    folder: Path,
) -> None:
    spoil(folder)
    result = call("check", folder, *options)
    errors = result.stdout.partition("Errors\n")[2].partition("\n\n")[0]
    codes = re.findall(r"  ([A-Z]+[0-9]+)$", errors, re.MULTILINE)
    assert all(any(code.startswith(prefix) for prefix in prefixes) for code in codes)
    assert (result.exit_code, bool(codes)) == (status, bool(prefixes))
    assert "hidden by --select or --ignore" in result.stdout
    assert "rules:    FAIL" in result.stdout


def test_an_unknown_prefix_is_refused(folder: Path) -> None:
    result = call("check", folder, "--select", "SEET")
    assert (result.exit_code, "no code begins with 'SEET'; did you" in result.stderr) == (2, True)


# ---- formats and several outputs ----------------------------------------------------------


def test_several_outputs_of_one_check(folder: Path, tmp_path: Path) -> None:
    spoil(folder)
    files = {"report.json": "json", "report.xml": "junit", "gitlab:quality.json": "gitlab"}
    names = {output: tmp_path / output.rpartition(":")[2] for output in files}
    outputs = [output.replace(names[output].name, str(names[output])) for output in files]
    result = call("check", folder, *(word for output in ("-", *outputs) for word in ("-o", output)))
    assert (result.exit_code, result.stdout) == (1, call("check", folder).stdout)
    assert {output: names[output].read_text("utf-8") for output in files} == {
        output: call("check", folder, "--format", format_).stdout
        for output, format_ in files.items()
    }


def test_one_output_refused_refuses_all(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "b.json").write_text("old")
    before = sorted(tmp_path.rglob("*"))
    result = call("check", folder, "-o", tmp_path / "a.json", "-o", tmp_path / "b.json", "-o", "-")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "b.json exists already; --force overwrites it" in result.stderr
    assert sorted(tmp_path.rglob("*")) == before
    assert (tmp_path / "b.json").read_text() == "old"


@pytest.mark.parametrize("path", ["logs", "logs/result_1.txt"])
def test_paths_lead_to_the_files(
    path: str, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spoil(folder)
    monkeypatch.chdir(tmp_path)
    formats = ("sarif", "junit", "github", "gitlab", "concise")
    outputs = [word for name in formats for word in ("-o", f"{name}:{name}")]
    assert call("check", path, *outputs, "--force").exit_code == 1
    assert [
        name
        for name in formats
        if not re.search(r"(?m)(?:^|[=\" ])logs/result_1\.txt\b", Path(name).read_text("utf-8"))
    ] == []


def test_the_rules_do_not_count(tmp_path: Path) -> None:
    """The official checker accepts one log without the key."""
    root = write_submission(tmp_path / "ACME")
    log = root / SET / "result_0.txt"
    log.write_bytes(log.read_bytes().replace(b'"opt_name"', b'"x"'))
    assert call("check", root, "--round", "2.0.0").exit_code == 1
    assert call("check", root, "--round", "2.0.0", "--fail-on", "official").exit_code == 0


# ---- bypasses -----------------------------------------------------------------------------


def report(*arguments: str | Path) -> Any:
    return json.loads(call("check", *arguments, "--format", "json").stdout)


def codes(document: Any) -> set[str]:
    return {item["code"] for item in document["findings"]}


def test_rcp_bypass(tmp_path: Path) -> None:
    tree = every_log(fast, write_submission(tmp_path / "ACME"))
    failed, passed = report(tree), report(tree, "--rcp-bypass")
    assert [
        (document, code, verdict)
        for document, code, verdict in ((failed, "RCP101", "fail"), (passed, "RCP102", "pass"))
        if (code in codes(document), document["verdict"]["official"]) != (True, verdict)
    ] == []
    (tree / "package_checker_params").write_text("rcp-bypass\n")
    assert report(tree)["findings"] == passed["findings"]


def test_bypasses_of_logs_outside_a_submission(tmp_path: Path) -> None:
    for path in write_set(tmp_path, simulated()).iterdir():
        path.write_bytes(same_seed(fast(path.read_bytes()))) if path.is_file() else None
    assert {"RCP101", "SEED102"} <= codes(report(tmp_path))
    bypassed = codes(report(tmp_path, "--seed-checker-bypass", "--rcp-bypass"))
    assert not {"RCP101", "SEED102"} & bypassed


# ---- files --------------------------------------------------------------------------------


def test_log_output(tmp_path: Path) -> None:
    tree = every_log(same_seed, write_submission(tmp_path / "ACME"))
    log = tmp_path / "check.log"
    log.write_text("of an earlier check")
    result = call("check", tree, "--log-output", log)
    assert result.exit_code == 1
    assert result.stdout == call("check", tree).stdout
    text = log.read_text("utf-8")
    assert "INFO - official verdict: FAIL" in text
    assert "\nERROR - " in text
    assert "earlier" not in text


def test_private_ids(tmp_path: Path) -> None:
    tree = write_submission(tmp_path / "training_results_v2.0" / "Graphcore")
    ids, tables = tmp_path / "ids.json", tmp_path / "tables"
    refused = call("score", tree, "--private-ids", ids)
    assert (refused.exit_code, "needs --tables FOLDER" in refused.stderr) == (2, True)
    arguments = ("score", tree, "--tables", tables, "--private-ids", ids)
    assert call(*arguments).exit_code == 0
    (entry,) = json.loads(ids.read_text("utf-8")).values()
    (row,) = json.loads((tables / "summary.json").read_text("utf-8"))
    assert row["private_id"] == entry["private_id"] != ""
    assert not list(tree.rglob("privateid.json"))
