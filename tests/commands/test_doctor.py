"""What the doctor says of an installation and a machine on which something is missing."""

import re
import shutil
import sys
import tempfile
import tomllib
from collections.abc import Callable
from functools import cache
from importlib import metadata
from pathlib import Path
from unittest.mock import Mock

import msgspec
import pytest
import yaml

import mlperf_pkg
from mlperf_pkg.commands import doctor
from mlperf_pkg.commands.doctor import EXTRAS, FORMAT, Diagnosis, DiagnosisState, diagnoses
from mlperf_pkg.errors import UserError
from mlperf_pkg.infra.resources import MissingPackageError, data_folder
from mlperf_pkg.rulebook.documents import COMPILED
from tests.helpers.ci import ROOT
from tests.helpers.program import call

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
OF_DEVELOPERS = {"test", "test-cluster", "dev", "docs", "mutants"}
NAMES = [diagnosis.name for diagnosis in diagnoses()]

Change = Callable[[pytest.MonkeyPatch, Path], object]


def raising(error: Exception) -> Mock:
    return Mock(side_effect=error)


def without(*packages: str) -> Change:
    """Packages are not installed, and all others are."""

    def version(name: str) -> str:
        if name in packages:
            raise MissingPackageError(name, name, "mlperf-pkg")
        return "1.0"

    def change(patch: pytest.MonkeyPatch, _: Path) -> None:
        requires = [*PROJECT["dependencies"]]
        for extra, names in PROJECT["optional-dependencies"].items():
            requires += [f'{name}; extra == "{extra}"' for name in names]
        patch.setattr(metadata, "requires", lambda _: requires)
        patch.setattr(doctor, "installed_version", version)

    return change


def replaced(name: str, value: object) -> Change:
    return lambda patch, _: patch.setattr(doctor, name, value)


