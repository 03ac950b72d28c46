"""Do all that comes before the first byte is written: read, plan, judge, refuse; and show it."""

from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path

from msgspec import Struct

from mlperf_pkg.checker.check import check
from mlperf_pkg.checker.values import Options
from mlperf_pkg.commands.builder import plan as planning
from mlperf_pkg.commands.builder import workspace as inputs
from mlperf_pkg.commands.builder import writing
from mlperf_pkg.commands.builder.plan import Plan
from mlperf_pkg.config import read_config
from mlperf_pkg.errors import UserError
from mlperf_pkg.findings import Verdict
from mlperf_pkg.infra.text import visible
from mlperf_pkg.render import findings
from mlperf_pkg.render.findings import View
from mlperf_pkg.render.tables import results_markdown
from mlperf_pkg.render.text import warnings_text
from mlperf_pkg.results import wording as words

_UNCHECKED = "not checked: the rulebook or the official checker does not cover it"


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

    workspace: inputs.Workspace
    plan: Plan
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
    plan, staying = _plan(workspace, order)
    if order.choose_runs:
        plan = planning.choose_runs(plan, workspace.round)
    judged = planning.judge(plan, workspace, order.bypasses)
    dropped: tuple[str, ...] = ()
    if order.invalid == "drop":
        dropped = tuple(f"left out: {reason}" for reason in planning.reasons(judged))
        plan, judged = planning.without_invalid(plan, judged)
    target = folders.output / plan.submitter
    files: tuple[writing.PlannedFile, ...] = ()
    if not plan.problems:
        inputs.refuse_overlap(target, workspace)
        files = writing.tree_files(plan, judged, workspace)
    invalid = (*planning.reasons(judged), *writing.unfit(files))
    keep = order.invalid == "keep"
    return Prepared(
        workspace=workspace,
        plan=plan,
        judged=judged,
        files=files,
        target=target,
        notes=(
            *plan.notes,
            *staying,
            *dropped,
            *writing.code_notes(files),
            *(
                f"{path} asks for {flag}: expect a review of it"
                for path, flag in writing.parameters(judged).items()
            ),
            *planning.waiver_notes(judged, workspace),
        ),
        refusals=plan.problems + (() if keep else invalid),
        kept=invalid if keep else (),
        lost=None if plan.problems else writing.lost(target, files, plan.division),
    )


def _plan(workspace: inputs.Workspace, order: Order) -> tuple[Plan, tuple[str, ...]]:
    """Return the plan with the result sets of another division that the tree has, and a note."""
    make = partial(
        planning.make_plan, workspace, order.division, order.leave_out, as_open=order.as_open
    )
    plan = make()
    target = workspace.folders.output / plan.submitter
    others = writing.others_in(target, plan.division)
    if not others.sets:
        return plan, ()
    number = words.counted(len(others.sets), "result set")
    kept = f"kept {number} of the {others.division} division in {target}"
    return make(staying=others.sets), (kept,)


def accept(prepared: Prepared, tree: Path) -> None:
    """Check the tree that was built.

    Findings that the plan had already, and that were waived or kept, do not count against it.

    Raises:
        UserError: it is not valid.
    """
    accepted = {f.code for judged in prepared.judged for f in judged.result.observations}
    round_ = prepared.workspace.round
    findings = check([str(tree)], Options(round_.usage, round_.name)).report.findings
    new = [f for f in planning.failures(findings) if f.code not in accepted]
    if new:
        raise UserError("\n  ".join(["the tree would not be valid:", *map(planning.line_of, new)]))


# ---- text ---------------------------------------------------------------------------------


def plan_text(prepared: Prepared, *, logs: bool = False) -> str:
    """Return the submission with its result sets; ``logs`` adds the source of every log."""
    round_ = prepared.workspace.round
    who = prepared.plan.submitter or "no submitter"
    lines = [f"{round_.usage} {round_.name}, {who} ({prepared.workspace.round_reason})"]
    width = max((len(judged.planned.name) for judged in prepared.judged), default=0)
    for judged in prepared.judged:
        row = judged.result.row
        result = f"{row.division:<6}  {words.runs(row):>5} runs"
        score = f"{result}  {words.minutes(row.score_minutes):>10} minutes"
        is_unchecked = Verdict.NOT_CHECKED in (row.verdict.official, row.verdict.rules)
        state = "NOT VALID" if judged.failures else _UNCHECKED if is_unchecked else ""
        about = ", ".join(filter(None, (score, state, f"system found by {row.system_by}")))
        lines.append(f"  {judged.planned.name:<{width}}  {about}")
        if logs:
            pairs = zip(judged.planned.runs, judged.planned.targets, strict=True)
            lines += [f"    {target} <- {run.path}" for run, target in pairs]
    return _printable(lines)


def built_text(prepared: Prepared) -> str:
    """Return the paths of the tree and its tables, the results and the warnings."""
    plan = prepared.plan
    target = prepared.target
    counts = (
        words.counted(len(planning.systems_of(plan.sets)), "system"),
        words.counted(len(plan.sets), "result set"),
        words.counted(sum(len(planned.runs) for planned in plan.sets), "log"),
    )
    tables = f"tables {target}/results.html, .md, .csv, .json"
    lines = [f"built {target}: {', '.join(counts)}", tables, ""]
    results = planning.report(prepared.judged, prepared.workspace)
    markdown = results_markdown(results, writing.remarks(results, prepared.workspace.config))
    warnings = warnings_text(results, View())
    return f"{_printable(lines)}{markdown}\n{warnings}{findings.counts_in_words(results)}\n"


def _printable(lines: Iterable[str]) -> str:
    return "".join(f"{visible(line)}\n" for line in lines)
