"""Do all that comes before the first byte is written: read, plan, judge, refuse; and show it."""

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path

from msgspec import Struct

from mlperf_pkg.checker.check import check
from mlperf_pkg.checker.values import Options
from mlperf_pkg.commands.builder import plan as planning
from mlperf_pkg.commands.builder import workspace as inputs
from mlperf_pkg.commands.builder import writing
from mlperf_pkg.commands.builder.plan import BuildPlan
from mlperf_pkg.config import Config, read_config
from mlperf_pkg.errors import UserError
from mlperf_pkg.findings import Verdict
from mlperf_pkg.infra.text import visible
from mlperf_pkg.render import findings
from mlperf_pkg.render.findings import View
from mlperf_pkg.render.tables import results_markdown
from mlperf_pkg.render.text import warnings_text
from mlperf_pkg.results import wording as words
from mlperf_pkg.results.report import Report

_UNCHECKED = "not checked, as mlperf-pkg or the official checker has no rules for this benchmark"


class Order(Struct, frozen=True):
    """The options of a build, in addition to the configuration.

    ``choose_runs`` chooses from more runs than required, as the rules define. ``bypasses`` are
    names of flags (``plan.BYPASSES``). ``invalid`` says what becomes of result sets that are not
    valid: ``keep`` builds them, too, and ``drop`` leaves them out. ``allow_outside`` copies from
    outside the workspace what the configuration names there. ``as_open`` submits closed runs as
    Open if their system is.
    """

    division: str | None = None
    round: str | None = None
    leave_out: Sequence[str] = ()
    bypasses: Sequence[str] = ()
    invalid: str | None = None
    choose_runs: bool = False
    allow_outside: bool = False
    as_open: bool = False
    usage: str | None = None


class Prepared(Struct, frozen=True):
    """A submission ready to be written to ``target``, unless there are ``refusals``.

    ``kept`` are the reasons why it is not valid although it is built. If the plan has no problems,
    the refusals are such reasons, so that the user can leave result sets out or keep them. ``lost``
    says which files of another division the tree would lose, if any.
    """

    workspace: inputs.BuildWorkspace
    plan: BuildPlan
    judged: tuple[planning.JudgedSet, ...]
    files: tuple[writing.PlannedFile, ...]
    target: Path
    notes: tuple[str, ...]
    refusals: tuple[str, ...]
    kept: tuple[str, ...]
    lost: str | None = None


def prepare(folders: inputs.Folders, order: Order) -> Prepared:
    """Read a workspace and decide what its submission holds.

    Raises:
        UserError: the folder does not exist or has no log or no system description, a file cannot
            be read, the configuration is not valid or names files outside the workspace, or the
            target overlaps with an input.
    """
    if not folders.workspace.is_dir():
        raise UserError(f"{folders.workspace}: no such folder")
    config = read_config(folders.workspace)
    if not order.allow_outside:
        inputs.refuse_outside(folders, config)
    workspace = inputs.read_workspace(folders, config, order.round, order.usage)
    plan, notes = _plan(workspace, order)
    if order.choose_runs:
        plan = planning.choose_runs(plan, workspace.round)
    notes = [*plan.notes, *notes]
    judged = planning.judge(plan, workspace, order.bypasses)
    if order.invalid == "drop":
        notes += [
            f"a result set is left out, because {reason}" for reason in planning.reasons(judged)
        ]
        plan, judged = planning.without_invalid(plan, judged)
    target = folders.output / plan.submitter
    files: tuple[writing.PlannedFile, ...] = ()
    if not plan.problems:
        inputs.refuse_overlap(target, workspace)
        files = writing.tree_files(plan, judged, workspace)
    invalid = (*planning.reasons(judged), *writing.unfit(files))
    notes += _notes(files, judged, workspace)
    lost = None if plan.problems else writing.lost(target, files, plan.division)
    is_kept = order.invalid == "keep"
    return Prepared(
        workspace=workspace,
        plan=plan,
        judged=judged,
        files=files,
        target=target,
        notes=tuple(notes),
        refusals=plan.problems if is_kept else plan.problems + invalid,
        kept=invalid if is_kept else (),
        lost=lost,
    )


