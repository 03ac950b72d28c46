"""``mlperf-pkg simulate``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path, PurePath

import click

from mlperf_pkg.checks.systems import check_system
from mlperf_pkg.cli import options
from mlperf_pkg.cli.choice import Choice
from mlperf_pkg.errors import UserError
from mlperf_pkg.escape import visible
from mlperf_pkg.files import write_whole
from mlperf_pkg.resources import data_folder
from mlperf_pkg.rulebook.load import usages
from mlperf_pkg.simulate import DIVISIONS, FAILURES, RunPlan, newest_round, simulate_set

_LAYOUTS = {
    "flat": "{plan.system}_{plan.benchmark}_{number}.log",
    "tree": "{plan.system}/{plan.benchmark}/result_{number}.txt",
}


@click.command(name="simulate")
@click.argument("folder", metavar="DIR", type=click.Path(file_okay=False, path_type=Path))
@click.option("--benchmark", required=True, metavar="NAME", help="The benchmark, such as bert.")
@click.option("--system", required=True, metavar="ID", help="The system's id.")
@click.option("--submitter", required=True, metavar="ORG", help="The submitting organisation.")
@click.option(
    "--usage",
    type=Choice(usages()),
    default="training",
    show_default=True,
    help="MLPerf Training or HPC.",
)
@options.round_option("The round, such as 2.0; by default the newest with the benchmark.")
@click.option(
    "--division",
    type=Choice(DIVISIONS),
    default="closed",
    show_default=True,
    help="The division.",
)
@click.option(
    "--runs", type=click.IntRange(min=1), metavar="N", help="Runs; by default as many as required."
)
@click.option(
    "--seed", type=int, metavar="N", default=0, show_default=True, help="The seed of the set."
)
@click.option(
    "--minutes", type=float, metavar="M", help="The mean time to train; by default a model's."
)
@click.option(
    "--accelerators",
    type=click.IntRange(min=1),
    metavar="N",
    help="Accelerators; by default those of the system, if it is a known one.",
)
@click.option("--optimizer", metavar="NAME", help="The optimizer, where a benchmark has several.")
@click.option("--failure", type=Choice(list(FAILURES)), help="How the last run fails.")
@click.option(
    "--layout",
    type=Choice(list(_LAYOUTS)),
    default="flat",
    show_default=True,
    help="Loose logs, or folders as in results/.",
)
def command(
    *,
    folder: Path,
    benchmark: str,
    system: str,
    submitter: str,
    usage: str,
    round_: str | None,
    division: str,
    runs: int | None,
    seed: int,
    minutes: float | None,
    accelerators: int | None,
    optimizer: str | None,
    failure: str | None,
    layout: str,
) -> int:
    """Write the logs of simulated runs that keep the rules into DIR.

    They make one result set; the same options make the same bytes. Written are
    DIR/<ID>_<benchmark>_<number>.log or, with --layout tree,
    DIR/<ID>/<benchmark>/result_<number>.txt; a file that exists is never
    overwritten. The paths are printed.

    \b
    Examples:
      mlperf-pkg simulate logs --benchmark bert --system dgx-a100 --submitter ACME
      mlperf-pkg simulate logs --round 1.1 --benchmark resnet --system dgx-a100 \\
          --submitter ACME --runs 3 --minutes 27.5 --failure diverged
    """
    name = round_ or newest_round(usage, benchmark)
    plan = RunPlan(
        usage=usage,
        round=name,
        benchmark=benchmark,
        division=division,
        system=_file_name(system),
        organization=submitter,
        minutes=minutes,
        optimizer=optimizer,
    )
    if number := accelerators or _known_accelerators(system, name):
        plan = replace(plan, accelerators=number)
    logs = _simulated(plan, seed, runs, failure)
    names = [_LAYOUTS[layout].format(plan=plan, number=at) for at in range(len(logs))]
    _write({folder / name: log for name, log in zip(names, logs, strict=True)})
    return 0


def _file_name(system: str) -> str:
    if not system or PurePath(system).name != system or system.startswith("."):
        raise UserError(f"--system {system!r} cannot be a file's name")
    return system


def _known_accelerators(system: str, round_: str) -> int | None:
    """Those of the system description that travels with the package, if there is one."""
    file = data_folder("systems") / f"{system}.json"
    if not file.is_file():
        return None
    return check_system(file.name, file.read_bytes(), "training", round_).accelerators


def _simulated(plan: RunPlan, seed: int, runs: int | None, failure: str | None) -> list[bytes]:
    """The runs of a set; of a failure there is one, as the rules allow no more."""
    logs = simulate_set(plan, seed, runs)
    if failure is not None:
        logs[-1] = simulate_set(replace(plan, failure=failure), seed, runs)[-1]
    return logs


def _write(logs: Mapping[Path, bytes]) -> None:
    """All or, where one of the files exists, none."""
    for path in logs:
        if path.exists():
            raise UserError(f"{path}: exists already and is not overwritten")
    for path, log in logs.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, log, replace=False)
        click.echo(visible(str(path)))
