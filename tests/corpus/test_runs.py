"""Every published log, all rounds: what we make of it against what the official checker said."""

from typing import Any

import pytest

from mlperf_pkg.infra.source import Source
from mlperf_pkg.run.model import LogFile, infer_round
from mlperf_pkg.run.reading import read_run
from tests.corpus.conftest import read_once, renamed
from tests.helpers.corpus import CORPUS, ROUNDS, expected, kind_of, needs_corpus

pytestmark = needs_corpus


@pytest.mark.parametrize("tree", ROUNDS)
def test_official_verdict_records_minutes(tree: str) -> None:
    different = {}
    for path, facts in expected(tree)["logs"].items():
        run = read_once(LogFile(Source(path, CORPUS / tree / path), *kind_of(tree)))
        errors = (f.text for f in run.findings if f.severity.value == "error")
        ours = {
            "official": run.verdicts.official.value,
            "crashed": run.crash is not None,
            "records": run.records,
            "minutes": run.official_minutes,
            "messages": " ".join(errors),  # they name the keys that the official messages name
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


def test_dates_alone_find_the_round_of_nearly_all_published_logs() -> None:
    """All of training (1,910 logs); of HPC all but those that were submitted again (35 of 145)."""
    matches: dict[str, list[bool]] = {"training": [], "hpc": []}
    for tree in ROUNDS:
        usage, round_ = kind_of(tree)
        for path in expected(tree)["logs"]:
            log = LogFile(Source(path, CORPUS / tree / path), usage)
            matches[usage].append(infer_round(log).name == round_)
    assert (sum(matches["training"]), len(matches["training"])) == (1910, 1910)
    assert (sum(matches["hpc"]), len(matches["hpc"])) == (110, 145)


@pytest.mark.parametrize("tree", ROUNDS)
def test_the_path_of_a_log_is_only_its_name(tree: str) -> None:
    """As ``conftest.py`` needs, which reads it once."""
    path = [*expected(tree)["logs"]][-1]
    log, elsewhere = (LogFile(Source(n, CORPUS / tree / path)) for n in (path, "elsewhere"))
    assert renamed(read_run(elsewhere), path) == read_run(log)
