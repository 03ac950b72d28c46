"""``mlperf-pkg rules``: show the rulebook, and compare its rounds."""

from collections.abc import Sequence

import click

from mlperf_pkg.cli import completion, options
from mlperf_pkg.cli.group import CommandGroup, reads
from mlperf_pkg.cli.output import Output
from mlperf_pkg.commands.legality import judge
from mlperf_pkg.config import round_name
from mlperf_pkg.errors import UserError
from mlperf_pkg.infra.text import did_you_mean
from mlperf_pkg.render import rules as render
from mlperf_pkg.results.rcp import PointChange, changed_points
from mlperf_pkg.rulebook import explain
from mlperf_pkg.rulebook.documents import rounds, usages
from mlperf_pkg.rulebook.load import codes, load_round
from mlperf_pkg.rulebook.model import DIVISIONS, Benchmark, Round, is_round_name
from mlperf_pkg.rulebook.rounds import where_instead

_written = options.written(render.FORMATS)
_only_benchmark = click.option(
    "--benchmark",
    metavar="NAME",
    shell_complete=completion.benchmarks,
    help="Show only this benchmark.",
)


@click.group(name="rules", cls=CommandGroup)
def command() -> None:
    """Show the rules, and compare them between rounds.

    Exit status: that of the command.

    \b
    Examples:
      mlperf-pkg rules list 5.1
      mlperf-pkg rules show RUN110
      mlperf-pkg rules diff 5.1 6.0
    """


@command.command(name="list")
@click.argument("names", nargs=-1, metavar="[NAME]...", shell_complete=completion.benchmarks)
@reads("usage")
@options.round_option("Show only this round.")
@_only_benchmark
@options.division_option(
    "Show the rules of this division for a benchmark.", default="closed", show_default=True
)
@_written
def list_(
    *,
    names: tuple[str, ...],
    usage: str | None,
    round_: str | None,
    benchmark: str | None,
    division: str,
    target: Output,
) -> int:
    """List rounds and benchmarks, or the rules of a benchmark.

    NAME is a round, a benchmark or both, as for --round and --benchmark. Without
    NAME, list all rounds. For a round, list the benchmarks with their targets and the
    numbers of required runs. For a benchmark, list the rules in that round or, without
    a round, in the newest round of the benchmark. Brackets mark rules that only the
    official checker or only the written rules have.

    Exit status: 0 if there are such rules, 2 if not.

    \b
    Examples:
      mlperf-pkg rules list
      mlperf-pkg rules list 5.1
      mlperf-pkg rules list 4.0 bert --division open
    """
    for name in names:
        if is_round_name(round_name(name)):
            _refuse_two("round", round_name(name), round_)
            round_ = round_name(name)
        else:
            _refuse_two("benchmark", name.lower(), benchmark)
            benchmark = name.lower()
    target.refuse_early(())
    chosen = _rounds(usage, round_, benchmark)
    if benchmark:
        target.show(_benchmark_rules(chosen[-1], benchmark, division))
    else:
        target.show(render.of_rounds(chosen, detailed=bool(round_)))
    return 0


def _refuse_two(kind: str, name: str, option: str | None) -> None:
    """Refuse an argument that names something other than the option or an earlier one does."""
    if option is not None and option != name:
        raise UserError(f"two {kind}s, {name} and {option}: name only one")


def _rounds(usage: str | None, name: str | None, benchmark: str | None) -> list[Round]:
    """Return the rounds of a usage, name and benchmark, as far as these are given, by age.

    Raises:
        UserError: the rulebook has none.
    """
    chosen_usages = [usage] if usage else list(reversed(usages()))
    candidates: list[Round] = []
    for chosen_usage in chosen_usages:
        candidates.extend(load_round(chosen_usage, round_) for round_ in rounds(chosen_usage))
    chosen = candidates
    if name is not None:
        chosen = [round_ for round_ in candidates if round_.name == name]
    if not chosen:
        names = list(dict.fromkeys(round_.name for round_ in candidates))
        raise UserError(f"there is no round {name!r}{_instead(name or '', names)}")
    if not benchmark:
        return chosen
    with_benchmark = [round_ for round_ in chosen if benchmark in round_.benchmarks]
    if not with_benchmark:
        raise _unknown_benchmark(benchmark, name, chosen)
    return with_benchmark


def _unknown_benchmark(benchmark: str, name: str | None, chosen: Sequence[Round]) -> UserError:
    """Return the error that no chosen round, or not that of this name, has a benchmark."""
    where = "there is"
    instead = ""
    if name:
        where = f"round {name} has"
        instead = where_instead(chosen[-1].usage, name, benchmark)
    if not instead:
        instead = _instead(
            benchmark, sorted(set().union(*[round_.benchmarks for round_ in chosen]))
        )
    return UserError(f"{where} no benchmark {benchmark!r}{instead}")


def _instead(name: str, names: Sequence[str]) -> str:
    """Return the most similar name, or all of them."""
    return did_you_mean(name, names) or f"; expected one of {', '.join(names)}"


def _benchmark_rules(round_: Round, name: str, division: str) -> render.Document:
    benchmark = explain.loaded(round_, name)
    return render.of_benchmark(round_, benchmark, _rules_of(round_, benchmark, division))


def _rules_of(round_: Round, benchmark: Benchmark, division: str) -> list[explain.Layer]:
    common_layers = explain.common_layers(round_, division)
    own_layers = explain.benchmark_layers(benchmark, division)
    return explain.effective([*common_layers, *own_layers])


