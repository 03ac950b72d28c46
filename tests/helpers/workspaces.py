"""Workspaces made of simulated logs and of the system descriptions of this project."""

import json
import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from mlperf_pkg.checks.descriptions import SystemFile, check_system
from mlperf_pkg.commands.builder.prepare import Order, Prepared, prepare
from mlperf_pkg.commands.builder.workspace import BuildWorkspace, Folders
from mlperf_pkg.config import CONFIG_NAME, Config
from mlperf_pkg.infra.resources import data_folder
from mlperf_pkg.infra.source import Source
from mlperf_pkg.rulebook.load import load_round
from mlperf_pkg.run.model import LogFile, Run
from mlperf_pkg.run.reading import read_run
from mlperf_pkg.simulate import RunPlan, simulate_set


@lru_cache
def logs_of(
    system: str,
    benchmark: str = "resnet",
    division: str = "closed",
    runs: int | None = None,
    seed: int | None = None,
    **plan: Any,
) -> tuple[bytes, ...]:
    """The logs of a result set; ``system`` is what they call their platform."""
    made = RunPlan("2.0", benchmark, division, system, organization="Graphcore", minutes=20.0)
    return tuple(simulate_set(replace(made, **plan), seed=seed or len(system), runs=runs))


def with_one_seed(logs: tuple[bytes, ...]) -> tuple[bytes, ...]:
    """The same runs, all with the seed of the first."""
    seed = re.compile(rb'("key": "seed", "value": )[0-9]+')
    first = seed.search(logs[0])
    assert first
    return tuple(seed.sub(first[0], log) for log in logs)


def with_failures(logs: tuple[bytes, ...], number: int) -> tuple[bytes, ...]:
    """The same resnet runs, of which the first few did not converge."""
    failed = logs_of("bow-pod16", failure="diverged")
    return failed[:number] + logs[number:]


def described(name: str, **changes: Any) -> bytes:
    """A system description of this project, with other values for some fields."""
    defaults = json.loads((data_folder("systems") / f"{name}.json").read_text("utf-8"))
    return json.dumps({**defaults, **changes}, indent=2).encode()


def numbered(logs: Iterable[bytes], pattern: str) -> dict[str, bytes]:
    """Logs by name; ``{}`` in the pattern is the number."""
    return {pattern.format(number): log for number, log in enumerate(logs)}


def lay(root: Path, *files: Mapping[str, bytes]) -> Path:
    """Write files below a folder."""
    for some in files:
        for name, content in some.items():
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
    return root


def bytes_below(root: Path) -> dict[str, bytes]:
    """Every file below a folder, hidden ones included."""
    files = sorted(path for path in root.rglob("*") if path.is_file())
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in files}


RESNET = logs_of("bow-pod16")
POD16 = {"systems/bow-pod16.json": described("bow-pod16")}
RESULTS = [f"results/bow-pod16/resnet/result_{number}.txt" for number in range(5)]


def resnet_workspace(root: Path, logs: tuple[bytes, ...] = RESNET) -> Path:
    """One system, one result set."""
    return lay(root, POD16, numbered(logs, "logs/{}.log"))


def closed_workspace(root: Path) -> Path:
    """One system, two valid result sets, all logs in one folder."""
    bert = numbered(logs_of("bow-pod16", "bert"), "logs/b{}.log")
    return lay(root, POD16, numbered(RESNET, "logs/r{}.log"), bert)


def prepared(root: Path, config: str | None = None, **order: Any) -> Prepared:
    """A submission of the workspace, with another configuration if it is given."""
    if config is not None:
        lay(root, {CONFIG_NAME: config.encode()})
    return prepare(Folders.of(root), Order(**order))


def built_results(root: Path) -> list[str]:
    """The paths of the results in the tree that was built."""
    return [path for path in bytes_below(root / "submissions/Graphcore") if "result_" in path]


# ---- values, for tests without files ------------------------------------------------------


@lru_cache
def a_run() -> Run:
    """A valid closed resnet run on ``bow-pod16``."""
    return read_run(LogFile(Source("logs/a.log", logs_of("bow-pod16")[0]), round="2.0"))


def run(path: str = "logs/a.log", start_ms: float | None = 0.0, **described: Any) -> Run:
    """That run, saying something else of itself under ``submission_*``."""
    template = a_run()
    return replace(
        template, path=path, start_ms=start_ms, described={**template.described, **described}
    )


def system(name: str, division: str | None = "closed", **changes: Any) -> SystemFile:
    """A description with another id."""
    data = described("bow-pod16", division=division, **changes)
    return check_system(f"systems/{name}.json", data, "training", "2.0")


def workspace(
    runs: Iterable[Run], systems: Iterable[SystemFile], config: Config | None = None
) -> BuildWorkspace:
    """A workspace of values."""
    return BuildWorkspace(
        folders=Folders.of(Path("ws")),
        config=config or Config(),
        round=load_round("training", "2.0"),
        round_reason="as given",
        systems=tuple(systems),
        runs=tuple(runs),
        sources={},
    )


def everything_below(folder: Path) -> dict[str, object]:
    """Everything below a folder, with the contents of files."""
    paths = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*")}
    return {name: path.is_file() and path.read_bytes() for name, path in paths.items()}
