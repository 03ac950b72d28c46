"""Do all that comes before the first byte is written: read, plan, judge, refuse."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from mlperf_pkg.commands.builder.choose import choose_runs
from mlperf_pkg.commands.builder.contents import (
    PlannedFile,
    code_notes,
    parameters,
    tree_files,
    unfit,
)
from mlperf_pkg.commands.builder.foreign import lost, others_in
from mlperf_pkg.commands.builder.judge import (
    JudgedSet,
    judge,
    reasons,
    waiver_notes,
    without_invalid,
)
from mlperf_pkg.commands.builder.plan import Plan, make_plan
from mlperf_pkg.commands.builder.workspace import (
    Folders,
    Workspace,
    read_workspace,
    refuse_outside,
    refuse_overlap,
)
from mlperf_pkg.config import read_config
from mlperf_pkg.errors import UserError
from mlperf_pkg.results import wording as words


class Order(Struct, frozen=True):
    """The options of a build, in addition to the configuration.

    ``select`` chooses from more runs than required, as the rules define. ``bypasses`` are names of
    flags (``judge.BYPASSES``). ``keep_invalid`` builds result sets that are not valid, too, and
    ``drop_invalid`` leaves them out. ``allow_outside`` copies from outside the workspace what the
    configuration names there. ``as_open`` submits closed runs as Open if their system is.
    """

    division: str | None = None
    round: str | None = None
    leave_out: Sequence[str] = ()
    bypasses: Sequence[str] = ()
    keep_invalid: bool = False
    select: bool = False
    drop_invalid: bool = False
    allow_outside: bool = False
    as_open: bool = False
    usage: str | None = None


class Prepared(Struct, frozen=True):
    """A submission ready to be written to ``target``, unless there are ``refusals``.

    ``kept`` are the reasons why it is not valid although it is built. ``avoidable`` says that the
    refusals are such reasons, so that the user can leave result sets out or keep them. ``lost``
    says which files of another division the tree would lose, if any.
    """

    workspace: Workspace
    plan: Plan
    judged: tuple[JudgedSet, ...]
    files: tuple[PlannedFile, ...]
    target: Path
    notes: tuple[str, ...]
    refusals: tuple[str, ...]
    kept: tuple[str, ...]
    avoidable: bool
    lost: str | None = None


def prepare(folders: Folders, order: Order) -> Prepared:
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
        refuse_outside(folders, config)
    workspace = read_workspace(folders, config, order.round, order.usage)
    plan, staying = _plan(workspace, order)
    if order.select:
        plan = choose_runs(plan, workspace.round)
    judged = judge(plan, workspace, order.bypasses)
    dropped: tuple[str, ...] = ()
    if order.drop_invalid:
        dropped = tuple(f"left out: {reason}" for reason in reasons(judged))
        plan, judged = without_invalid(plan, judged)
    target = folders.output / plan.submitter
    files: tuple[PlannedFile, ...] = ()
    if not plan.problems:
        refuse_overlap(target, workspace)
        files = tree_files(plan, judged, workspace)
    invalid = (*reasons(judged), *unfit(files))
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
            *code_notes(files),
            *_bypass_notes(judged),
            *waiver_notes(judged, workspace),
        ),
        refusals=plan.problems + (() if order.keep_invalid else invalid),
        kept=invalid if order.keep_invalid else (),
        avoidable=not plan.problems,
        lost=None if plan.problems else lost(target, files, plan.division),
    )


def _plan(workspace: Workspace, order: Order) -> tuple[Plan, tuple[str, ...]]:
    """Return the plan with the result sets of another division that the tree has, and a note."""
    plan = make_plan(workspace, order.division, order.leave_out, as_open=order.as_open)
    target = workspace.folders.output / plan.submitter
    others = others_in(target, plan.division)
    if not others.sets:
        return plan, ()
    plan = make_plan(
        workspace, order.division, order.leave_out, as_open=order.as_open, staying=others.sets
    )
    number = words.counted(len(others.sets), "result set")
    return plan, (f"kept {number} of the {others.division} division in {target}",)


def _bypass_notes(judged: Sequence[JudgedSet]) -> list[str]:
    """Return which bypasses the tree asks the official checker for, and in which files."""
    return [
        f"{file.path} asks for {file.content.decode()}: expect a review of it"
        for file in parameters(judged)
        if isinstance(file.content, bytes)
    ]