@command.command()
@click.argument("name", shell_complete=completion.subjects)
@options.round_option(
    "Show the rules in this round (default: the newest round that has the"
    " benchmark; for a code or a key, all rounds)."
)
@options.division_option(
    "Show the rules of this division for a benchmark.", default="closed", show_default=True
)
@options.flag(
    "--hyperparameters",
    text="Show which hyperparameters of a benchmark are fixed, constrained or free in the Closed"
    " division, and which ones are free only in the Open division.",
)
@options.repeatable(
    "--set",
    "settings",
    metavar="KEY=VALUE",
    text="Say whether hyperparameter KEY of a benchmark may have VALUE. Write VALUE as in a log:"
    " 48, 0.1, true, [1, 2] or adamw",
)
@_written
def show(
    *,
    name: str,
    round_: str | None,
    division: str,
    hyperparameters: bool,
    settings: tuple[str, ...],
    target: Output,
) -> int:
    """Explain a code, or show the rules of a key or of a benchmark.

    NAME is the code of a finding, a key of logs or a benchmark. For a code, show what
    the rule requires, in which rounds and benchmarks, how to fix a log that breaks it,
    who requires it, its severity and source, and an example. For a key, show its rules
    in all rounds and benchmarks. For a benchmark, show its rules in its newest round;
    --round chooses another round. For a prefix of codes, such as SET or RCP, list the
    codes with their titles.

    --set answers whether values of hyperparameters are allowed: yes, or no and why. The
    values are judged like those of a log. Give values that depend on one another together.

    Exit status: 0 if NAME exists, 2 if not. With --set, 0 if both the official checker
    and the written rules allow the values, 1 if one of the two does not or if the answer
    depends on other values, 2 if a hyperparameter is unknown.

    \b
    Examples:
      mlperf-pkg rules show BERT111
      mlperf-pkg rules show SET101 --round 3.0
      mlperf-pkg rules show opt_weight_decay --round 5.1
      mlperf-pkg rules show bert --round 4.0
      mlperf-pkg rules show llama31_8b --hyperparameters
      mlperf-pkg rules show llama31_8b --round 5.1 --set global_batch_size=48
      mlperf-pkg rules show bert --set opt_name=lamb --set global_batch_size=512
    """
    target.refuse_early(())
    kind, subject = explain.subject_of(name)
    if kind != "benchmark" and (settings or hyperparameters):
        raise UserError(
            f"--set and --hyperparameters need a benchmark; {subject} is not a benchmark"
        )
    if kind != "benchmark":
        target.show(_explained(kind, subject, round_))
        return 0
    newest = _rounds(None, round_, subject)[-1]
    if settings:
        answer = judge(newest, explain.loaded(newest, subject), division, settings)
        target.show(answer.document)
        return 0 if answer.is_legal else 1
    if hyperparameters:
        benchmark = explain.loaded(newest, subject)
        layers = [_rules_of(newest, benchmark, name) for name in DIVISIONS]
        target.show(render.of_hyperparameters(newest, benchmark, *layers))
    else:
        target.show(_benchmark_rules(newest, subject, division))
    return 0


def _explained(kind: str, subject: str, name: str | None) -> render.Document:
    """Return the explanation of a code, of a family of codes or of a key, in one round or in all.

    Raises:
        UserError: there is no such round, or it has no such rule.
    """
    round_ = _rounds(None, name, None)[0] if name else None
    if kind == "family":
        return render.of_family(subject, round_)
    if subject in codes():
        return render.of_code(codes()[subject], round_)
    histories = explain.histories_of_key(subject) or {subject: explain.histories(subject)}
    if round_:
        rounds_with = [
            span.words for parts in histories.values() for h in parts for span in h.spans
        ]
        histories = explain.in_round(histories, round_.name)
        if not histories:
            others = ", ".join(dict.fromkeys(rounds_with))
            raise UserError(f"round {name} has no rule {subject}; the rule exists {others}")
    if kind == "code":
        return render.of_rule(subject, histories[subject])
    return render.of_key(subject, histories)


@command.command()
@click.argument("old", shell_complete=completion.rounds)
@click.argument("new", shell_complete=completion.rounds)
@reads("usage")
@_only_benchmark
@options.division_option("Compare only this division.")
@_written
def diff(
    *,
    old: str,
    new: str,
    usage: str | None,
    benchmark: str | None,
    division: str | None,
    target: Output,
) -> int:
    """Show what changes for a submitter between rounds OLD and NEW.

    List the changes of benchmarks, targets, required runs and other rules, and of the
    reference convergence points in the installed mlperf-logging. For a new benchmark,
    list the keys that its logs need.

    Exit status: 0 with or without changes, 2 if a round does not exist.

    \b
    Examples:
      mlperf-pkg rules diff 5.1 6.0
      mlperf-pkg rules diff 2.0 2.1 --benchmark bert --division closed
      mlperf-pkg rules diff 1.0 3.0 --usage hpc
    """
    target.refuse_early(())
    comparison = explain.compare(
        usage or "training", round_name(old), round_name(new), benchmark, division
    )
    points_changes: list[PointChange] = []
    for old_rules, new_rules in comparison.pairs:
        changes = changed_points(comparison.old, old_rules, comparison.new, new_rules)
        points_changes.extend(changes)
    target.show(render.of_comparison(comparison, points_changes))
    return 0
