"""Stable Diffusion: which checkpoints were evaluated.

Its checkpoints may be evaluated after the run: the last two of nine runs in ten, and all of one.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import pairwise

from mlperf_pkg.checks.context import SetContext, set_finding
from mlperf_pkg.findings import Basis, Finding, Severity
from mlperf_pkg.infra.json_values import to_finite
from mlperf_pkg.run.model import Run

_BENCHMARK = "stable_diffusion"
_INTERVAL = 512_000  # images between checkpoints
_COUNTS_STEPS = (3, 1)  # the round in which logs count steps


def check_checkpoints(context: SetContext) -> Iterator[Finding]:
    """Check that the last two checkpoints of each run were evaluated, and all of one run in ten."""
    if context.files.benchmark != _BENCHMARK or not context.closed_by_rules:
        return
    runs = [run for run in context.runs if run.convergence.converged and run.convergence.positions]
    for run in runs:
        if not _has_last_two(context, run):
            yield set_finding(
                context,
                "SET123",
                "the checkpoint before the last one, at {found:,}, was not evaluated; expected"
                " {expected}",
                path=run.path,
                basis=Basis.RULES,
                found=run.convergence.positions[-1],
                expected="evaluations of the last two checkpoints",
            )
    complete, expected = sum(_has_all(context, run) for run in runs), len(context.runs) // 10
    if runs and complete < expected:
        yield set_finding(
            context,
            "SET124",
            "all checkpoints were evaluated of {found} runs; expected at least {expected}",
            basis=Basis.ADVICE,
            severity=Severity.NOTE,
            found=complete,
            expected=expected,
        )


def _has_last_two(context: SetContext, run: Run) -> bool:
    return _gaps(run)[-1] <= _interval(context, run)


def _has_all(context: SetContext, run: Run) -> bool:
    return max(_gaps(run)) <= _interval(context, run)


def _gaps(run: Run) -> list[float]:
    """Return the distances between evaluated checkpoints, and of the first to the start."""
    return [later - earlier for earlier, later in pairwise([0, *run.convergence.positions])]


def _interval(context: SetContext, run: Run) -> float:
    """Return the greatest distance of checkpoints, in the unit of the log."""
    size = to_finite(run.convergence.batch_size) or 1
    steps = math.ceil(_INTERVAL / size) if size >= 1 else _INTERVAL
    return steps if context.round.version == _COUNTS_STEPS else steps * size
