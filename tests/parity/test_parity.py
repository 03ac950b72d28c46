"""A sample of the comparison with the official checker; ``python -m tests.parity`` makes more."""

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlperf_pkg.findings import Verdict
from tests.helpers.rule_logs import read
from tests.helpers.rulesets import WITH_RULESET
from tests.parity import incumbent
from tests.parity.harness import compare

CASES = 250


def test_official_verdicts_agree_on_mutated_logs() -> None:
    tally = compare(CASES, seed=2026)
    assert not tally.disagreements, "\n\n".join(map(str, tally.disagreements))
    assert tally.rounds == set(WITH_RULESET)
    assert min(tally.agreed[outcome] for outcome in ("pass", "fail", "crash")) > CASES // 20


ONCE_DIFFERENT = {
    "a key that is a list, before another record": (
        "2.0",
        (
            b':::MLLOG {"time_ms": 1, "key": [], "value": 1, "metadata": {}}'
            b' :::MLLOG {"time_ms": 1, "key": "seed", "value": 1, "metadata": {}}\n'
        ),
    ),
    "a time that is not a double": (
        "2.0",
        b':::MLLOG {"time_ms": 1%s, "key": "seed", "value": 1, "metadata": {}}\n' % (b"0" * 400),
    ),
    "metrics to be joined without metadata": (
        "3.1",
        b':::MLLOG {"time_ms": 1, "key": "submission_benchmark", "value": "stable_diffusion",'
        b' "metadata": {}}\n:::MLLOG {"time_ms": 1, "key": "submission_division", "value": "open",'
        b' "metadata": {}}\n:::MLLOG {"time_ms": 1, "key": "eval_accuracy", "value": 1,'
        b' "metadata": 0.5}\n',
    ),
}


@pytest.mark.parametrize("name", ONCE_DIFFERENT)
def test_logs_that_the_comparison_found(name: str, tmp_path: Path) -> None:
    round_, log = ONCE_DIFFERENT[name]
    file = tmp_path / "result_0.txt"
    file.write_bytes(log)
    with incumbent.cached_rules():
        official = incumbent.check(file, "training", f"{round_}.0")
    run = read(log, "training", round_)
    assert (official.passes, official.crash is None) == (False, run.crash is None)
    assert run.verdicts.official is Verdict.FAIL


LINES = st.lists(st.sampled_from([":::MLLOG ", ":::MLLOG", ":", " ", "x", "\r", "\\1"])).map(
    "".join
)


@given(line=LINES, end=st.sampled_from(["", "\n"]))
def test_a_record_is_found_as_by_the_pattern_of_the_tools(line: str, end: str) -> None:
    token = ":::MLLOG "
    assert incumbent.sub(f".*{token}", token, line + end) == re.sub(f".*{token}", token, line + end)
