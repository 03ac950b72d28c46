"""Write the tree of a whole round: all of it or nothing, with any number of processes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path

from msgspec import Struct

from mlperf_pkg.errors import UserError, reason_of
from mlperf_pkg.infra.files import new_folder
from mlperf_pkg.infra.parallel import pool
from mlperf_pkg.simulate.rounds import (
    File,
    RoundPlan,
    SystemPlan,
    common_files,
    deal,
    system_files,
)
from mlperf_pkg.simulate.texts import NOTICE, NOTICE_BEGINS


class Written(Struct, frozen=True):
    """The numbers of systems, result sets and logs that were written, and the bytes of all."""

    systems: int
    sets: int
    logs: int
    size: int


def write_round(plan: RoundPlan, target: Path, *, jobs: int = 1, force: bool = False) -> Written:
    """Simulate a round into the folder ``target``, which appears only once it is complete.

    With ``force``, a simulated round there is replaced, never anything else.

    Raises:
        UserError: as ``deal``; ``target`` exists and may not be replaced, or cannot be written.
    """
    systems = deal(plan)
    _refuse_to_replace(target, force=force)
    try:
        with new_folder(target, lambda there: force and _is_ours(there)) as folder:
            counts = [_write(folder, common_files(plan, systems))]
            counts += _write_systems(folder, systems, min(jobs, len(systems)))
    except OSError as error:
        raise UserError(f"{target}: cannot be written: {reason_of(error)}") from error
    logs, sizes = zip(*counts, strict=True)
    return Written(len(systems), sum(len(s.benchmarks) for s in systems), sum(logs), sum(sizes))


def _refuse_to_replace(target: Path, *, force: bool) -> None:
    if not target.exists() and not target.is_symlink():
        return
    if not _is_ours(target):
        raise UserError(
            f"{target}: exists and is not a round that mlperf-pkg simulated; it is not replaced"
        )
    if not force:
        raise UserError(f"{target}: exists already; --force replaces it")


def _is_ours(target: Path) -> bool:
    try:
        with (target / NOTICE).open("rb") as stream:
            beginning = stream.read(len(NOTICE_BEGINS))
    except OSError:
        return False
    return beginning == NOTICE_BEGINS.encode() and not target.is_symlink()


def _write_systems(folder: Path, systems: Sequence[SystemPlan], jobs: int) -> list[tuple[int, int]]:
    write = partial(_write_system, folder)
    if jobs == 1:
        return list(map(write, systems))
    with pool(jobs) as executor:
        return list(executor.map(write, systems))


def _write_system(folder: Path, system: SystemPlan) -> tuple[int, int]:
    return _write(folder, system_files(system))


def _write(folder: Path, files: Iterable[File]) -> tuple[int, int]:
    """Write the files; return the number of logs among them, and the bytes of all."""
    logs = size = 0
    for name, content in files:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        logs += path.name.startswith("result_")
        size += len(content)
    return logs, size
