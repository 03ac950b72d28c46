"""``mlperf-pkg simulate``."""

from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from mlperf_pkg.cli import completion, options
from mlperf_pkg.cli.group import FOLDER, Command, SuggestingChoice, reads
from mlperf_pkg.commands import simulate as simulation
from mlperf_pkg.infra.text import visible
from mlperf_pkg.rulebook.model import DIVISIONS
from mlperf_pkg.simulate import FAILURES

_SET_OPTIONS = ("system", "submitter", "runs", "minutes", "accelerators", "optimizer", "layout")
_ROUND_OPTIONS = ("sets", "extras", "force")
_REQUIRED = {"benchmarks": "--benchmark", "system": "--system", "submitter": "--submitter"}
"""The options of one result set that have no default, by the names of their values."""


@click.command(name="simulate", cls=Command)
@click.argument("folder", metavar="FOLDER", type=FOLDER)
@click.option(
    "--benchmark",
    "benchmarks",
    multiple=True,
    metavar="NAME",
    shell_complete=completion.benchmarks,
    help="Simulate this benchmark, such as bert. When a whole round is simulated, repeat the option"
    " for several benchmarks; without it, all benchmarks are simulated.",
)
@click.option(
    "--system",
    metavar="ID",
    shell_complete=completion.systems,
    help="Set the id of the system, such as dgx-a100.",
)
@click.option("--submitter", metavar="ORG", help="Set the submitting organisation.")
@options.round_option(
    "Simulate this round, such as 2.0 (default: the newest round that has the benchmark, or"
    " the newest of all when a whole round is simulated)."
)
@options.division_option("Simulate this division (default: closed; for a whole round, both).")
@options.count_option(
    "--runs", most=10_000, text="Simulate N runs (default: the number that the rules require)."
)
@options.seed_option(
    "Seed the random numbers; the same options and seed write the same bytes. Give each system a"
    " different seed, as two systems with the same seed have the same runs."
)
@click.option(
    "--minutes",
    type=float,
    metavar="M",
    help="Set the mean time to train to M minutes (default: estimated from the benchmark and the"
    " number of accelerators).",
)
@options.count_option(
    "--accelerators",
    most=1_000_000,
    text="Set the number of accelerators (default: the number in the description of the system"
    " that mlperf-pkg contains, else 16).",
)
@click.option(
    "--optimizer", metavar="NAME", help="Set the optimizer, where a benchmark allows several."
)
@options.repeatable(
    "--failure",
    "failures",
    type=SuggestingChoice(list(FAILURES)),
    text="Make the last run fail in this way; in a whole round, the last run of every tenth result"
    " set",
)
@options.count_option(
    "--records",
    least=0,
    most=1_000_000,
    default=0,
    text="Add N records of training statistics to each log; with 1000, a log is as large as a real"
    " one.",
)
@click.option(
    "--layout",
    type=SuggestingChoice(list(simulation.LAYOUTS)),
    default="flat",
    show_default=True,
    help="Write all logs into one folder (flat), or into folders as in results/ (tree).",
)
@options.count_option(
    "--submitters",
    most=10_000,
    text="Write a whole round of submissions, with N submitters (default if --system-count is"
    " given: 3).",
)
@options.count_option(
    "--system-count",
    "systems",
    most=100_000,
    text="Write a whole round with N systems in all, divided among the submitters (default if"
    " --submitters is given: 10).",
)
@options.count_option(
    "--sets",
    most=100,
    text="Run N benchmarks on each system of a whole round (default: 1 and 2 in turn).",
)
@options.repeatable(
    "--with",
    "extras",
    type=SuggestingChoice(simulation.EXTRAS),
    text="Add power logs of systems with up to four nodes (power), or benchmarks/ folders with"
    " placeholder code (code); only in a whole round",
)
@reads("usage", "jobs")
@options.force_option("Replace a whole round that was simulated before.")
@click.pass_context
def command(ctx: click.Context, /, *, folder: Path, force: bool, **values: Any) -> int:
    """Write logs of simulated runs into FOLDER.

    The logs pass 'mlperf-pkg check' unless --failure is given.

    FOLDER receives the logs of one result set:
    FOLDER/<ID>_<benchmark>_<number>.log or, with --layout tree,
    FOLDER/<ID>/<benchmark>/result_<number>.txt. The system is described in
    systems/<ID>.json beside FOLDER, or beside the logs/ or results/ that FOLDER is
    in. If that file exists, it must describe the same submitter, division and number
    of accelerators. Existing files are never overwritten. The paths are printed.

    With --submitters or --system-count, FOLDER becomes a whole round instead, with a
    submission of each submitter (systems/ and results/). FOLDER must then not exist.

    Exit status: 0 if all files were written, 2 if they could not be.

    \b
    Examples:
      mlperf-pkg simulate logs --benchmark bert --system dgx-a100 --submitter ACME
      mlperf-pkg simulate logs --round 1.1 --benchmark resnet --system dgx-a100 \\
          --submitter ACME --runs 3 --minutes 27.5 --failure diverged
      mlperf-pkg simulate training_results_v5.1 --round 5.1 --submitters 10 \\
          --system-count 200 --records 1000
    """
    values["round"] = values.pop("round_")
    values["usage"] = values["usage"] or "training"
    if values["submitters"] or values["systems"]:
        _refuse(ctx, _SET_OPTIONS, "one result set, not of a whole round")
        summary = simulation.write_whole_round(folder, values, force=force)
        click.echo(visible(summary))
    else:
        _refuse(ctx, _ROUND_OPTIONS, "a whole round (--submitters, --system-count)")
        _write_set(folder, values)
    return 0


def _write_set(folder: Path, values: dict[str, Any]) -> None:
    """Write the logs of one result set; print their paths and that of a new description."""
    missing = [option for name, option in _REQUIRED.items() if not values[name]]
    if missing:
        raise click.UsageError(
            f"missing {', '.join(missing)}; to write a whole round, give --submitters instead"
        )
    if len(values["benchmarks"]) > 1:
        raise click.UsageError(
            "--benchmark is given more than once; a result set has one benchmark (--submitters"
            " writes a whole round, with several benchmarks)"
        )
    values["benchmark"] = values["benchmarks"][0]
    values["division"] = values["division"] or DIVISIONS[0]
    logs, description = simulation.write_set(folder, values)
    for path in logs:
        click.echo(visible(str(path)))
    if description:
        click.echo(visible(f"{description} (system description)"))


def _refuse(ctx: click.Context, names: tuple[str, ...], kind: str) -> None:
    """Reject options that do not apply."""
    for option in ctx.command.params:
        if option.name in names:
            source = ctx.get_parameter_source(option.name)
            if source is not ParameterSource.DEFAULT:
                raise click.UsageError(f"{option.opts[0]} is an option of {kind}")
