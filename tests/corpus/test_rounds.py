"""The round of a published log follows from its time and benchmark."""

from __future__ import annotations

from mlperf_pkg.infra.source import Source
from mlperf_pkg.run.identity import infer_round
from mlperf_pkg.run.model import LogFile
from tests.helpers.corpus import ROUNDS, corpus_folder, expected, needs_corpus


@needs_corpus
def test_dates_alone_find_the_round_of_nearly_all_published_logs() -> None:
    """All of training (1,910 logs); of HPC all but those that were submitted again (35 of 145)."""
    folder = corpus_folder()
    assert folder is not None
    matches: dict[str, list[bool]] = {"training": [], "hpc": []}
    for tree in ROUNDS:
        usage = "hpc" if tree.startswith("hpc") else "training"
        for path in expected(tree)["logs"]:
            file = folder / tree / path
            log = LogFile(Source(path, file), usage)
            matches[usage].append(infer_round(log).name == tree.rpartition("v")[2])
    assert (sum(matches["training"]), len(matches["training"])) == (1910, 1910)
    assert (sum(matches["hpc"]), len(matches["hpc"])) == (110, 145)
