"""The assignments of reviewers, computed by hand and by the tool."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from mlperf_pkg.commands.review.round import Round
from mlperf_pkg.commands.review.submitters import Assignment, assignments, section
from mlperf_pkg.errors import UserError
from tests.helpers.reviews import a_round, a_set, a_system, of_sizes

SEED = 3  # Rhys comes before Shaw

# Nineteen submitters, of whom R and S submit together: (results below 512 accelerators, above, at).
NINETEEN = {
    "Ames": (21, 0, 0),
    "Bell": (18, 3, 2048),
    "Cole": (15, 0, 0),
    "Dorn": (12, 0, 0),
    "Egan": (11, 1, 512),
    "Fenn": (10, 0, 0),
    "Gale": (9, 0, 0),
    "Hale": (8, 0, 0),
    "Ives": (7, 0, 0),
    "Jory": (6, 0, 0),
    "Kemp": (5, 0, 0),
    "Lowe": (4, 0, 0),
    "Marr": (3, 0, 0),
    "Nash": (2, 0, 0),
    "Orme": (1, 0, 0),
    "Pike": (0, 5, 8192),
    "Quin": (0, 1, 4096),
    "Rhys+Shaw": (16, 0, 0),
}

# By hand. Rank by results: Ames 21, Bell 18, Rhys and Shaw 16 each, Cole 15, Dorn 12, Egan 11,
# Fenn 10, Gale 9, Hale 8, Ives 7, Jory 6, Kemp 5, Lowe 4, Marr 3, Nash 2, Orme 1: seventeen, so the
# last three review each other. Rhys and Shaw, ranks 3 and 4 in either order, are partners, so the
# first of them meets Cole and the second Dorn. By scale: Pike 8192, Quin 4096, Bell 2048, Egan 512.
BY_HAND = {
    "results": [
        {"Ames", "Bell"},
        {"Rhys", "Cole"},
        {"Shaw", "Dorn"},
        {"Egan", "Fenn"},
        {"Gale", "Hale"},
        {"Ives", "Jory"},
        {"Kemp", "Lowe"},
        {"Marr", "Nash"},
        {"Marr", "Orme"},
        {"Nash", "Orme"},
    ],
    "scale": [{"Pike", "Quin"}, {"Bell", "Egan"}],
}


def nineteen(**choices: Any) -> Round:
    rows, systems = [], []
    for name, (small, large, scale) in NINETEEN.items():
        rows += [a_set(name, f"b{number}") for number in range(small)]
        rows += [a_set(name, f"b{number}", "pod") for number in range(large)]
        systems += [a_system(name, accelerators=8), a_system(name, "pod", accelerators=scale)]
    return a_round(NINETEEN, rows, systems, **choices)


def pairs(made: tuple[Assignment, ...], by: str) -> list[set[str | None]]:
    both = [frozenset((item.reviewer, item.submitter)) for item in made if item.by == by]
    assert all(both.count(pair) == 2 for pair in both), "each reviews the other"
    return [set(pair) for pair in dict.fromkeys(both)]


def test_nineteen_by_hand_and_by_tool() -> None:
    made = assignments(nineteen(seed=SEED))
    assert {by: pairs(made, by) for by in BY_HAND} == BY_HAND
    whys = {item.submitter: item.why for item in made}
    assert whys["Ames"] == "ranks 1 and 2 by number of results (21 and 18)"
    assert whys["Cole"] == (
        "ranks 3 and 5 by number of results (16 and 15), as partners may not review"
        f" each other; ties broken by seed {SEED}"
    )
    assert (
        whys["Orme"]
        == "ranks 15, 16 and 17 by number of results (3, 2 and 1), the last three of an odd number"
    )
    assert whys["Pike"] == "ranks 1 and 2 by scale (8192 and 4096)"
    folders = {item.submitter: item.folders for item in made}
    assert folders["Rhys"] == folders["Shaw"] == ("Rhys+Shaw",)


def summary(reviewed: Round) -> list[str]:
    return list(section(reviewed).summary)


@pytest.mark.parametrize(
    ("results", "choices", "lines"),
    [
        ({"A": 1}, {}, ["A by volunteers or the chairs"]),
        ({"A": 1, "B": 2}, {}, ["B and A"]),
        ({"A": 1, "B": 2, "C": 3}, {}, ["C, B and A"]),
        ({"A": 1, "B": 2, "C": 3}, {"excluded": ("B",)}, ["C and A"]),
        ({"A": 1, "B": 2, "C": 3, "D": 4}, {"joint": ("C+D",)}, ["D and B; C and A"]),
        ({"A": 0, "B": 2, "C": 3}, {}, ["C and B"]),
        ({"a_b": 1, "A B": 2, "C": 2}, {"one_spelling": True}, ["A B and C"]),
        (
            {"Azure_ACME": 5, "B": 9, "C": 4},
            {"joint": ("Azure_ACME=Azure+ACME",)},
            ["B and Azure; ACME and C"],
        ),
        (
            {"NVIDIA": 5, "B": 3, "IBM+Nvidia": 4},
            {},
            ["NVIDIA, IBM and B (NVIDIA and IBM not each other)"],
        ),
        ({"A+": 3, "+": 2, "B++B": 1}, {}, ["A+, + and B++B"]),
        ({"A+B": 3, "C": 2}, {"joint": ("A+B=C+D",)}, ["C and D by {0}"]),
        ({"A": 1, "B": 1}, {"joint": ("A+B",)}, ["A and B by {0}"]),
        (
            {"A+B+C+D+E": 5},
            {"joint": ("A+B+C+D+E",)},
            ["A, B, C, D and E by {0}"],
        ),
        ({"A+B+C+D+E": 5, "F": 1}, {"joint": ("A+B+C+D+E",)}, ["D and F; A, B, C and E by {0}"]),
    ],
)
def test_few(results: dict[str, int], choices: dict[str, Any], lines: list[str]) -> None:
    chairs = "volunteers or the chairs"
    expected = [f"by number of results: {line.format(chairs)}" for line in lines]
    assert list(section(of_sizes(results, **choices)).summary) == expected


def test_no_result_at_all() -> None:
    made = section(of_sizes({"A": 0}))
    assert made.summary == ("by number of results: -",)
    assert "Without results and therefore without assignments: A." in made.text


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ({"joint": ("ACME",)}, "--joint ACME: fewer than two companies; expected A+B"),
        ({"joint": ("ACME+",)}, "fewer than two companies"),
        ({"joint": ("ACME=",)}, "fewer than two companies"),
        ({"joint": ("ACME+Btea",)}, "'Btea' is not a submitter of the round; did you mean Beta?"),
        ({"joint": ("X=A+B",)}, "'X' is not a submitter of the round; expected one of ACME, Beta"),
        ({"excluded": ("ACNE",)}, "--exclude: 'ACNE' is not a submitter of the round; did you"),
    ],
)
def test_unknown_names(choices: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError) as error:
        assignments(of_sizes({"ACME": 1, "Beta": 1}, **choices))
    assert message in str(error.value)


def test_the_seed_decides_ties_alone() -> None:
    tied = dict.fromkeys("ABCDEFGH", 3)
    orders = {seed: section(of_sizes(tied, seed=seed)).summary for seed in range(5)}
    assert len({*orders.values()}) > 1
    assert section(of_sizes(tied, seed=4)).summary == orders[4]
    different = {name: number for number, name in enumerate("ABCDEFGH", 1)}
    assert len({section(of_sizes(different, seed=seed)).summary for seed in range(5)}) == 1


def test_hpc_has_no_rank_by_scale() -> None:
    training = nineteen()
    hpc = replace(
        training,
        checked=replace(training.checked, report=replace(training.report, usage="hpc")),
    )
    assert {item.by for item in assignments(hpc)} == {"results"}


def test_a_large_submission_alone() -> None:
    rows = [a_set("A"), a_set("A", "resnet"), a_set("B"), a_set("B", name="pod")]
    systems = [a_system("A"), a_system("B"), a_system("B", "pod", accelerators=512)]
    made = section(a_round("AB", rows, systems))
    assert made.summary == (
        "by number of results: A and B",
        "by scale: B by volunteers or the chairs",
    )
    last = made.tables[0].rows[-1]
    assert last == (
        "volunteers or the chairs",
        "B",
        "B",
        "scale",
        "the only one ranked by scale",
    )


NAMES = [chr(ord("A") + number) for number in range(12)]


@given(
    st.dictionaries(st.sampled_from(NAMES), st.integers(1, 4), min_size=1),
    st.lists(st.lists(st.sampled_from(NAMES), min_size=2, max_size=3, unique=True), max_size=3),
    st.integers(0, 3),
)
def test_any_round(results: dict[str, int], joints: list[list[str]], seed: int) -> None:
    joint = tuple("+".join(names) for names in joints if {*names} <= results.keys())
    reviewed = of_sizes(results, joint=joint, seed=seed)
    made = assignments(reviewed)
    partners = {
        frozenset((a, b)) for names in joint for a in names.split("+") for b in names.split("+")
    }
    assert {item.submitter for item in made} == results.keys()
    assert all(frozenset((item.reviewer or "", item.submitter)) not in partners for item in made)
    assert all(item.reviewer != item.submitter for item in made)
    met = {(item.reviewer, item.submitter) for item in made}
    assert len(met) == len(made)
    assert {(two, one) for one, two in met if one} == {pair for pair in met if pair[0]}
    times = [sum(item.submitter == name for item in made) for name in results]
    assert {*times} <= {1, 2}
    assert times.count(2) <= 3
    assert assignments(reviewed) == made
