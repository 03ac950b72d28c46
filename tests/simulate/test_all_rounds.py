"""Every kind of run that the rulebook has: what both checkers say of it, and of its failures."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from mlperf_pkg.compat.rcp_checker import check_directory
from mlperf_pkg.errors import UserError
from mlperf_pkg.findings import Basis, Severity, Verdict
from mlperf_pkg.infra.source import Source
from mlperf_pkg.results.rcp import is_covered, reference_points
from mlperf_pkg.rulebook.load import load_benchmark, load_round
from mlperf_pkg.rulebook.model import Benchmark, version_of
from mlperf_pkg.run.model import LogFile, Run
from mlperf_pkg.run.reading import read_run
from mlperf_pkg.simulate import FAILURES, RunPlan, refusal, simulate_run, simulate_set
from tests.helpers.examples import newest
from tests.helpers.official import official_rcp, officially_valid
from tests.helpers.rulesets import require_ruleset
from tests.helpers.simulated_logs import ALL_KINDS, PLANS, values

NO_FILE = "it has no rule file for them and crashes"
NOT_LISTED = "its list of benchmarks lacks this one"
BELOW_ONE = "it asks for a log perplexity below 1.0, where the Closed target is 3.3"
IMPOSSIBLE = {
    ("training", "3.0", "gpt3", "open"): NO_FILE,
    ("training", "3.1", "gpt3", "open"): NO_FILE,
    ("training", "4.0", "llama2_70b_lora", "open"): NOT_LISTED,
    ("training", "4.1", "llama2_70b_lora", "open"): NOT_LISTED,
    ("training", "5.1", "llama31_8b", "open"): BELOW_ONE,
    ("training", "6.0", "llama31_8b", "open"): BELOW_ONE,
    ("training", "6.1", "llama31_8b", "open"): BELOW_ONE,
}
"""Kinds of which the official checker accepts no log, in the rounds up to 6.1."""

CHOSEN = newest(PLANS, lambda plan: (plan.usage, plan.benchmark, plan.division, plan.optimizer))
FAILING = [
    replace(plan, failure=failure)
    for number, plan in enumerate(CHOSEN)
    for failure in ("diverged", [*FAILURES][1:][number % (len(FAILURES) - 1)])
]
"""Every kind of run diverged, and one after the other in the other ways to fail."""


def named(plan: RunPlan) -> str:
    kind = (plan.usage, plan.round, plan.benchmark, plan.division, plan.optimizer, plan.failure)
    return "-".join(part for part in kind if part)


def ruleset(plan: RunPlan) -> str:
    return load_round(plan.usage, plan.round).ruleset


def read(log: bytes, plan: RunPlan) -> Run:
    return read_run(LogFile(Source("result_0.txt", log), plan.usage, plan.round))


def rules_of(plan: RunPlan) -> Benchmark:
    benchmark = load_benchmark(plan.usage, plan.round, plan.benchmark)
    assert benchmark
    return benchmark


def target_required(plan: RunPlan) -> bool:
    """Whether the official checker requires the target: of Closed runs always, seldom of Open."""
    benchmark = rules_of(plan)
    official = (Basis.BOTH, Basis.OFFICIAL)
    rules = (rule for of_key in benchmark.sections["open"].values() for rule in of_key)
    in_open = any(rule.reaches == benchmark.target for rule in rules if rule.basis in official)
    return plan.division == "closed" or in_open


def has_reference(plan: RunPlan) -> bool:
    """Whether the official RCP checker can judge a set of such runs."""
    key = (plan.usage, ruleset(plan), plan.benchmark)
    return is_covered(plan.usage, plan.benchmark) and bool(reference_points(*key, runs=3, drop=1))


JUDGED = [plan for plan in CHOSEN if plan.division == "closed" and has_reference(plan)]


def test_kinds_that_are_impossible_and_optimizers_in_order() -> None:
    reasons = {kind: reason for kind in ALL_KINDS if (reason := refusal(*kind))}
    refused = {kind: why for kind, why in reasons.items() if version_of(kind[1]) <= (6, 1)}
    assert refused == IMPOSSIBLE
    resnet = [p for p in PLANS if (p.round, p.benchmark, p.division) == ("2.0", "resnet", "closed")]
    assert [plan.optimizer for plan in resnet] == ["lars", "sgd"]


@pytest.mark.parametrize(("kind", "reason"), IMPOSSIBLE.items())
def test_impossible_runs_are_refused(kind: tuple[str, str, str, str], reason: str) -> None:
    usage, name, benchmark, division = kind
    plan = RunPlan(name, benchmark, division, "box16", "Example Org", usage=usage)
    with pytest.raises(UserError, match=f"accepts no {division} run of {benchmark}.*{reason}"):
        simulate_run(plan, 1)


@pytest.mark.parametrize("plan", CHOSEN, ids=named)
def test_success_is_valid_by_both_checkers_and_both_verdicts(plan: RunPlan, tmp_path: Path) -> None:
    log = simulate_run(plan, 1)
    run = read(log, plan)
    assert [finding for finding in run.findings if finding.severity is Severity.ERROR] == []
    assert run.verdicts.rules is Verdict.PASS
    assert (run.converged, run.status) == (True, "success")
    logged = values(log)
    assert logged["submission_benchmark"] == plan.benchmark
    assert logged["submission_division"] == plan.division
    assert (logged["submission_org"], logged["submission_platform"]) == ("Example Org", "box16")
    assert (logged.get("opt_name"), logged["seed"]) == (plan.optimizer, 1)
    assert read_run(LogFile(Source("", log), plan.usage)).round == plan.round
    require_ruleset(plan.usage, plan.round)
    assert run.verdicts.official is Verdict.PASS
    assert officially_valid(log, tmp_path, plan.usage, ruleset(plan))


@pytest.mark.parametrize("plan", FAILING, ids=named)
def test_failure_is_officially_invalid(plan: RunPlan, tmp_path: Path) -> None:
    log, failure = simulate_run(plan, 1), plan.failure
    run = read(log, plan)
    # Any criterion may stop a run of Open.
    assert not run.converged or failure in ("missing_key", "wrong_value") or plan.division == "open"
    require_ruleset(plan.usage, plan.round)
    try:
        valid = officially_valid(log, tmp_path, plan.usage, ruleset(plan))
    except KeyError:  # it crashes on a Stable Diffusion log that is cut between FID and CLIP
        assert (plan.benchmark, failure) == ("stable_diffusion", "truncated")
        valid = False
    assert valid is (run.verdicts.official is Verdict.PASS)
    # No official rule reads the status.
    assert valid is (failure == "diverged" and not target_required(plan))


@pytest.mark.parametrize("plan", JUDGED, ids=named)
def test_closed_set_passes_the_rcp_test_unscaled(plan: RunPlan, tmp_path: Path) -> None:
    logs = simulate_set(plan, 3)
    assert len(logs) == rules_of(plan).runs.required
    kind = (plan.usage, ruleset(plan))
    verdict = official_rcp(logs, tmp_path, *kind)
    assert verdict == (True, "RCP found", 1.0)
    assert verdict == check_directory(str(tmp_path), *kind, False, False, rcp_pass="pruned_rcps")
