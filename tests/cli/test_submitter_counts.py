"""Submitters, systems and result sets are counted alike by all commands on a round."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.helpers.program import call
from tests.helpers.trees import SYSTEM, write_set, write_submission, write_system

FOLDERS = ("Giga Computing", "GigaComputing", "ACME+Beta", "Gamma")
Count = Callable[[Path, Path], tuple[list[str], str]]
SUBMITTERS = ["ACME+Beta", "Giga Computing", "Gamma"]


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two spellings, a joint submission, a folder without logs, a submitter without results."""
    round_ = tmp_path_factory.mktemp("round") / "training_results_v2.0"
    for seed, name in enumerate(FOLDERS):
        write_submission(round_ / name, seed=7 + seed)
        write_system(round_ / name / "systems", submitter=name.replace("+", "_"))
    write_system(round_ / "Gamma" / "systems", "idle", submitter="Gamma")
    (round_ / "Gamma" / "results" / "idle" / "resnet").mkdir(parents=True)
    write_system(round_ / "Empty" / "systems", submitter="Empty")
    write_set(round_ / "Empty" / "results" / SYSTEM / "resnet", ())
    return round_


def of_results(root: Path, out: Path) -> tuple[list[str], str]:
    text = call("results", root, "-o", out).stdout
    document = json.loads((out / "results.json").read_text("utf-8"))
    return [submitter["name"] for submitter in document["submitters"]], text


def of_review(root: Path, out: Path) -> tuple[list[str], str]:
    text = call("review", root, "-o", out).stdout
    document = json.loads((out / "review.json").read_text("utf-8"))
    (section,) = (s for s in document["sections"] if s["name"] == "submitters")
    return [row[0] for row in section["tables"][0]["rows"] if row[2]], text


def of_check(root: Path, out: Path) -> tuple[list[str], str]:
    text = call("check", root, "--format", "markdown").stdout
    table = text.partition("### Submitters")[2].partition("###")[0]
    rows = re.findall(r"^\| (\S[^|]*?) +\| +(\d+) +\|", table, re.M)
    return [name for name, sets in rows if int(sets)], f"{sum(int(n) for _, n in rows)} result sets"


def of_report(root: Path, out: Path) -> tuple[list[str], str]:
    call("report", root, "-o", out)
    text = out.read_text("utf-8")
    table = text.partition("<caption>Verdicts by submitter</caption>")[2].partition("</table>")[0]
    rows = re.findall(r"<th[^>]*>([^<]*)</th>\s*<td[^>]*>(\d+)</td>", table)
    return [name for name, sets in rows if int(sets)], text


COMMANDS = [
    (of_results, "3 submitters, 4 systems, 4 result sets"),
    (of_review, "3 submitters, 4 systems, 4 result sets"),
    (of_check, "4 result sets"),
    (of_report, "4 result sets, 20 runs, 3 submitters"),
]


@pytest.mark.parametrize(("count", "numbers"), COMMANDS)
def test_counts(root: Path, tmp_path: Path, count: Count, numbers: str) -> None:
    names, text = count(root, tmp_path / "out.html")
    assert sorted(names) == sorted(SUBMITTERS)
    assert numbers in " ".join(text.split())
