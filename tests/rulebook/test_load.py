"""Reading the rulebook: what it refuses, and how a round extends another."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlperf_pkg.errors import RulebookError, UserError
from mlperf_pkg.infra.resources import rules_read_from
from mlperf_pkg.log.record import Record
from mlperf_pkg.rulebook.documents import rounds
from mlperf_pkg.rulebook.load import expand_braces, load_benchmark, load_round
from mlperf_pkg.rulebook.model import REQUIRED_OF_BENCHMARKS, REQUIRED_OF_ROUNDS
from mlperf_pkg.rulebook.table import rule_table
from mlperf_pkg.rulebook.validate import metaschema
from tests.helpers.own_rules import written

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
Write = Callable[[Mapping[str, str]], None]


@pytest.fixture
def write(tmp_path: Path) -> Iterator[Write]:
    """Rules of one's own: two rounds and a benchmark, and then what a test writes."""
    rounds_and_toy = {"toys/1.0/round": ROUND, "toys/1.1/round": NEXT, "toys/1.0/toy": TOY}
    with ExitStack() as contexts:

        def write_files(changes: Mapping[str, str]) -> None:
            """Write files, and read the rules from all of them."""
            written(tmp_path, {f"{name}.yaml": text for name, text in changes.items()})
            contexts.enter_context(rules_read_from(tmp_path))

        write_files(rounds_and_toy)
        yield write_files


def test_what_is_nested_too_deeply_is_refused(write: Write) -> None:
    write({"toys/1.0/toy": TOY + f"  rate: {'[' * 2000}{']' * 2000}"})
    with pytest.raises(RulebookError, match="nest"):
        load_benchmark("toys", "1.0", "toy")


@pytest.mark.parametrize(("usage", "name"), [("training", "9.9"), ("cooking", "1.0")])
def test_unknown_round_or_usage(usage: str, name: str) -> None:
    with pytest.raises(UserError, match="there is no round"):
        load_round(usage, name)


def test_what_a_rule_says(write: Write) -> None:
    toy = load_benchmark("toys", "1.0", "toy")
    assert toy is not None
    batch, (first, second) = toy.sections["closed"]["batch"][0], toy.sections["closed"]["rate"]
    assert (batch.code, batch.occurs, batch.source) == ("TOY101", "once", "the benchmark")
    assert (first.constraints, second.constraints) == ({"above": 0}, {"below": 1})
    assert (first.basis, second.basis) == ("both", "rules")
    assert toy.sections["open"]["batch"][0].basis == "official"
    assert toy.sections["closed"]["eval_accuracy"][0].reaches == {"at_least": 0.5}
    assert load_round("toys", "1.0").sections["closed"]["submission_benchmark"][0].constraints == {
        "one_of": ("toy", "plain")
    }


def test_the_fields_required_after_inheritance_are_those_of_the_metaschema() -> None:
    definitions = metaschema()["$defs"]
    assert list(REQUIRED_OF_ROUNDS) == definitions["whole_round"]["required"]
    assert list(REQUIRED_OF_BENCHMARKS) == definitions["whole_benchmark"]["required"]


def test_a_round_says_only_what_changed(write: Write) -> None:
    write({"toys/1.1/toy": "target: {at_least: 0.6}\nclosed: {batch: null, rate: []}"})
    toy = load_benchmark("toys", "1.1", "toy")
    assert toy is not None
    assert toy.runs.required == 5
    assert toy.target == {"at_least": 0.6}
    assert toy.sections["closed"].keys() == {"rate", "eval_accuracy"}
    assert toy.sections["closed"]["rate"] == ()
    assert toy.sections["closed"]["eval_accuracy"][0].reaches == {"at_least": 0.6}
    assert load_round("toys", "1.1").benchmarks == ("toy", "plain")
    assert rounds("toys") == ("1.0", "1.1")


def test_a_benchmark_with_a_new_name(write: Write) -> None:
    write({"toys/1.1/plain": "like: toy\nclosed: {rate: null}"})
    plain, toy = (load_benchmark("toys", "1.1", name) for name in ("plain", "toy"))
    assert plain is not None
    assert toy is not None
    assert plain.target == toy.target
    assert plain.sections["closed"].keys() == toy.sections["closed"].keys() - {"rate"}


def test_a_benchmark_without_rules(write: Write) -> None:
    assert load_benchmark("toys", "1.0", "plain") is None
    assert load_benchmark("toys", "1.0", "unheard of") is None
    table = rule_table("toys", "1.0", "closed", "plain", frozenset())
    assert all(key.startswith("submission_") for key in table.keys)


def test_layers_lie_over_one_another(write: Write) -> None:
    write({"toys/1.0/toy": TOY + "  run_stop: {code: TOY202}"})
    codes = [
        rule_table("toys", "1.0", division, "toy", frozenset()).keys["run_stop"].rules[0].rule.code
        for division in ("closed", "open")
    ]
    assert codes == ["RUN109", "TOY202"]


def test_an_integer_of_any_size(write: Write) -> None:
    write({"toys/1.0/toy": TOY.replace("above: 0", f"above: {10**30}")})
    rule, _ = rule_table("toys", "1.0", "closed", "toy", frozenset()).keys["rate"].rules
    records = [Record("rate", 0, value, {}) for value in (10**30, 10**30 + 1)]
    assert [rule.checks[0].test(record, {}) for record in records] == [False, True]


# ---- patterns and what they stand for --------------------------------------------------------


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("", [""]),
        ("x{}y", ["xy"]),
        ("{attention/,}output", ["attention/output", "output"]),
        ("layer_{0..2}", ["layer_0", "layer_1", "layer_2"]),
        ("{a{1..2},b}", ["a1", "a2", "b"]),
        ("{a,b{c,d{e,}}}!", ["a!", "bc!", "bde!", "bd!"]),
        ("{0..1,x}", ["0..1", "x"]),
        ("{{0..1},x}", ["0", "1", "x"]),
    ],
)
def test_expansion(pattern: str, expected: list[str]) -> None:
    assert expand_braces(pattern) == expected


@pytest.mark.parametrize("pattern", ["{", "}", "{a", "a}", "{a,{b}", "{a}}", "}{", "{0..3"])
def test_unbalanced_braces_are_refused(pattern: str) -> None:
    with pytest.raises(ValueError, match="unbalanced"):
        expand_braces(pattern)


def test_descending_ranges_are_refused() -> None:
    with pytest.raises(ValueError, match=r"3\.\.1 in 'x\{3\.\.1\}' ends before it starts"):
        expand_braces("x{3..1}")


_words = st.text("abc/_", max_size=5)


@given(st.lists(st.lists(_words, min_size=1, max_size=3), max_size=4))
def test_product_of_the_alternatives(groups: list[list[str]]) -> None:
    pattern = "".join("{" + ",".join(group) + "}" for group in groups)
    expected = [""]
    for group in groups:
        expected = [before + word for before in expected for word in group]
    assert expand_braces(pattern) == expected
