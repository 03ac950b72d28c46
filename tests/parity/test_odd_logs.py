"""Files that are not a log of one run: the official verdict is that of the official checker."""

import gzip
from functools import cache
from pathlib import Path

import pytest

from mlperf_pkg.findings import Verdict
from mlperf_pkg.rulebook.load import load_round
from tests.helpers.rule_logs import read
from tests.helpers.rulesets import WITH_RULESET
from tests.parity import incumbent
from tests.parity.seeds import seeds


@cache
def logs() -> dict[tuple[str, str], bytes]:
    """A log of each round."""
    return {(seed.usage, seed.round): b"\n".join(seed.lines) + b"\n" for seed in seeds()}


@pytest.mark.parametrize(("usage", "round_"), WITH_RULESET)
def test_odd_logs(tmp_path: Path, usage: str, round_: str) -> None:
    log = logs()[usage, round_]
    killed = b"".join(log.splitlines(keepends=True)[:-30])
    odd = {
        "empty": b"",
        "a note": b"hello\n",
        "UTF-16": log.decode("latin-1").encode("utf-16"),
        "gzip": gzip.compress(log),
        "five runs": log * 5,
        "started again": killed + log,
        "a mark before records": b"\xff\xfe" + log,
    }
    ours = {}
    theirs = {}
    with incumbent.cached_rules():
        for name, data in odd.items():
            file = tmp_path / "result_0.txt"
            file.write_bytes(data)
            official = incumbent.check(file, usage, load_round(usage, round_).ruleset)
            theirs[name] = (official.passes, official.crash is None)
            run = read(data, usage, round_)
            ours[name] = (run.verdicts.official is Verdict.PASS, run.crash is None)
    assert ours == theirs
