"""The built wheel, installed in a fresh environment, works from any folder."""

import re
import shutil
import sys
from pathlib import Path
from zipfile import ZipFile

import msgspec

from mlperf_pkg import __version__
from mlperf_pkg.rulebook.compile import compiled
from mlperf_pkg.rulebook.documents import COMPILED
from tests.helpers.wheels import run

ROOT = Path(__file__).parents[1]


CODE = """
import sys
import mlperf_pkg, mlperf_pkg.log.block as block
from mlperf_pkg.infra.resources import data_folder
from mlperf_pkg.rulebook.explain import rulebook_codes
print(mlperf_pkg.__file__, data_folder("rules"), len(rulebook_codes()) > 500, "yaml" in sys.modules)
print(block.HAS_SCAN and sys.modules["mlperf_pkg.log._scan"].__file__)
"""


def test_the_installed_package(tool: Path, tmp_path: Path) -> None:
    """Its rules are read without YAML, and its part in C needs no certain Python."""
    done = run(tool.parent / "python", "-c", CODE, cwd=tmp_path)
    package, rules, has_codes, has_yaml, scan = done.stdout.split()
    assert Path(rules).is_relative_to(Path(package).parent)
    assert Path(package).is_relative_to(tool.parents[1])
    assert (has_codes, has_yaml) == ("True", "False")
    if shutil.which("cc"):
        assert scan.startswith(str(tool.parents[1]))
        assert "cpython" not in scan


def test_no_compiler_is_needed(wheel: Path, tmp_path: Path) -> None:
    command = (sys.executable, "setup.py", "--quiet", "build_ext", "--build-lib", tmp_path)
    source = next((wheel.parent / "unpacked").iterdir())
    done = run(*command, "--build-temp", tmp_path / "temporary", cwd=source, CC="false")
    assert done.returncode == 0, done.stderr
    assert [*tmp_path.rglob("_scan*")] == []


def test_what_it_has(wheel: Path) -> None:
    """Its version and its packages are those of the source."""
    with ZipFile(wheel) as archive:
        names = archive.namelist()
        metadata = archive.read(f"mlperf_pkg-{__version__}.dist-info/METADATA").decode()
        version = archive.read("mlperf_pkg/__init__.py")
    assert f'__version__ = "{__version__}"'.encode() in version
    assert {"mlperf_pkg/log/block.py", "mlperf_pkg/published/results.msgpack"} <= {*names}
    of_source = {path.relative_to(ROOT).as_posix() for path in (ROOT / "mlperf_pkg").rglob("*.py")}
    assert {name for name in names if name.endswith(".py")} == of_source
    links = re.findall(r"\]\(([^)]+)\)", metadata)
    assert len(links) > 5
    assert [link for link in links if not (ROOT / link.partition("#")[0]).exists()] == []
    assert "Project-URL" not in metadata


def test_what_it_links_to_if_its_repository_is_known(tmp_path: Path) -> None:
    """As the release workflow builds it."""
    command = (sys.executable, "setup.py", "--quiet", "--long-description")
    done = run(*command, cwd=ROOT, MLPERF_PKG_REPOSITORY="https://example.org/x/mlperf-pkg")
    links = re.findall(r"\]\(([^)]+)\)", done.stdout)
    assert len(links) > 5
    assert [link for link in links if not link.startswith("https://example.org/")] == []
    images = re.findall(r"!\[[^\]]*\]\(([^)]+)\)", done.stdout)
    shown = "https://example.org/x/mlperf-pkg/raw/HEAD/docs/"  # a page about an image is not one
    assert images == [f"{shown}check.svg", f"{shown}page.png"]


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
    assert f'"mlperf-pkg {__version__}"' in (pages / "mlperf-pkg-rules-show.1").read_text("utf-8")


def test_the_source_distribution_has_all_and_tests_itself(wheel: Path) -> None:
    """The wheel is built of it."""
    (unpacked,) = (wheel.parent / "unpacked").iterdir()
    made = {name for name in files_of(unpacked) if ".egg-info/" in name or name == "PKG-INFO"}
    made |= {name for name in files_of(unpacked) if name.startswith("build/")}
    assert files_of(unpacked) - made == files_of(wheel.parent / "checkout") - made
    shutil.copy(ROOT / "rules" / COMPILED, unpacked / "rules")
    test = "tests/rulebook/test_expectation.py"
    done = run(sys.executable, "-m", "pytest", "-p", "no:cacheprovider", test, cwd=unpacked)
    assert done.returncode == 0, done.stdout


def files_of(folder: Path) -> set[str]:
    """Return the paths of all files that a checkout or an archive of it has."""
    paths = (path.relative_to(folder) for path in folder.rglob("*") if path.is_file())
    return {path.as_posix() for path in paths if "__pycache__" not in path.parts}
