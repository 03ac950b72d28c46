"""Hyperparameters unlike those of all others, as tables of submitters and values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from mlperf_pkg.commands.review.hyperparameters import Entry, Reference, outliers

LR = "opt_base_learning_rate"


def entry(submitter: str, size: float, value: object, key: str = LR, name: str = "dgx") -> Entry:
    return Entry(f"{submitter}/{name}", submitter, name, size, {key: {str(value): 5}})


def reference(
    points: Mapping[float, object], key: str = LR, derived: frozenset[str] = frozenset()
) -> Reference:
    of_points = {size: {key: str(value)} for size, value in points.items()}
    return Reference(of_points, {}, {}, derived)


def unlike(
    entries: Sequence[Entry],
    points: Mapping[float, object],
    key: str = LR,
    derived: frozenset[str] = frozenset(),
) -> dict[str, str]:
    """The reasons for the outliers, by submitter."""
    made = outliers(entries, reference(points, key, derived), {})
    return {outlier.entry.submitter: outlier.why for outlier in made}


BOTH = "both other submitters at this batch size have 0.4"
TWICE = "differs by a factor of 2 from the reference, which all others have"


@pytest.mark.parametrize(
    ("values", "points", "expected"),
    [
        ({"A": (8, 0.4), "B": (8, 0.4), "C": (8, 0.4)}, {}, {}),
        ({"A": (8, 0.4), "B": (8, 0.4), "C": (8, 0.5)}, {}, {"C": BOTH}),
        ({"A": (8, 0.4), "B": (8, 0.4), "C": (16, 0.5)}, {}, {}),
        ({"A": (8, 0.4), "B": (8, 0.5)}, {}, {}),
        ({"A": (8, 0.4), "B": (8, 0.5), "C": (8, 0.6)}, {}, {}),
        # what the reference has is not an outlier
        ({"A": (8, 0.4), "B": (8, 0.4), "C": (8, 0.5)}, {8: 0.5}, {}),
        ({"A": (8, 0.4), "B": (8, 0.4), "C": (8, 0.5)}, {4: 0.3, 16: 0.6}, {}),
        # far from the reference, and the others are not
        ({"A": (8, 0.4), "B": (16, 0.8), "C": (32, 3.2)}, {8: 0.4, 16: 0.8, 32: 1.6}, {"C": TWICE}),
        ({"A": (8, 0.4), "B": (16, 0.8), "C": (32, 0.8)}, {8: 0.4, 16: 0.8, 32: 1.6}, {"C": TWICE}),
        ({"A": (8, 0.8), "B": (16, 0.8), "C": (32, 3.2)}, {8: 0.4, 16: 0.8, 32: 1.6}, {}),
        ({"A": (8, 0.4), "B": (12, 0.9)}, {8: 0.4, 16: 0.8}, {}),
        ({"A": (8, 0.4), "B": (12, 1.6)}, {8: 0.4, 16: 0.8}, {"B": TWICE}),
        ({"A": (8, 4)}, {8: 0.4}, {"A": "differs by a factor of 10 from the reference"}),
        ({"A": (8, 3.9)}, {8: 0.4}, {}),
        # outside the range of the reference
        ({"A": (8, 0.4), "B": (32, 1.2)}, {8: 0.4, 16: 0.8}, {}),
        ({"A": (8, 0.4), "B": (32, 1.2)}, {8: 0.4, 16: 0.4}, {"B": TWICE.replace("2", "3")}),
        # far from all others where there is no reference
        (
            {"A": (8, 0.4), "B": (16, 0.5), "C": (32, 5)},
            {},
            {"C": "2 other submitters have 0.4 to 0.5"},
        ),
        ({"A": (8, 0.4), "C": (32, 5)}, {}, {}),
        ({"A": (8, 0.4), "B": (16, 0.5), "C": (32, 4.9)}, {}, {}),
        # not numbers, and numbers without a ratio
        ({"A": (8, '"LAMB"'), "B": (8, '"lamb"'), "C": (8, '"lamb"')}, {}, {}),
        ({"A": (8, "[1, 2]"), "B": (16, "[1, 2]"), "C": (32, "[9]")}, {8: "[1, 2]"}, {}),
        ({"A": (8, 0), "B": (16, 0.5), "C": (32, 5)}, {}, {}),
    ],
)
def test_outliers(
    values: Mapping[str, tuple[float, object]],
    points: Mapping[float, object],
    expected: dict[str, str],
) -> None:
    assert unlike([entry(name, *pair) for name, pair in values.items()], points) == expected


def test_sets_of_one_submitter_do_not_count_as_many() -> None:
    entries = [entry("A", 8, 0.4, name=f"box{number}") for number in range(5)]
    assert unlike([*entries, entry("B", 8, 0.5)], {}) == {}
    assert unlike([*entries, entry("B", 8, 0.5), entry("C", 8, 0.4)], {}) == {"B": BOTH}


@pytest.mark.parametrize(
    "key", ["gradient_accumulation_steps", "model_bn_span", "global_batch_size"]
)
def test_values_that_follow_from_the_scale_are_not_compared(key: str) -> None:
    entries = [entry(name, 8, value, key) for name, value in (("A", 1), ("B", 1), ("C", 64))]
    assert unlike(entries, {8: 1}, key) == {}


def test_values_that_follow_from_others_are_not_compared() -> None:
    entries = [entry(name, 8, value) for name, value in (("A", 1), ("B", 1), ("C", 64))]
    assert unlike(entries, {}, derived=frozenset({LR})) == {}


def test_steps_are_compared_with_other_steps_and_not_with_the_reference() -> None:
    key = "opt_learning_rate_decay_steps"
    assert unlike([entry("A", 8, 37, key)], {8: 14523}, key) == {}
    entries = [entry(name, 8, value, key) for name, value in (("A", 37), ("B", 37), ("C", 38))]
    assert unlike(entries, {8: 14523}, key) == {"C": BOTH.replace("0.4", "37")}


def test_lengths_without_a_reference_are_compared_at_one_batch_size_only() -> None:
    key = "opt_learning_rate_decay_steps"
    sizes = {"A": 8, "B": 16, "C": 32}
    entries = [
        entry(name, size, value, key)
        for (name, size), value in zip(sizes.items(), (1, 1, 99), strict=True)
    ]
    assert unlike(entries, {}, key) == {}


def test_values_unlike_all_published_ones() -> None:
    only = entry("A", 8, 0.7)
    (outlier,) = outliers([only], reference({}), {("A/dgx", LR): "all published sets have 0.1"})
    assert outlier.why == "all published sets have 0.1"
