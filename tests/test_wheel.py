"""The built wheel, installed in a fresh environment, works from any folder."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from zipfile import ZipFile

import msgspec
import pytest

from mlperf_pkg.rulebook.compile import compiled
from mlperf_pkg.rulebook.files import COMPILED
from tests.helpers.logs import good_log

ROOT = Path(__file__).parents[1]
PIP = (sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check")
SOURCES = (
    "mlperf_pkg",
    "rules",
    "systems",
    "setup.cfg",
    "setup.py",
    "pyproject.toml",
    "README.md",
    "LICENSE",
)


def run(*command: str | Path, cwd: Path, **more: str) -> subprocess.CompletedProcess[str]:
    """Run a command, with ``more`` variables in its environment."""
    return subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env=os.environ | more,
        capture_output=True,
        text=True,
        check=False,
    )


def copied_source(folder: Path) -> Path:
    """What is in git and goes into a wheel, without what a checkout makes of it."""
    source = folder / "source"
    source.mkdir()
    for name in SOURCES:
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, source / name)
    (source / "rules" / COMPILED).unlink(missing_ok=True)
    return source


def built_wheel(folder: Path, source: Path, **more: str) -> Path:
    built = run(*PIP, "wheel", "--no-deps", "--wheel-dir", folder, source, cwd=folder, **more)
    assert built.returncode == 0, built.stderr
    (wheel,) = folder.glob("*.whl")
    return wheel


@pytest.fixture(scope="module")
def tool(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The command of an environment that has nothing but the wheel and its dependencies."""
    folder = tmp_path_factory.mktemp("wheel")
    wheel = built_wheel(folder, copied_source(folder))
    environment = folder / "env"
    assert (
        run(sys.executable, "-m", "venv", "--without-pip", environment, cwd=folder).returncode == 0
    )
    site = next(environment.glob("lib/python*/site-packages"))
    installed = run(*PIP, "--python", environment / "bin" / "python", "install", "--no-deps", wheel, cwd=folder)  # fmt: skip
    assert installed.returncode == 0, installed.stderr
    # The dependencies are those of this environment; a path file finds them without its hooks.
    (site / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return environment / "bin" / "mlperf-pkg"


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
    with ZipFile(built_wheel(tmp_path, copied_source(tmp_path), CC="false")) as wheel:
        names = wheel.namelist()
    assert {"mlperf_pkg/log/block.py", "mlperf_pkg/published/results.msgpack"} <= {*names}
    assert [name for name in names if "/_scan." in name] == ["mlperf_pkg/log/_scan.pyi"]


def assert_has_the_compiled_rulebook(path: Path) -> None:
    """As ``rules/`` is, and for the text of every file that is in the wheel."""
    with ZipFile(path) as wheel:
        texts = {name: wheel.read(name) for name in wheel.namelist() if name.endswith(".yaml")}
        data = wheel.read(f"mlperf_pkg/data/rules/{COMPILED}")
    assert data == compiled(ROOT / "rules")
    of_rules = [text for name, text in texts.items() if "/data/rules/" in name]
    assert len(of_rules) == len(list((ROOT / "rules").rglob("*.yaml")))
    assert msgspec.msgpack.decode(data).keys() == {*of_rules}


def test_it_has_the_compiled_rulebook(tmp_path: Path) -> None:
    assert_has_the_compiled_rulebook(built_wheel(tmp_path, copied_source(tmp_path)))


def test_a_wheel_of_the_source_distribution_has_the_compiled_rulebook(tmp_path: Path) -> None:
    pytest.importorskip("build", reason="needs pip install build")
    source = copied_source(tmp_path)
    built = run(
        sys.executable, "-m", "build", "--sdist", "--outdir", tmp_path, source, cwd=tmp_path
    )
    assert built.returncode == 0, built.stderr
    (archive,) = tmp_path.glob("*.tar.gz")
    assert_has_the_compiled_rulebook(built_wheel(tmp_path, archive))


def test_installed_rules_are_read_without_yaml(tool: Path, tmp_path: Path) -> None:
    code = (
        "import sys; from mlperf_pkg.rulebook.explain.describe import rulebook_codes;"
        "print(len(rulebook_codes()) > 500, 'yaml' in sys.modules)"
    )
    done = run(tool.parent / "python", "-c", code, cwd=tmp_path)
    assert done.stdout == "True False\n", done.stderr
