"""What changes from one round to another."""

from typing import Any

from mlperf_pkg.rulebook.explain import Change, compare


def changes(*arguments: Any, **more: Any) -> dict[tuple[str, str], Change]:
    return {(item.where, item.key): item for item in compare(*arguments, **more).changes}


# rounds, where, key: what was asked, what is
CHANGES: list[tuple[str, str, str, str, tuple[str, ...], tuple[str, ...]]] = [
    ("0.7", "1.0", "Closed", "gradient_accumulation_steps", (), ("once, above 0",)),
    ("2.0", "2.1", "Closed bert", "opt_epsilon", ("once",), ()),
    ("2.0", "2.1", "Closed bert", "opt_lamb_epsilon", (), ("once [official]",)),
    ("1.1", "2.0", "ssd", "target", ("at least 0.23 and below 1.0",), ("at least 0.34 and below 1.0",)),
    ("1.1", "2.0", "Closed ssd", "opt_weight_decay", ("once",), ("once, 0.0",)),
    ("6.0", "6.1", "every run", "micro_batch_size",
     ("where logged, a whole number [official]",), ("once, a whole number and at least 1 [official]",)),
    ("6.0", "6.1", "Closed flux1", "evaluation_frequency",
     ("once, 262,144 [official]", "where logged, 262,144 or 262,144 rounded up to a multiple of global_batch_size [rules]"),
     ("once, 262,144 rounded up to a multiple of global_batch_size",)),
]  # fmt: skip


def test_changes() -> None:
    for row in CHANGES:
        old, new, where, key, was, now = row
        forth = changes("training", old, new)[where, key]
        assert (forth.old, forth.new) == (was, now)
        back = changes("training", new, old)[where, key]
        assert (back.old, back.new) == (now, was)
        assert set(back.codes) == set(forth.codes)


def test_one_number_is_spelled_in_two_ways() -> None:
    change = changes("training", "1.1", "2.0")["Closed ssd", "opt_learning_rate_warmup_factor"]
    assert (change.codes, change.new) == (("SSD128",), ())


def test_another_list_of_benchmarks_is_not_a_change() -> None:
    assert ("Closed", "submission_benchmark") not in changes("training", "5.1", "6.0")
    assert ("Open", "submission_benchmark") in changes("training", "2.1", "3.0")


def test_benchmarks_gone_new_and_renamed_and_one_benchmark_and_division() -> None:
    comparison = compare("training", "4.1", "5.0")
    assert comparison.gone == ["gpt3"]
    assert comparison.renamed == {"gnn": "rgat", "ssd": "retinanet"}
    assert "rgat" in comparison.unchanged
    comparison = compare("training", "1.1", "2.0", "ssd", "open")
    assert comparison.unchanged == []
    assert {item.where for item in comparison.changes} == {"Open", "ssd"}
    assert compare("training", "4.1", "5.0", "rgat").renamed == {"gnn": "rgat"}
    assert compare("training", "4.1", "5.0", "gpt3").gone == ["gpt3"]
