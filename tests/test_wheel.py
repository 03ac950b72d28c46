"""The built wheel, installed in a fresh environment, works from any folder."""

from __future__ import annotations

import re
import shutil
import sys
import tarfile
from pathlib import Path
from zipfile import ZipFile

import msgspec
import pytest

from mlperf_pkg.rulebook.compile import compiled
from mlperf_pkg.rulebook.documents import COMPILED
from tests.helpers.logs import good_log
from tests.helpers.wheels import built_wheel, copied_source, run
from tests.tools.owner import copied_files, owner

ROOT = Path(__file__).parents[1]


def test_it_checks_a_log(tool: Path, tmp_path: Path) -> None:
    (tmp_path / "run.log").write_bytes(good_log())
    done = run(tool, "check", "run.log", cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr


def test_it_writes_a_page(tool: Path, tmp_path: Path) -> None:
    (tmp_path / "run.log").write_bytes(good_log())
    done = run(tool, "report", "run.log", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "report.html\n"), done.stderr


def test_it_is_the_installed_package(tool: Path, tmp_path: Path) -> None:
    code = "import mlperf_pkg, mlperf_pkg.infra.resources as r; print(mlperf_pkg.__file__); print(r.data_folder('rules'))"
    done = run(tool.parent / "python", "-c", code, cwd=tmp_path)
    package, rules = done.stdout.splitlines()
    assert Path(rules).is_relative_to(Path(package).parent)
    assert Path(package).is_relative_to(tool.parents[1])


def test_its_part_in_c_needs_no_certain_python(tool: Path, tmp_path: Path) -> None:
    code = (
        "import mlperf_pkg.log.block as p, mlperf_pkg.log._scan as s; print(p.HAS_SCAN, s.__file__)"
    )
    if not shutil.which("cc"):
        pytest.skip("no C compiler")
    done = run(tool.parent / "python", "-c", code, cwd=tmp_path)
    assert done.stdout.startswith("True "), done.stderr
    assert "cpython" not in done.stdout


def test_no_compiler_is_needed(tmp_path: Path) -> None:
    """The version of a wheel is that of the tag, and its packages are those of the source."""
    more = {"CC": "false", "SETUPTOOLS_SCM_PRETEND_VERSION": "9.8.7"}
    path = built_wheel(tmp_path, copied_source(tmp_path), **more)
    with ZipFile(path) as wheel:
        names = wheel.namelist()
        metadata = wheel.read("mlperf_pkg-9.8.7.dist-info/METADATA").decode()
        assert b'__version__ = "9.8.7"' in wheel.read("mlperf_pkg/__init__.py")
    assert {"mlperf_pkg/log/block.py", "mlperf_pkg/published/results.msgpack"} <= {*names}
    assert [name for name in names if "/_scan." in name] == ["mlperf_pkg/log/_scan.pyi"]
    of_source = {path.relative_to(ROOT).as_posix() for path in (ROOT / "mlperf_pkg").rglob("*.py")}
    assert {name for name in names if name.endswith(".py")} == of_source
    links = re.findall(r"\]\(([^)]+)\)", metadata)
    assert len(links) > 5
    assert [link for link in links if not link.startswith("https://")] == []


def test_the_owner_is_in_one_place() -> None:
    """Only setup.py has it; the files that users copy are made from there."""
    assert all(path.read_text("utf-8") == text for path, text in copied_files(owner()))
    copied = {path for path, _ in copied_files(owner())}
    files = [*ROOT.glob("*.*"), *(ROOT / ".github").rglob("*.yml"), *(ROOT / "docs").rglob("*.md")]
    files += (ROOT / "ci-templates").iterdir()
    forms = (f'"{owner()}"', f"{owner()}/mlperf-pkg")
    texts = {path.name: text_of(path) for path in files if path.is_file() and path not in copied}
    assert [name for name, text in texts.items() if any(form in text for form in forms)] == [
        "setup.py"
    ]


def test_another_owner() -> None:
    texts = {path.name: text for path, text in copied_files("acme")}
    assert all(owner() not in text for text in texts.values())
    assert texts["ci.md"].count("acme/mlperf-pkg") == 4


def text_of(path: Path) -> str:
    return path.read_text("utf-8")


def test_it_has_the_compiled_rulebook(wheel: Path) -> None:
    """As ``rules/`` is, and for the text of every file that is in the wheel."""
    with ZipFile(wheel) as archive:
        texts = {name: archive.read(name) for name in archive.namelist() if name.endswith(".yaml")}
        data = archive.read(f"mlperf_pkg/data/rules/{COMPILED}")
    assert data == compiled(ROOT / "rules")
    of_rules = [text for name, text in texts.items() if "/data/rules/" in name]
    assert len(of_rules) == len(list((ROOT / "rules").rglob("*.yaml")))
    assert msgspec.msgpack.decode(data).keys() == {*of_rules}


def test_it_has_manual_pages(tool: Path) -> None:
    pages = tool.parents[1] / "share" / "man" / "man1"
    version = run(tool, "--version", cwd=pages).stdout.strip()
    assert f'"{version}"' in (pages / "mlperf-pkg-rules-show.1").read_text("utf-8")


def test_the_source_distribution_has_all_and_tests_itself(wheel: Path, tmp_path: Path) -> None:
    """The wheel is built of it."""
    pytest.importorskip("build", reason="needs pip install build")
    (archive,) = wheel.parent.glob("*.tar.gz")
    with tarfile.open(archive) as tar:
        tar.extractall(tmp_path / "unpacked", filter="data")
    (unpacked,) = (tmp_path / "unpacked").iterdir()
    made = {"PKG-INFO"} | {name for name in files_of(unpacked) if ".egg-info/" in name}
    assert files_of(unpacked) - made == files_of(wheel.parent / "checkout") - made
    tests = ("tests/submission/test_loose.py", "tests/rulebook/test_expectation.py")
    done = run(sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *tests, cwd=unpacked)
    assert done.returncode == 0, done.stdout


def files_of(folder: Path) -> set[str]:
    """Return the paths of all files that a checkout or an archive of it has."""
    paths = (path.relative_to(folder) for path in folder.rglob("*") if path.is_file())
    return {path.as_posix() for path in paths if "__pycache__" not in path.parts}


def test_installed_rules_are_read_without_yaml(tool: Path, tmp_path: Path) -> None:
    code = (
        "import sys; from mlperf_pkg.rulebook.explain.describe import rulebook_codes;"
        "print(len(rulebook_codes()) > 500, 'yaml' in sys.modules)"
    )
    done = run(tool.parent / "python", "-c", code, cwd=tmp_path)
    assert done.stdout == "True False\n", done.stderr
