"""Simulated training runs: logs that abide by the rules, from a plan and a seed.

``simulate_run`` gives one log, ``simulate_set`` the runs of a result set, ``simulate_power`` what
the power meters of a run log; ``plans`` has a plan of every kind of run. The rulebook says what a
run must log. How a benchmark trains is a recipe of ``benchmarks``; the values of its
hyperparameters are rows of ``settings`` where the rules leave them free; a way to fail is a row
of ``FAILURES``.
"""

from mlperf_pkg.rulebook.model import DIVISIONS
from mlperf_pkg.simulate.plan import (
    FAILURES,
    IMPOSSIBLE,
    RunPlan,
    newest_round,
    optimizers,
    plans,
)
from mlperf_pkg.simulate.power import simulate_power
from mlperf_pkg.simulate.rounds import RoundPlan
from mlperf_pkg.simulate.runs import simulate_run, simulate_set
from mlperf_pkg.simulate.tree import write_round

__all__ = [
    "DIVISIONS",
    "FAILURES",
    "IMPOSSIBLE",
    "RoundPlan",
    "RunPlan",
    "newest_round",
    "optimizers",
    "plans",
    "simulate_power",
    "simulate_run",
    "simulate_set",
    "write_round",
]