def _plan(workspace: inputs.BuildWorkspace, order: Order) -> tuple[BuildPlan, list[str]]:
    """Return the plan with the result sets of another division that the tree has, and a note."""
    make = partial(
        planning.make_plan, workspace, order.division, order.leave_out, as_open=order.as_open
    )
    plan = make()
    target = workspace.folders.output / plan.submitter
    others = writing.others_in(target, plan.division)
    if not others.sets:
        return plan, []
    number = words.counted(len(others.sets), "result set")
    kept = f"kept {number} of the {others.division} division in {target}"
    return make(staying=others.sets), [kept]


def _notes(
    files: Sequence[writing.PlannedFile],
    judged: Sequence[planning.JudgedSet],
    workspace: inputs.BuildWorkspace,
) -> Iterator[str]:
    """Yield the notes on what is to be written."""
    yield from writing.code_notes(files)
    if files:
        yield from writing.left_out_note(judged, workspace)
    for path, flag in writing.parameters(judged).items():
        yield f"{path} asks for {flag}, which reviewers have to accept"
    yield from planning.waiver_notes(judged, workspace)


_TO_BE_ADDED = ("CODE100",)


def accept(prepared: Prepared, tree: Path, *, keeps_invalid: bool) -> Report:
    """Check the tree that was built, and return the report on it.

    Findings of codes that the plan had already do not count against it: they were accepted. The
    code may still be missing: results are looked at long before; ``pack`` needs it.

    Raises:
        UserError: it is not valid, and ``keeps_invalid`` is not set.
    """
    accepted = set(_TO_BE_ADDED)
    for judged in prepared.judged:
        accepted.update(finding.code for finding in judged.result.observations)
    round_ = prepared.workspace.round
    config = Config(waivers=prepared.workspace.config.waivers)
    options = Options(round_.usage, round_.name, config=config, complete=True)
    report = check([str(tree)], options).report
    lines = []
    for finding in planning.failures(report.findings):
        if finding.code not in accepted:
            lines.append(planning.line_of(finding))
    if lines and not keeps_invalid:
        raise UserError("\n  ".join(["the submission would not be valid:", *lines]))
    return report


# ---- text ---------------------------------------------------------------------------------


def plan_text(prepared: Prepared, *, logs: bool = False) -> str:
    """Return the submission with its result sets; ``logs`` adds the source of every log."""
    workspace = prepared.workspace
    round_ = workspace.round
    submitter = prepared.plan.submitter or "no submitter"
    lines = [f"{round_.usage} {round_.name}, {submitter} ({workspace.round_reason})"]
    width = max((len(judged.planned.name) for judged in prepared.judged), default=0)
    for judged in prepared.judged:
        planned = judged.planned
        lines.append(f"  {planned.name:<{width}}  {_about(judged)}")
        if logs:
            for run, target in zip(planned.runs, planned.targets, strict=True):
                lines.append(f"    {target} <- {run.path}")
    return _printable(lines)


def _about(judged: planning.JudgedSet) -> str:
    """Return the result of a set, whether it is valid, and how its system was found."""
    row = judged.result.row
    runs = f"{row.division:<6}  {words.runs(row):>5} runs"
    parts = [f"{runs}  {words.minutes(row.score_minutes):>10} minutes"]
    if judged.failures:
        parts.append("NOT VALID")
    elif Verdict.NOT_CHECKED in (row.verdict.official, row.verdict.rules):
        parts.append(_UNCHECKED)
    parts.append(f"system identified by {row.system_by}")
    return ", ".join(parts)


def built_text(prepared: Prepared, checked: Report) -> str:
    """Return the paths of the tree and its tables, the results, and what was ``checked`` in it."""
    sets = prepared.plan.sets
    target = prepared.target
    systems = words.counted(len(planning.systems_of(sets)), "system")
    result_sets = words.counted(len(sets), "result set")
    logs = words.counted(sum(len(planned.runs) for planned in sets), "log")
    lines = [f"built {target}: {systems}, {result_sets}, {logs}"]
    lines += [f"tables {target}/results.html, .md, .csv, .json", ""]
    workspace = prepared.workspace
    results = planning.report(prepared.judged, workspace)
    remarks = writing.remarks(results, workspace.config)
    markdown = results_markdown(results, remarks)
    warnings = warnings_text(checked, View(), _TO_BE_ADDED)
    return f"{_printable(lines)}{markdown}\n{warnings}{findings.counts_in_words(checked)}\n"


def _printable(lines: Iterable[str]) -> str:
    return "".join(f"{visible(line)}\n" for line in lines)