def rules(edit: Callable[[Path], object]) -> Change:
    """The folder of the rules is a copy, in which something is changed."""

    def change(patch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        folder = tmp_path / "rules"
        shutil.copytree(data_folder("rules"), folder)
        compiled = msgspec.msgpack.encode({path.read_bytes(): 0 for path in folder.rglob("*.yaml")})
        (folder / COMPILED).write_bytes(compiled)
        edit(folder)
        patch.setattr(doctor, "data_folder", lambda _: folder)

    return change


def in_gone_folder(patch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    folder = tmp_path / "here"
    folder.mkdir()
    patch.chdir(folder)
    folder.rmdir()


def test_here(capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing is broken where the tests run."""
    done = call("doctor")
    assert done.exit_code == 0
    assert done.output.startswith(f"ok     mlperf-pkg         {mlperf_pkg.__version__}, Python 3.")
    assert [line.split()[0] for line in done.output.splitlines() if line[0] != " "] == [
        diagnosis.state for diagnosis in diagnoses()
    ]
    lines = [line for line in done.output.splitlines() if "/" not in line]
    assert all(len(line) <= 80 or line.strip().startswith("pip ") for line in lines)


def test_as_json() -> None:
    done = call("doctor", "--format", "json")
    content = msgspec.json.decode(done.stdout)
    assert content["format"] == FORMAT
    assert [row["name"] for row in content["diagnoses"]] == NAMES
    assert all(set(row) == {"name", "state", "text", "repair"} for row in content["diagnoses"])


@pytest.mark.parametrize(
    ("change", "name", "state", "text", "repair"),
    [
        (without(), "packages", "ok", "all required packages are installed", ""),
        (
            without("click", "rich"),
            "packages",
            "broken",
            "missing: click, rich",
            "pip install 'mlperf-logging >=4.1.68,<5' 'click >=8.1,<9' 'deflate >=0.9,<1'"
            " 'jsonschema >=4.20,<5' 'msgspec >=0.19,<1' 'pyyaml >=6.0,<7' 'rich >=13.7,<16'",
        ),
        (
            without("pyarrow"),
            "extra data",
            "note",
            "exports as Parquet: not possible without pyarrow",
            "pip install 'pyarrow >=18,<27'",
        ),
        (
            without("jinja2", "vl-convert-python"),
            "extra report",
            "note",
            "pages and charts: not possible without jinja2, vl-convert-python",
            "pip install 'jinja2 >=3.1,<4' 'vl-convert-python >=1.9,<2'",
        ),
        (
            lambda patch, _: patch.setattr(
                metadata, "requires", raising(metadata.PackageNotFoundError())
            ),
            "packages",
            "note",
            "without being installed",
            f"pip install -e {ROOT}",
        ),
        (
            replaced("HAS_SCAN", False),
            "part in C",
            "note",
            "read more slowly",
            f"pip install --force-reinstall --no-deps -e {ROOT} --no-binary mlperf-pkg",
        ),
        (
            lambda patch, _: patch.setattr(yaml, "__with_libyaml__", False),
            "libyaml",
            "note",
            "read more slowly",
            "pip install --force-reinstall --only-binary pyyaml pyyaml",
        ),
        (
            without("mlperf-logging"),
            "mlperf-logging",
            "broken",
            "needs the package mlperf-logging",
            "pip install mlperf-logging",
        ),
        (
            replaced("has_ruleset", lambda _, name: name != "6.1"),
            "mlperf-logging",
            "note",
            "has no rules for training 6.1, so these rounds",
            "pip install --upgrade mlperf-logging",
        ),
        (
            replaced("load_round", raising(UserError("rules/x.yaml:3: no mapping"))),
            "rulebook",
            "broken",
            "rules/x.yaml:3: no mapping",
            f"pip install --force-reinstall --no-deps -e {ROOT}",
        ),
        (rules(lambda folder: None), "rule files", "ok", "their compiled copy is up to date", ""),
        (
            rules(lambda folder: (folder / COMPILED).unlink()),
            "rule files",
            "note",
            "their compiled copy is missing",
            "-m mlperf_pkg.rulebook.compile",
        ),
        (
            rules(lambda folder: (folder / "findings.yaml").write_text("x: 1")),
            "rule files",
            "note",
            "their compiled copy is out of date for 1 of",
            "-m mlperf_pkg.rulebook.compile",
        ),
        (
            rules(lambda folder: (folder / COMPILED).write_bytes(b"\xc1")),
            "rule files",
            "broken",
            "MessagePack",
            f"/{COMPILED} && {sys.executable} -m mlperf_pkg.rulebook.compile",
        ),
        (
            replaced("data_folder", raising(UserError("lacks its folder"))),
            "rule files",
            "broken",
            "lacks its folder",
            f"pip install --force-reinstall --no-deps -e {ROOT}",
        ),
        (
            replaced("published_results", raising(UserError("damaged"))),
            "published results",
            "broken",
            "damaged",
            f"pip install --force-reinstall --no-deps -e {ROOT}",
        ),
        (
            replaced("cache_folder", lambda: None),
            "cache",
            "note",
            "other users own its folder",
            "export XDG_CACHE_HOME=FOLDER",
        ),
        (
            lambda patch, _: patch.setattr("os.access", lambda *_: False),
            "cache",
            "note",
            "cannot be written: charts",
            "",
        ),
        (
            lambda patch, _: patch.setattr(
                tempfile, "gettempdir", raising(FileNotFoundError(2, "no usable folder"))
            ),
            "temporary files",
            "broken",
            "no usable folder",
            "export TMPDIR=FOLDER",
        ),
        (in_gone_folder, "current folder", "broken", "does not exist any more", "cd FOLDER"),
        (
            lambda patch, _: patch.setattr("os.access", lambda *_: False),
            "current folder",
            "note",
            "give -o a path elsewhere",
            "",
        ),
    ],
    ids=[
        "nothing",
        "required packages",
        "the package of an extra",
        "the packages of an extra",
        "an installation",
        "the part in C",
        "libyaml",
        "mlperf-logging",
        "a ruleset",
        "a valid rulebook",
        "nothing of the compiled rulebook",
        "the compiled rulebook",
        "a rulebook as compiled",
        "a readable compiled rulebook",
        "the folder of rules",
        "the published results",
        "a cache of one's own",
        "a cache to write to",
        "temporary files",
        "the current folder",
        "a current folder to write to",
    ],
)
def test_what_is_missing(
    change: Change,
    name: str,
    state: str,
    text: str,
    repair: str,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    """After a change: the name of what is diagnosed, its state, and parts of text and repair."""
    change(monkeypatch, tmp_path)
    results = {diagnosis.name: diagnosis for diagnosis in diagnoses()}
    assert results[name].state == state
    assert text in results[name].text
    assert results[name].repair.endswith(repair)
    assert bool(results[name].repair) == bool(repair)


def test_without_yaml(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "yaml", None)
    assert [diagnosis.name for diagnosis in diagnoses()] == [n for n in NAMES if n != "libyaml"]


@pytest.mark.parametrize(
    ("state", "status"),
    [(DiagnosisState.OK, 0), (DiagnosisState.NOTE, 0), (DiagnosisState.BROKEN, 1)],
)
def test_status(state: DiagnosisState, status: int, monkeypatch: pytest.MonkeyPatch) -> None:
    diagnosis = Diagnosis("thing", state, "text " * 30 + "\x1b[2J", "repair it")
    monkeypatch.setattr("mlperf_pkg.cli.doctor.diagnoses", lambda: [diagnosis])
    done = call("doctor")
    assert done.exit_code == status
    first, _, *_, last = done.output.splitlines()
    assert last.strip() == "repair it"
    assert first.startswith(f"{state:<6} thing ")
    assert "\x1b" not in done.output


# ---- the extras ---------------------------------------------------------------------------


def test_every_extra_is_explained() -> None:
    assert EXTRAS.keys() == PROJECT["optional-dependencies"].keys() - OF_DEVELOPERS


def required_modules() -> set[tuple[str, str]]:
    """The modules that the code asks for, with the extra that its messages name."""
    texts = (path.read_text("utf-8") for path in Path(mlperf_pkg.__file__).parent.rglob("*.py"))
    calls = (
        match for text in texts for match in re.findall(r'require\(\s*f?"(\w+).*?", "(\w+)"', text)
    )
    return {(module, extra) for module, extra in calls}


distributions = cache(metadata.packages_distributions)


@pytest.mark.parametrize(("module", "extra"), sorted(required_modules()))
def test_the_extra_of_a_message_brings_the_package(module: str, extra: str) -> None:
    """So the command that a message names repairs what is missing."""
    packages = distributions().get(module)
    if packages is None:
        pytest.skip(f"{module} is not installed")
    names = {name.split()[0].lower() for name in PROJECT["optional-dependencies"][extra]}
    assert names & {package.lower() for package in packages}
