"""The built wheel, installed in a fresh environment, works from any folder."""

from __future__ import annotations

import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from tests.logs import good_log

ROOT = Path(__file__).parents[1]
SOURCES = ("mlperf_pkg", "rules", "systems", "setup.cfg", "pyproject.toml", "README.md", "LICENSE")


def run(*command: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(part) for part in command], cwd=cwd, capture_output=True, text=True, check=False
    )


@pytest.fixture(scope="module")
def tool(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The command of an environment that has nothing but the wheel and its dependencies."""
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"
    for name in SOURCES:
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        source.mkdir(exist_ok=True)
        copy(ROOT / name, source / name)
    pip = (sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check")
    built = run(*pip, "wheel", "--no-deps", "--wheel-dir", folder, source, cwd=folder)
    assert built.returncode == 0, built.stderr
    environment = folder / "env"
    assert (
        run(sys.executable, "-m", "venv", "--without-pip", environment, cwd=folder).returncode == 0
    )
    site = next(environment.glob("lib/python*/site-packages"))
    (wheel,) = folder.glob("*.whl")
    installed = run(*pip, "--python", environment / "bin" / "python", "install", "--no-deps", wheel, cwd=folder)  # fmt: skip
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
    code = "import mlperf_pkg, mlperf_pkg.resources as r; print(mlperf_pkg.__file__); print(r.data_folder('rules'))"
    done = run(tool.parent / "python", "-c", code, cwd=tmp_path)
    package, rules = done.stdout.splitlines()
    assert Path(rules).is_relative_to(Path(package).parent)
    assert Path(package).is_relative_to(tool.parents[1])
