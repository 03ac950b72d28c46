"""PyYAML without its part in C reads rule files as PyYAML with it."""

import shutil
import subprocess
import sys
from hashlib import sha256
from pathlib import Path

import pytest

from mlperf_pkg.infra.resources import data_folder, official_folder
from mlperf_pkg.rulebook.compile import compiled
from tests.helpers.own_rules import FILES, written
from tests.helpers.program import call

HIDDEN = "import sys; sys.modules['yaml._yaml'] = None; "
COMMANDS = [["rules", "verify", "--against", "theirs"], ["rules", "list", "--rules", "mistaken"]]


def without_libyaml(code: str, *arguments: str, cwd: Path) -> tuple[int, str, str]:
    command = [sys.executable, "-c", HIDDEN + code, *arguments]
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("arguments", COMMANDS, ids=" ".join)
def test_commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str]) -> None:
    written(tmp_path / "mistaken", {path: f"{text}\nx: 1\nx: 2" for path, text in FILES.items()})
    other_rounds = shutil.ignore_patterns("hpc_*", "training_[!2]*", "training_2.0.0")
    shutil.copytree(official_folder(), tmp_path / "theirs", ignore=other_rounds)
    monkeypatch.chdir(tmp_path)
    done = call(*arguments)
    code = "from mlperf_pkg.cli.main import main; main()"
    expected = done.exit_code, done.stdout, done.stderr
    assert without_libyaml(code, *arguments, cwd=tmp_path) == expected


def test_rules_compile_to_the_same_bytes(tmp_path: Path) -> None:
    """Those of the first and the newest round."""
    rules, others = tmp_path / "rules", shutil.ignore_patterns("[1-5].*", "6.0")
    shutil.copytree(data_folder("rules"), rules, ignore=others)
    code = (
        "import yaml; from hashlib import sha256; from mlperf_pkg.rulebook.compile import compiled;"
        "from pathlib import Path;"
        "print(sha256(compiled(Path('rules'))).hexdigest(), yaml.__with_libyaml__)"
    )
    status, output, errors = without_libyaml(code, cwd=tmp_path)
    assert (status, errors) == (0, "")
    assert output == f"{sha256(compiled(rules)).hexdigest()} False\n"
