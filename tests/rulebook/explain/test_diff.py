"""What changes from one round to another."""

from __future__ import annotations

from typing import Any

import pytest

from mlperf_pkg.errors import UserError
from mlperf_pkg.rulebook.explain.diff import Change, compare


def changes(*arguments: Any, **more: Any) -> dict[tuple[str, str], Change]:
    return {(each.where, each.key): each for each in compare(*arguments, **more).changes}


@pytest.mark.parametrize("usage", ["training", "hpc"])
def test_a_round_does_not_differ_from_itself(usage: str) -> None:
    found = compare(usage, "2.0", "2.0")
    assert (found.gone, found.added, found.renamed, found.changes) == ((), (), (), ())
    assert found.unchanged == found.old.benchmarks


def test_benchmarks_gone_new_and_renamed() -> None:
    found = compare("training", "4.1", "5.0")
    assert found.gone == ("gpt3",)
    assert [each.name for each in found.added] == ["llama31_405b"]
    assert found.renamed == (("gnn", "rgat"), ("ssd", "retinanet"))
    assert "rgat" in found.unchanged


# rounds, where, key: what was asked, what is
CHANGES: list[tuple[str, str, str, str, tuple[str, ...], tuple[str, ...]]] = [
    ("0.7", "1.0", "Closed", "gradient_accumulation_steps", (), ("once, above 0",)),
    ("2.0", "2.1", "Closed bert", "opt_epsilon", ("once",), ()),
    ("2.0", "2.1", "Closed bert", "opt_lamb_epsilon", (), ("once [official]",)),
    (
        "1.1",
        "2.0",
        "ssd",
        "target",
        ("at least 0.23 and below 1.0",),
        ("at least 0.34 and below 1.0",),
    ),
    ("1.1", "2.0", "Closed ssd", "opt_weight_decay", ("once",), ("once, 0.0",)),
    (
        "6.0",
        "6.1",
        "every run",
        "micro_batch_size",
        ("where logged, a whole number",),
        ("once, a whole number and at least 1",),
    ),
    (
        "6.0",
        "6.1",
        "Closed flux1",
        "evaluation_frequency",
        ("once, 262144",),
        ("once, value == math.ceil(262144.0 / global_batch_size) * global_batch_size",),
    ),
]


@pytest.mark.parametrize("row", CHANGES, ids=lambda row: "-".join(row[:4]))
def test_changes(row: tuple[str, str, str, str, tuple[str, ...], tuple[str, ...]]) -> None:
    old, new, where, key, was, now = row
    forth = changes("training", old, new)[where, key]
    assert (forth.old, forth.new) == (was, now)
    back = changes("training", new, old)[where, key]
    assert (back.old, back.new) == (now, was)
    assert set(back.codes) == set(forth.codes)


def test_one_number_is_spelled_in_two_ways() -> None:
    found = changes("training", "1.1", "2.0")
    assert ("Closed ssd", "opt_learning_rate_warmup_factor") not in found


def test_another_list_of_benchmarks_is_no_change_of_a_key() -> None:
    assert ("Closed", "submission_benchmark") not in changes("training", "5.1", "6.0")
    assert ("Open", "submission_benchmark") in changes("training", "2.1", "3.0")


def test_one_benchmark_and_division() -> None:
    found = compare("training", "1.1", "2.0", "ssd", "open")
    assert found.unchanged == ()
    assert {each.where for each in found.changes} == {"Open", "ssd"}
    assert compare("training", "4.1", "5.0", "rgat").renamed == (("gnn", "rgat"),)
    assert compare("training", "4.1", "5.0", "gpt3").gone == ("gpt3",)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("training", "2.0", "9.9"), "no round '9.9'"),
        (("training", "2.0", "2.1", "gpt3"), "neither round 2.0 nor 2.1 has a benchmark 'gpt3'"),
    ],
)
def test_what_the_rulebook_does_not_have(arguments: tuple[str, ...], message: str) -> None:
    with pytest.raises(UserError, match=message):
        compare(*arguments)
