"""Builds that are killed at random moments do no damage."""

from __future__ import annotations

import os
import random
import signal
import time
from pathlib import Path

import pytest

from mlperf_pkg.commands.builder.prepare import Order, Prepared, acceptance, prepare
from mlperf_pkg.commands.builder.workspace import Folders
from mlperf_pkg.commands.builder.writing import write_tree
from tests.helpers.workspaces import bytes_below, closed_workspace

KILLS = 200 if os.environ.get("MLPERF_PKG_FULL") else 30


def build(prepared: Prepared) -> None:
    write_tree(prepared.target, prepared.files, acceptance(prepared), force=True)


def killed(prepared: Prepared, after_s: float) -> bool:
    """Build in a process of its own that has so long to live; whether it was killed."""
    child = os.fork()
    if child == 0:
        build(prepared)
        os._exit(0)
    time.sleep(after_s)
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    return os.WIFSIGNALED(status)


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_killed_at_random_moments(tmp_path: Path) -> None:
    """The tree is always the one before or the new one, whole, and the next build tidies up."""
    dice = random.Random(11)
    root = closed_workspace(tmp_path)
    one = prepare(Folders.of(root), Order())
    begun = time.monotonic()
    build(one)
    takes_s = time.monotonic() - begun
    trees = [bytes_below(one.target)]
    other = prepare(Folders.of(root), Order(leave_out=("bow-pod16/bert",)))
    build(other)
    trees.append(bytes_below(other.target))
    assert trees[0] != trees[1]
    limit_s = 1.2 * takes_s
    kills = 0
    while kills < KILLS:
        if killed((one, other)[kills % 2], dice.uniform(0, limit_s)):
            kills += 1
        else:
            limit_s *= 0.9  # it has become faster: the machine has less else to do
        assert bytes_below(one.target) in trees
    build(one)
    assert bytes_below(one.target.parent) == {
        f"Graphcore/{n}": data for n, data in trees[0].items()
    }
