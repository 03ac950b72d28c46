"""An mlperf-logging that is called 4.2.0: a copy of the installed one, with a change.

A process whose PYTHONPATH is the folder of a copy takes it for what is installed.
"""

import atexit
import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from mlperf_pkg.infra.resources import installed_version, official_folder
from mlperf_pkg.rulebook.verified import REFERENCE, verified
from tests.helpers.upstream import change

VERIFIED = verified().version
OTHER = "4.2.0"
ROUND = "5.1"
BENCHMARK = "llama2_70b_lora"
"""The benchmark that the changes are about."""

is_verified = pytest.mark.skipif(
    installed_version(REFERENCE) != VERIFIED,
    reason="the installed mlperf-logging is not the one that the rulebook was verified against",
)
Change = Callable[[Path], object]
CopyOf = Callable[[str], Path]

_RULES = f"compliance_checker/training_5.1.0/closed_{BENCHMARK}.yaml"
_POINTS = f"rcp_checker/training_5.1.0/rcps_{BENCHMARK}.json"


def _nothing(_: Path) -> None:
    """Change nothing but the version."""


def _target(package: Path) -> None:
    """Ask for a lower loss."""
    change(package, _RULES, "0.925", "0.915")


def _slower_points(factor: float) -> Change:
    """Let the runs of all reference points converge later: one alone may be pruned."""

    def change_points(package: Path) -> None:
        path = package / _POINTS
        points = json.loads(path.read_text("utf-8"))
        for point in points.values():
            runs = point["samples to converge"]
            point["samples to converge"] = [run * factor for run in runs]
        path.write_text(json.dumps(points), "utf-8")

    return change_points


def _line_of_code(package: Path) -> None:
    """Change a line of the RCP checker."""
    change(package, "rcp_checker/rcp_checker.py", "import logging", "import logging  # changed")


def _new_ruleset(package: Path) -> None:
    """Add the rules of a round that the rulebook does not have."""
    folder = package / "compliance_checker"
    shutil.copytree(folder / "training_6.1.0", folder / "training_9.0.0")


CHANGES: dict[str, Change] = {
    "none": _nothing,
    "rules": _target,
    "points": _slower_points(1.1),  # the score of the runs of the tests is normalised
    "points that reject": _slower_points(1.5),
    "code": _line_of_code,
    "new ruleset": _new_ruleset,
}


@pytest.fixture(scope="session")
def copy_of(tmp_path_factory: pytest.TempPathFactory) -> CopyOf:
    """Return the folder of the copy with a change, which is made once."""

    @cache
    def copied(name: str) -> Path:
        folder = tmp_path_factory.mktemp("reference")
        package = folder / "mlperf_logging"
        shutil.copytree(official_folder(), package, ignore=shutil.ignore_patterns("__pycache__"))
        _describe(folder)
        CHANGES[name](package)
        return folder

    return copied


def _describe(folder: Path) -> None:
    """Write the metadata of the copy, with its version."""
    installed = f"mlperf_logging-{installed_version(REFERENCE)}.dist-info"
    metadata = (official_folder().parent / installed / "METADATA").read_text("utf-8")
    target = folder / f"mlperf_logging-{OTHER}.dist-info"
    target.mkdir()
    renamed = metadata.replace(f"Version: {installed_version(REFERENCE)}", f"Version: {OTHER}", 1)
    (target / "METADATA").write_text(renamed, "utf-8")


def run_with(
    reference: Path, here: Path, module: str, *arguments: str
) -> subprocess.CompletedProcess[str]:
    """Do as ``python -m MODULE ARGUMENTS`` in a folder where a copy is installed."""
    server = _server()
    assert server.stdin
    assert server.stdout
    with TemporaryDirectory() as folder:
        request = [str(here), str(reference), module, arguments, folder]
        print(json.dumps(request), file=server.stdin, flush=True)
        status = int(server.stdout.readline())
        output, errors = (Path(folder, name).read_text("utf-8") for name in ("output", "errors"))
        return subprocess.CompletedProcess(module, status, output, errors)


@cache
def _server() -> subprocess.Popen[str]:
    """The process that runs modules, until this one ends: to start one for each takes longer."""
    command = [sys.executable, "-c", "from tests.helpers.references_server import serve; serve()"]
    root = Path(__file__).parents[2]
    pipe = subprocess.PIPE
    server = subprocess.Popen(command, cwd=root, stdin=pipe, stdout=pipe, text=True)
    atexit.register(server.communicate)
    return server
