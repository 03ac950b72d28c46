"""Reading the rulebook: what it refuses, and how a round extends another."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from mlperf_pkg.errors import RulebookError, UserError
from mlperf_pkg.rulebook import load
from mlperf_pkg.rulebook.load import (
    load_benchmark,
    load_round,
    rounds,
    tensors,
    usages,
)
from mlperf_pkg.rulebook.table import rule_table

ROUND = """
round: "1.0"
ruleset: 1.0.0
submission_date: 2021-05-21
benchmarks: [toy, plain]
normalised: false
source: the round
common: {run_stop: {code: RUN109, occurs: once}}
closed: {submission_benchmark: {code: RUN119, one_of: benchmarks}}
"""
NEXT = 'round: "1.1"\nextends: "1.0"\nruleset: 1.1.0\nsubmission_date: 2021-10-15\n'
TOY = """
runs: {required: 5, drop: 1}
target: {at_least: 0.5}
convergence: {unit: epochs, from: epoch_num}
source: the benchmark
defaults: {open: {basis: official}}
closed:
  batch: {code: TOY101, occurs: once}
  rate: [{code: TOY102, above: 0}, {code: TOY103, basis: rules, below: 1}]
  eval_accuracy: {code: TOY104, reaches: target}
open:
  batch: {code: TOY201}
"""
Write = Callable[..., None]


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Write]:
    """A rulebook of one's own: two rounds and a benchmark, and then what a test writes."""
    caches = (
        load_round,
        load_benchmark,
        load._inherited,
        load._own,
        rounds,
        usages,
        tensors,
        rule_table,
    )

    def forget() -> None:
        for cached in caches:
            cached.cache_clear()

    def write_files(**files: str) -> None:
        for name, text in files.items():
            path = tmp_path / (name.replace("__", "/") + ".yaml")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, "utf-8")
        forget()

    monkeypatch.setattr(load, "data_folder", lambda name: tmp_path)
    write_rounds = {"training__1.0__round": ROUND, "training__1.1__round": NEXT}
    write_files(**write_rounds, training__1_0=TOY, tensors="toy: [a, 'b{1,2}']")
    (tmp_path / "training/1_0.yaml").rename(tmp_path / "training/1.0/toy.yaml")
    yield write_files
    forget()


@pytest.mark.parametrize(
    ("file", "text", "words"),
    [
        ("training__1.0__toy", TOY + "colour: red", "unknown colour"),
        ("training__1.0__toy", TOY + "  rate: {code: T}\n  rate: {code: T}", "'rate' stands twice"),
        ("training__1.0__toy", TOY + "  rate: {code: TOY9, colour: red}", "unknown colour"),
        ("training__1.0__toy", TOY + "  rate: {occurs: once}", "needs a code and a source"),
        ("training__1.0__toy", TOY.replace("source: the benchmark", ""), "a code and a source"),
        ("training__1.0__toy", TOY + "  rate: {code: T, reaches: {colour: red}}", "cannot ask"),
        ("training__1.0__toy", TOY + "  rate: {code: T, tensors: none}", "no tensors of 'none'"),
        ("training__1.0__toy", TOY + "  rate: {code: T, basis: mine}", "mine"),
        ("training__1.0__toy", TOY + "  rate: [", "toy.yaml"),
        ("training__1.0__toy", "- a list", "not a mapping"),
        ("training__1.0__round", ROUND + "colour: red", "unknown colour"),
    ],
)
def test_what_is_refused(write: Write, file: str, text: str, words: str) -> None:
    write(**{file: text})
    with pytest.raises((RulebookError, ValueError), match=words):
        load_benchmark("training", "1.0", "toy")


@pytest.mark.parametrize(("usage", "name"), [("training", "9.9"), ("cooking", "1.0")])
def test_unknown_round_or_usage(usage: str, name: str) -> None:
    with pytest.raises(UserError, match="the rulebook has no round"):
        load_round(usage, name)


def test_what_a_rule_says(write: Write) -> None:
    toy = load_benchmark("training", "1.0", "toy")
    assert toy is not None
    batch, (first, second) = toy.sections["closed"]["batch"][0], toy.sections["closed"]["rate"]
    assert (batch.code, batch.occurs, batch.source) == ("TOY101", "once", "the benchmark")
    assert (first.constraints, second.constraints) == ({"above": 0}, {"below": 1})
    assert (first.basis, second.basis) == ("both", "rules")
    assert toy.sections["open"]["batch"][0].basis == "official"
    assert toy.sections["closed"]["eval_accuracy"][0].reaches == {"at_least": 0.5}
    assert load_round("training", "1.0").sections["closed"]["submission_benchmark"][
        0
    ].constraints == {"one_of": ("toy", "plain")}


def test_a_round_says_only_what_changed(write: Write) -> None:
    write(**{"training__1.1__toy": "target: {at_least: 0.6}\nclosed: {batch: null, rate: []}"})
    toy = load_benchmark("training", "1.1", "toy")
    assert toy is not None
    assert toy.runs.required == 5
    assert toy.target == {"at_least": 0.6}
    assert toy.sections["closed"].keys() == {"rate", "eval_accuracy"}
    assert toy.sections["closed"]["rate"] == ()
    assert toy.sections["closed"]["eval_accuracy"][0].reaches == {"at_least": 0.6}
    assert load_round("training", "1.1").benchmarks == ("toy", "plain")
    assert rounds("training") == ("1.0", "1.1")


def test_a_benchmark_with_a_new_name(write: Write) -> None:
    write(**{"training__1.1__plain": "like: toy\nclosed: {rate: null}"})
    plain, toy = (load_benchmark("training", "1.1", name) for name in ("plain", "toy"))
    assert plain is not None
    assert toy is not None
    assert plain.target == toy.target
    assert plain.sections["closed"].keys() == toy.sections["closed"].keys() - {"rate"}


def test_a_benchmark_without_rules(write: Write) -> None:
    assert load_benchmark("training", "1.0", "plain") is None
    assert load_benchmark("training", "1.0", "unheard of") is None
    table = rule_table("training", "1.0", "closed", "plain", frozenset())
    assert all(key.startswith("submission_") for key in table.keys)


def test_a_formula_that_is_none(write: Write) -> None:
    write(**{"training__1.0__toy": TOY.replace("occurs: once", "formula: value >= 2 * other")})
    with pytest.raises(RulebookError, match=r"toy.yaml: .*found no matching overload"):
        rule_table("training", "1.0", "closed", "toy", frozenset())


def test_layers_lie_over_one_another(write: Write) -> None:
    write(**{"training__1.0__toy": TOY + "  run_stop: {code: TOY202}"})
    codes = [
        rule_table("training", "1.0", division, "toy", frozenset())
        .keys["run_stop"]
        .rules[0]
        .rule.code
        for division in ("closed", "open")
    ]
    assert codes == ["RUN109", "TOY202"]


def test_tensors_expand_sorted(write: Write) -> None:
    assert tensors("toy") == ("a", "b1", "b2")
