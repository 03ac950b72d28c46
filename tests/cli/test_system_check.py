"""``mlperf-pkg system check``."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from mlperf_pkg.config import CONFIG_NAME
from mlperf_pkg.infra.resources import data_folder
from mlperf_pkg.render import FORMATS
from mlperf_pkg.rulebook.documents import rounds
from mlperf_pkg.rulebook.rounds import has_ruleset
from tests.helpers.program import call
from tests.helpers.workspaces import RESNET, lay

NEWEST = rounds("training")[-1]
INFERRED = "inferred: first round after the resnet run of 2022-05-06"
FILES = sorted(data_folder("systems").glob("*.json"))


def test_the_descriptions_that_travel_with_the_package() -> None:
    result = call("system", "check", *FILES)
    assert (result.exit_code, result.stderr) == (0, "")
    official = "pass    " if has_ruleset("training", rounds("training")[-1]) else "not checked"
    assert f"\n  dgx-a100-640gb   closed               8  {official}  pass\n" in result.stdout
    assert result.stdout.endswith("the newest of the rulebook\n")


def test_an_error(tmp_path: Path) -> None:
    file = tmp_path / "mine.json"
    file.write_text('{\n  "division": "close"\n}\n', "utf-8")
    result = call("system", "check", file)
    assert result.exit_code == 1
    assert f'\n  {file}:2: division is "close"' in result.stdout
    assert "rules:    FAIL" in result.stdout


def test_formats(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lay(tmp_path, {"systems/mine.json": b'{\n  "division": "close"\n}\n'})
    monkeypatch.chdir(tmp_path)
    outputs = {format_: tmp_path / format_ for format_ in FORMATS}
    words = [word for format_, file in outputs.items() for word in ("-o", f"{format_}:{file}")]
    result = call("system", "check", *words)
    assert (result.exit_code, result.output) == (1, "")
    named = re.compile(r"(?m)(?:^|[=\" ])systems/mine\.json\b")
    texts = {format_: file.read_text("utf-8") for format_, file in outputs.items()}
    assert [format_ for format_, text in texts.items() if not named.search(text)] == ["csv"]
    assert json.loads(texts["json"])["systems"][0]["path"] == "systems/mine.json"
    for format_, text in texts.items():
        assert call("system", "check", "--format", format_).stdout == text


def test_refuses_to_write_into_its_input(tmp_path: Path) -> None:
    folder = lay(tmp_path, {"systems/mine.json": FILES[0].read_bytes()}) / "systems"
    result = call("system", "check", folder, "-o", folder / "report.json")
    assert (result.exit_code, sorted(folder.iterdir())) == (2, [folder / "mine.json"])


@pytest.mark.parametrize(("round_", "status"), [("1.0", 0), ("v2.0", 0), ("7.7", 2)])
def test_rounds(round_: str, status: int) -> None:
    result = call("system", "check", FILES[0], "--round", round_)
    assert result.exit_code == status


def test_a_missing_file(tmp_path: Path) -> None:
    result = call("system", "check", tmp_path / "none.json")
    assert result.exit_code == 2
    assert result.stderr == f"mlperf-pkg: error: {tmp_path}/none.json: No such file or directory\n"


def test_a_folder(tmp_path: Path) -> None:
    (tmp_path / "b.json").write_bytes(FILES[0].read_bytes())
    (tmp_path / "a.json").write_text("{", "utf-8")
    (tmp_path / "note.txt").write_text("no description", "utf-8")
    (tmp_path / "c.json").mkdir()
    result = call("system", "check", tmp_path)
    assert result.exit_code == 1
    assert f"Errors\n  {tmp_path}/a.json:1: " in result.stdout
    assert "\n  b  " in result.stdout
    assert "note.txt" not in result.stdout


def test_an_empty_folder(tmp_path: Path) -> None:
    result = call("system", "check", tmp_path)
    assert result.exit_code == 2
    assert result.stderr.startswith(
        f"mlperf-pkg: error: {tmp_path}: no system description in this folder"
    )


def test_without_a_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    result = call("system", "check")
    assert result.exit_code == 2
    assert "no PATH given, and there is no folder systems/ here" in result.stderr
    (tmp_path / "systems").mkdir()
    (tmp_path / "systems" / "x.json").write_bytes(FILES[0].read_bytes())
    assert call("system", "check").exit_code == 0


@pytest.mark.parametrize(
    ("config", "options", "round_"),
    [
        ('round: "2.0"', (), "round 2.0: as mlperf-pkg.yaml says"),
        ('round: "2.0"', ("--round", "2.1"), "round 2.1: as given"),
        ('round: "2.0"\nusage: hpc', (), "round 2.0: as mlperf-pkg.yaml says"),
        ("usage: hpc", (), "round 3.0: the newest of the rulebook"),
    ],
)
def test_the_round_of_the_configuration(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    config: str,
    options: tuple[str, ...],
    round_: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mlperf-pkg.yaml").write_text(config, "utf-8")
    assert call("system", "check", FILES[0], *options).stdout.splitlines()[-1] == round_


@pytest.mark.parametrize(
    ("logs", "config", "paths", "round_"),
    [
        ({"a.log": RESNET[0]}, "", (), f"round 2.0: from the logs in logs/, {INFERRED}"),
        (
            {"a.log": RESNET[0]},
            "",
            ("systems/x.json",),
            f"round 2.0: from the logs in logs/, {INFERRED}",
        ),
        ({"a.log": RESNET[0]}, "round: 2.1", (), "round 2.1: as mlperf-pkg.yaml says"),
        (
            {"a.log": b"hello", "b.log": RESNET[0]},
            "",
            (),
            f"round 2.0: from the logs in logs/, {INFERRED}",
        ),
        ({"a.log": b"hello"}, "", (), f"round {NEWEST}: the newest of the rulebook"),
        ({}, "", (), f"round {NEWEST}: the newest of the rulebook"),
    ],
)
def test_the_round_of_the_logs(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    logs: dict[str, bytes],
    config: str,
    paths: tuple[str, ...],
    round_: str,
) -> None:
    files = {f"logs/{name}": log for name, log in logs.items()}
    description = {"systems/x.json": FILES[0].read_bytes()}
    monkeypatch.chdir(lay(tmp_path, files, description, {CONFIG_NAME: config.encode()}))
    result = call("system", "check", *paths)
    assert " ".join(result.stdout.splitlines()[-2:]).endswith(round_)
