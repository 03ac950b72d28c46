"""A simulated round with twelve planted problems, all of which the commands of a review find."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.planted import LARGER, NEW, OLD, PROBLEMS, write_planted
from tests.helpers.program import call

Rows = Mapping[str, list[str]]
"""The rows of each list that a command writes, as JSON; the lists by name."""


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("planted")
    write_planted(root)
    return root


@pytest.fixture(scope="module")
def lists(root: Path) -> Rows:
    final = root / "final" / NEW
    rows: dict[str, list[Any]] = {}
    review = call("review", final, "-o", root / "review", "-j", "1")
    assert review.exit_code == 1, review.output
    document = json.loads((root / "review/review.json").read_text("utf-8"))
    for section in document["sections"]:
        for table in section["tables"]:
            rows[f"{section['name']}/{table['name']}"] = [
                dict(zip(table["columns"], row, strict=True)) for row in table["rows"]
            ]
    rows["missing"] = document["problems"]
    rows["diff"] = as_json("diff", root / NEW, final)["entries"]
    for name in ("previews", "resubmitted"):
        rows[name] = as_json("review", "compare", name, root / OLD, final)[name]
    rows["check"] = [
        finding for finding in as_json("check", final)["findings"] if finding["severity"] != "note"
    ]
    return {name: [json.dumps(row) for row in of_list] for name, of_list in rows.items()}


def as_json(*arguments: str | Path) -> Any:
    return json.loads(call(*arguments, "-j", "1", "--format", "json").stdout)


# the problem, the list that has it, and what its row says
FOUND = [
    (
        "logs resubmitted with another description",
        "resubmitted",
        ("Alpha", "not allowed", "description differs in framework"),
    ),
    ("a preview 3 % slower", "previews", ("Beta", "not met", "-2.9")),
    ("a preview without a successor", "previews", ("Gamma", "no successor", "accelerator")),
    ("a copy of another submitter's runs", "objections/errors", ("Delta", "SET150", "Gamma")),
    ("an outlier learning rate", "hyperparameters/outliers", ("Zeta", "base_learning_rate")),
    (
        "runs of one set with different hyperparameters",
        "hyperparameters/differing-runs",
        ("Eta", "warmup", "in 4 runs"),
    ),
    ("a missing reference point", "convergence/missing", ("Theta", str(LARGER))),
    ("a failing RCP test", "convergence/sets", ("Iota", "FAIL")),
    ("two spellings of a submitter", "missing", ("Kappa-Inc", "kappa_inc")),
    ("a broken log", "checklist/Lambda", ("LOG101", "the log is cut off")),
    ("no code", "checklist/Mu", ("no benchmarks/ folder",)),
    (
        "hyperparameters borrowed with other software",
        "diff",
        ("Epsilon", "borrowed", "software changed: framework"),
    ),
]


def test_every_problem_has_a_row() -> None:
    assert [row[0] for row in FOUND] == list(PROBLEMS)
    assert len(FOUND) == 12


@pytest.mark.parametrize(("where", "words"), [row[1:] for row in FOUND], ids=list(PROBLEMS))
def test_found(where: str, words: tuple[str, ...], lists: Rows) -> None:
    rows = [row for row in lists[where] if all(word in row for word in words)]
    assert len(rows) == 1, lists[where]


# the list, what marks a problem in it, and whom it names: nobody without a problem
ONLY = [
    ("resubmitted", "not allowed", "Alpha"),
    ("previews", "not met", "Beta"),
    ("previews", "no successor", "Gamma"),
    ("hyperparameters/outliers", "base_learning_rate", "Theta Zeta"),  # Theta by its batch size
    ("convergence/sets", "FAIL", "Iota"),
    ("diff", "", "Epsilon"),
    ("check", '"error"', "Delta Eta Iota Lambda Theta"),
    ("check", "CODE100", "Mu"),
]


@pytest.mark.parametrize(("where", "mark", "names"), ONLY)
def test_nothing_else_is_found(where: str, mark: str, names: str, lists: Rows) -> None:
    rows = [row for row in lists[where] if mark in row]
    assert " ".join(sorted({*submitters(rows)})) == names


def submitters(rows: list[str]) -> Iterator[str]:
    for row in map(json.loads, rows):
        name = row.get("submitter") or row.get("Submitter")
        path = str(row.get("path") or row.get("entry"))
        yield name or next(part for part in path.split("/") if part != NEW)
