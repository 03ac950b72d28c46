"""Every command, format and page shows one score of a result set."""

import csv
import io
import json
import re
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import mlperf_pkg
from mlperf_pkg.checker.values import Options
from mlperf_pkg.commands.review.round import read_side
from mlperf_pkg.results.wording import minutes
from tests.helpers.broken_runs import every_log, slightly_fast
from tests.helpers.corpus import CORPUS, needs_corpus
from tests.helpers.program import call
from tests.helpers.trees import write_submission


def published(round_: str, submitter: str, system: str, benchmark: str) -> Callable[[Path], Path]:
    """A round with one set of a published submission."""

    def make(folder: Path) -> Path:
        source = CORPUS / round_ / submitter
        tree = folder / round_ / submitter
        (tree / "systems").mkdir(parents=True)
        shutil.copy(source / f"systems/{system}.json", tree / "systems")
        shutil.copytree(
            source / f"results/{system}/{benchmark}", tree / f"results/{system}/{benchmark}"
        )
        return tree.parent

    return make


def simulated(round_: str) -> Callable[[Path], Path]:
    """A round with a Closed set that converges faster than the reference."""
    return lambda folder: (
        every_log(slightly_fast, write_submission(folder / round_ / "ACME")).parent
    )


def of(*arguments: str | Path) -> str:
    return call(*arguments, "-j", "1").stdout


def rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def shown(root: Path, out: Path) -> Iterator[tuple[str, Any]]:
    """Yield what shows the score of a round of one result set, and the score that it shows."""
    yield "the API", mlperf_pkg.check(root).result_sets[0].score_minutes
    report = json.loads(of("check", root, "--format", "json"))
    yield "check as JSON", report["result_sets"][0]["score_minutes"]
    yield "check as text", re.findall(r" \d+/\d+ +([\d.]+) ", of("check", root))[0]
    scores = json.loads(of("score", root, "--format", "json"))
    yield "score as JSON", scores["result_sets"][0]["score_minutes"]
    yield "score as CSV", rows(of("score", root, "--format", "csv"))[0]["score_minutes"]
    yield "score as text", re.findall(r"  score +([\d.]+)", of("score", root))[0]
    compared = json.loads(of("compare", root, "--format", "json"))
    yield "compare", compared["results"][0]["minutes"]
    yield "review compare", read_side(str(root), Options(jobs=1)).entries[0].row.score_minutes
    of("results", root, "-o", out / "results")
    tables = json.loads((out / "results/results.json").read_bytes())
    yield "results", tables["scores"][0]["minutes"]
    of("report", root, "-o", out / "page.html")
    page = (out / "page.html").read_text("utf-8")
    yield "report", re.findall(r'<td class="n score"[^>]*>([^<]+)<', page)[0]
    of("export", root, "-o", out / "export.sqlite")
    with closing(sqlite3.connect(out / "export.sqlite")) as database:
        yield "export", database.execute("SELECT score_minutes FROM result_sets").fetchone()[0]
    before = write_submission(out / "v1.1/Beta", "maskrcnn").parent
    changes = json.loads(of("diff", before, root, "--format", "json"))
    yield "diff", changes["result_sets"]["added"][0]["score_minutes"]


@pytest.mark.parametrize(
    ("make", "score"),
    [
        pytest.param(
            published("v1.0", "Graphcore", "ipu-pod16-POPART-closed", "bert"),
            "34.489",
            id="without a rule of normalisation",
            marks=needs_corpus,
        ),
        pytest.param(
            published("v2.0", "Google", "cloud-tpu-v4-4096-TF", "ssd"),
            "2.343",
            id="by scaling.json",
            marks=needs_corpus,
        ),
        pytest.param(
            published("v5.0", "GigaComputing", "G893-SD1_pytorch", "stable_diffusion"),
            "13.102",
            id="normalised",
            marks=needs_corpus,
        ),
        pytest.param(
            published("v1.0", "Graphcore", "ipu-pod16-POPART-open", "bert"),
            "27.754",
            id="Open",
            marks=needs_corpus,
        ),
        pytest.param(simulated("v2.0"), "19.565", id="simulated, not normalised"),
        pytest.param(simulated("v2.1"), "19.651", id="simulated, normalised"),
    ],
)
def test_one_score(make: Callable[[Path], Path], score: str, tmp_path: Path) -> None:
    root = make(tmp_path)
    scores = {
        name: minutes(float(str(value).removesuffix(" (unverified)")))
        for name, value in shown(root, tmp_path / "out")
    }
    assert scores == dict.fromkeys(scores, score)
