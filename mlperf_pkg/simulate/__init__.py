"""Simulated training runs: logs that keep the rules, from a plan and a seed.

``simulate_run`` returns one log, ``simulate_set`` the runs of a result set, ``simulate_power`` the
logs of a run's power meters. The rulebook says what a run must log. How a benchmark trains, and
the values of hyperparameters that the rules leave free, is in the section ``simulation`` of its
rule file. ``FAILURES`` has the ways to fail.
"""

from mlperf_pkg.simulate.plan import FAILURES, RunPlan, newest_round, refusal
from mlperf_pkg.simulate.rounds import SYSTEM, RoundPlan, description, write_round
from mlperf_pkg.simulate.runs import simulate_power, simulate_run, simulate_set

__all__ = [
    "FAILURES",
    "SYSTEM",
    "RoundPlan",
    "RunPlan",
    "description",
    "newest_round",
    "refusal",
    "simulate_power",
    "simulate_run",
    "simulate_set",
    "write_round",
]
