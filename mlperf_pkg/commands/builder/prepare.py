"""Everything before the first byte is written: read, plan, judge, refuse."""

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
from mlperf_pkg.commands.builder.judge import JudgedSet, judge, reasons, waiver_notes
from mlperf_pkg.commands.builder.plan import Plan, make_plan
from mlperf_pkg.commands.builder.workspace import Folders, Workspace, read_workspace, refuse_overlap
from mlperf_pkg.config import read_config
from mlperf_pkg.errors import UserError


class Order(Struct, frozen=True):
    """What a user asks for beyond the configuration.

    ``select`` chooses among more runs than required, as the rules tell.
    ``bypasses`` are names of flags (``judge.BYPASSES``); ``keep_invalid`` builds what is not
    valid all the same.
    """

    division: str | None = None
    round: str | None = None
    leave_out: Sequence[str] = ()
    bypasses: Sequence[str] = ()
    keep_invalid: bool = False
    select: bool = False


class Prepared(Struct, frozen=True):
    """A submission ready to be written to ``target``, unless there are ``refusals``.

    ``kept`` are the reasons for which it is not valid although it is built; ``mendable`` says that
    the refusals are such reasons, so that result sets may be left out or kept.
    """

    workspace: Workspace
    plan: Plan
    judged: tuple[JudgedSet, ...]
    files: tuple[PlannedFile, ...]
    target: Path
    notes: tuple[str, ...]
    refusals: tuple[str, ...]
    kept: tuple[str, ...]
    mendable: bool


def prepare(folders: Folders, order: Order) -> Prepared:
    """Read a workspace and decide what its submission holds.

    Raises:
        UserError: there is no such folder, no log or no system description, something cannot be
            read, the configuration is wrong, or the submission would overlap with what is read.
    """
    if not folders.workspace.is_dir():
        raise UserError(f"{folders.workspace}: no such folder")
    workspace = read_workspace(folders, read_config(folders.workspace), order.round)
    plan = make_plan(workspace, order.division, order.leave_out)
    if order.select:
        plan = choose_runs(plan, workspace.round)
    judged = judge(plan, workspace, order.bypasses)
    target = folders.output / plan.submitter
    files: tuple[PlannedFile, ...] = ()
    if not plan.problems:
        refuse_overlap(target, workspace)
        files = tree_files(plan, judged, workspace)
    wrong = (*reasons(judged), *unfit(files))
    return Prepared(
        workspace=workspace,
        plan=plan,
        judged=judged,
        files=files,
        target=target,
        notes=(
            *plan.notes,
            *code_notes(files),
            *_bypass_notes(judged),
            *waiver_notes(judged, workspace),
        ),
        refusals=plan.problems + (() if order.keep_invalid else wrong),
        kept=wrong if order.keep_invalid else (),
        mendable=not plan.problems,
    )


def _bypass_notes(judged: Sequence[JudgedSet]) -> list[str]:
    """Which bypasses the tree asks the official checker for, and where."""
    return [
        f"{file.path} asks for {bytes(file.content).decode()}: be ready for a review of it"
        for file in parameters(judged)
    ]
