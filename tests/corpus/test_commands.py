"""Commands on published rounds: claims reproduced, keys that hold, short texts, all result sets."""

import json
import re
import sqlite3
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import asdict

from mlperf_pkg.checker.values import Options
from mlperf_pkg.commands.export.schema import TABLES
from mlperf_pkg.commands.page.content import PageContent
from mlperf_pkg.commands.review.round import read_side, record_side
from mlperf_pkg.render import FORMATS, Show, View
from mlperf_pkg.render.text import by_code
from mlperf_pkg.submission.model import AS_FILED
from tests.helpers.corpus import CORPUS, ROUNDS, SOME_ROUNDS, checked, kind_of, needs_corpus
from tests.helpers.program import call
from tests.helpers.report_schema import errors_of

pytestmark = needs_corpus


def compared(*paths: str) -> list[dict[str, Any]]:
    names = [f"{CORPUS}/{path}" for path in paths]
    result = call("compare", *names, "--format", "json")
    assert result.exit_code == 0, result.output
    rows: list[dict[str, Any]] = json.loads(result.stdout)["results"]
    return rows


@pytest.mark.parametrize(
    ("dgx", "pod", "minutes", "per_dollar"),
    [
        ("dgxa100_ngc21.05_mxnet/resnet", "ipu-pod16-TF1/resnet", (28.771, 37.115), "1.6"),
        ("dgxa100_ngc21.05_pytorch/bert", "ipu-pod16-POPART-closed/bert", (21.693, 34.489), "1.3"),
    ],
)
def test_performance_per_dollar_of_round_1_0(
    dgx: str, pod: str, minutes: tuple[float, float], per_dollar: str
) -> None:
    paths = (f"v1.0/NVIDIA/results/{dgx}", f"v1.0/Graphcore/results/{pod}")
    rows = compared(*paths)
    assert tuple(round(row["minutes"], 3) for row in rows) == minutes
    assert [row["price_usd"] for row in rows] == [300_000, 149_000]
    assert f"{rows[1]['performance_per_dollar']:.1f}" == per_dollar


def test_throughput_agrees_with_the_log() -> None:
    rows = compared("v2.0/NVIDIA", "v2.0/Krai")
    logged = [row for row in rows if row["logged_throughput"] and row["samples_per_second"]]
    # ssd logs that of one accelerator; unet3d evaluates long.
    alike = [row for row in logged if row["benchmark"] not in ("ssd", "unet3d")]
    assert len(alike) > 8
    assert [row["samples_per_second"] for row in alike] == [
        pytest.approx(row["logged_throughput"], rel=0.05) for row in alike
    ]


BY_KEYS = """
    SELECT count(DISTINCT r.id), count(runs.path), count(s.path), count(r.system_path), count(start)
    FROM result_sets r
         LEFT JOIN runs ON (runs.usage, runs.round, runs."set") = (r.usage, r.round, r.id)
         LEFT JOIN systems s ON (s.usage, s.round, s.path) = (r.usage, r.round, r.system_path)"""


@pytest.mark.parametrize("tree", SOME_ROUNDS)
def test_keys_hold(tree: str, tmp_path: Path) -> None:
    path = tmp_path / "r.sqlite"
    assert call("export", CORPUS / tree, "-o", path, "--evaluations").exit_code == 0
    with closing(sqlite3.connect(path)) as database:
        assert database.execute("PRAGMA foreign_key_check").fetchall() == []
        joined = database.execute(BY_KEYS).fetchone()
        counts = [database.execute(f"SELECT count(*) FROM {name}").fetchone()[0] for name in TABLES]
    sets, runs = counts[1:3]
    assert joined == (sets, runs, joined[3], joined[3], runs)


MOST = {"v2.0": 200, "v5.1": 150}


@pytest.mark.parametrize("tree", ROUNDS)
def test_all_findings_are_shown_once(tree: str) -> None:
    """Each message on a subject, in every format for people."""
    report = checked(tree).report
    assert errors_of(report) == []
    assert FORMATS["text"](report, View()).count("\n") <= MOST.get(tree, 120)
    counts = Counter((f.code, f.message, f.about, f.severity, f.basis) for f in report.findings)
    assert [key for key, number in counts.items() if number > 1] == []
    groups = by_code(report.findings)
    assert sum(len(group.findings) for group in groups) == len(report.findings)
    assert len(PageContent(report, (), {}).findings) == len(report.findings)
    text = FORMATS["text"](report, View(show=Show.ALL))
    codes = Counter(re.findall(r"\b[A-Z]+[0-9]*[A-Z]*\d{3}\b", text))
    assert [group for group in groups if codes[group.first.code] < len(group.findings)] == []


UNKNOWN = "global_batch_size"  # of a folder, where nothing compares it


@pytest.mark.parametrize("round_", SOME_ROUNDS)
def test_a_round(round_: str, tmp_path: Path) -> None:
    result = call("review", CORPUS / round_, "-o", tmp_path / "review", "-j", "1")
    assert result.exit_code in (0, 1)
    assert len(result.stdout.splitlines()) <= 72  # at 80 columns; 71 in 0.7
    assert "internal error" not in result.stdout
    document = json.loads((tmp_path / "review/review.json").read_bytes())
    folders = {path.name for path in (CORPUS / round_).iterdir() if path.is_dir()}
    assert {folder for item in document["submitters"] for folder in item["folders"]} == folders
    assert all(len(item["name"]) > 2 and "+" not in item["name"] for item in document["submitters"])


@pytest.mark.parametrize("name", SOME_ROUNDS)
def test_as_published(name: str) -> None:
    side = read_side(f"{CORPUS}/{name}", Options(jobs=1, flags=frozenset({AS_FILED})))
    entries = record_side(kind_of(name)[0]).entries
    record = {(entry.row.round, entry.row.path): entry for entry in entries}
    pairs = [(entry, record[entry.row.round, entry.row.path]) for entry in side.entries]
    assert pairs
    assert [asdict(entry.row) | {UNKNOWN: None} for entry, _ in pairs] == [
        asdict(published.row) | {UNKNOWN: None} for _, published in pairs
    ]
    assert [
        entry.row.path for entry, published in pairs if not {*entry.logs} <= {*published.logs}
    ] == []
