"""Every published log, all rounds: what we make of it against what the official checker said."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest

from mlperf_pkg.infra.source import Source
from mlperf_pkg.run.identity import infer_round
from mlperf_pkg.run.model import LogFile, Run
from mlperf_pkg.run.reading import read_run
from tests.corpus.conftest import renamed
from tests.helpers.corpus import CORPUS, ROUNDS, expected, needs_corpus

FLAGGED: dict[tuple[str, str], set[str]] = {
    # One run has no evaluation at epoch 60, which the text of 1.0 lists.
    ("v1.0", "Google/results/tpu-v4-4096-TF/ssd"): {"SSD123"},
    # One run initialises for 22.8 minutes; the text has 20, and the 30 of 1.0 were for 1.0 only.
    ("v1.1", "Graphcore/results/ipu-pod64-POPART-open/bert"): {"RUN122"},
}
"""Result sets with logs that break a written rule that the official checker does not know."""

pytestmark = needs_corpus


@cache
def _read(tree: str, path: str) -> Run:
    usage, _, round_name = tree.rpartition("v")
    file = CORPUS / tree / path
    return read_run(LogFile(Source(path, file), usage.strip("_") or "training", round_name))


@pytest.mark.parametrize("tree", ROUNDS)
def test_the_path_of_a_log_is_only_its_name(tree: str) -> None:
    """As those of ``conftest.py`` need, who read it once."""
    for path in [*expected(tree)["logs"]][:8]:
        at = LogFile(Source(path, CORPUS / tree / path))
        elsewhere = LogFile(Source("elsewhere", CORPUS / tree / path))
        assert renamed(read_run(elsewhere), path) == read_run(at)


@pytest.mark.parametrize("tree", ROUNDS)
def test_official_verdict_records_minutes(tree: str) -> None:
    different = {}
    for path, facts in expected(tree)["logs"].items():
        run = _read(tree, path)
        ours = {
            "official": run.verdicts.official.value,
            "crashed": run.crash is not None,
            "records": run.records,
            "minutes": run.official_minutes,
            "messages": _messages(run),
        }
        if not _agree(ours, facts):
            different[path] = (ours, facts)
    assert not different


def _agree(ours: dict[str, Any], facts: dict[str, Any]) -> bool:
    crashed = facts["died"] is not None
    return (
        ours["official"] == facts["official"]
        and ours["crashed"] == crashed
        and facts["records"] in (None, ours["records"])
        and ours["minutes"] == pytest.approx(facts["minutes"], abs=1e-9)
        and all(key in ours["messages"] for key in facts["failed_keys"])
    )


def _messages(run: Run) -> str:
    """What our errors say: they name the keys that the official messages name."""
    return " ".join(f.text for f in run.findings if f.severity.value == "error")


@pytest.mark.parametrize("tree", ROUNDS)
def test_rules_beyond_the_official_checker_are_precise(tree: str) -> None:
    """Published submissions were reviewed: each set that breaks a rule of ours is accounted for."""
    flagged: dict[tuple[str, str], set[str]] = {}
    for path in expected(tree)["logs"]:
        for finding in _read(tree, path).findings:
            if finding.severity.value == "error" and finding.basis.value == "rules":
                key = (tree, path.rpartition("/")[0])
                flagged.setdefault(key, set()).add(finding.code)
    assert flagged == {key: codes for key, codes in FLAGGED.items() if key[0] == tree}


@needs_corpus
def test_dates_alone_find_the_round_of_nearly_all_published_logs() -> None:
    """All of training (1,910 logs); of HPC all but those that were submitted again (35 of 145)."""
    matches: dict[str, list[bool]] = {"training": [], "hpc": []}
    for tree in ROUNDS:
        usage = "hpc" if tree.startswith("hpc") else "training"
        for path in expected(tree)["logs"]:
            file = CORPUS / tree / path
            log = LogFile(Source(path, file), usage)
            matches[usage].append(infer_round(log).name == tree.rpartition("v")[2])
    assert (sum(matches["training"]), len(matches["training"])) == (1910, 1910)
    assert (sum(matches["hpc"]), len(matches["hpc"])) == (110, 145)
