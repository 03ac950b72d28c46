"""Simulated training runs: logs that abide by the rules, from a plan and a seed.

``simulate_run`` gives one log, ``simulate_set`` the runs of a result set. What is known of a
round, a benchmark or a failure is a row of ``ROUNDS``, ``benchmarks`` or ``FAILURES``.
"""

from mlperf_pkg.simulate.plan import DIVISIONS, FAILURES, ROUNDS, RunPlan
from mlperf_pkg.simulate.runs import simulate_run, simulate_set

__all__ = ["DIVISIONS", "FAILURES", "ROUNDS", "RunPlan", "simulate_run", "simulate_set"]
