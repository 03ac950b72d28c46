"""The submitters of a round, and the assignments of reviewers by hand and by the tool."""

from collections.abc import Iterator
from itertools import combinations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from mlperf_pkg.commands.review.round import ReviewedRound
from mlperf_pkg.commands.review.submitters import (
    Assignment,
    ReviewGroup,
    assignments,
    assignments_section,
    groups,
    is_covered,
    reviews,
    submitters_section,
)
from mlperf_pkg.errors import UserError
from mlperf_pkg.findings import Severity
from tests.helpers.reports import FAIL, finding
from tests.helpers.reviews import a_round, a_set, a_system, cells, of_sizes

# Eleven submitters, of whom R and S submit together: (results below 512 accelerators, above, at).
ELEVEN = {
    "Ames": (21, 0, 0),
    "Bell": (18, 3, 2048),
    "Cole": (15, 0, 0),
    "Dorn": (12, 0, 0),
    "Egan": (11, 1, 512),
    "Marr": (3, 0, 0),
    "Nash": (2, 0, 0),
    "Pike": (0, 5, 8192),
    "Quin": (0, 1, 4096),
    "Rhys+Shaw": (16, 0, 0),
}

# By hand. Rank by results: Ames 21, Bell 18, Rhys and Shaw 16 each, Cole 15, Dorn 12, Egan 11,
# Marr 3, Nash 2: nine, so the last three review each other. Rhys and Shaw, ranks 3 and 4 in this
# order by seed 3, are partners, so the first of them meets Cole and the second Dorn. By scale: Pike
# 8192, Quin 4096, Bell 2048, Egan 512.
BY_HAND = {
    "results": "Ames Bell, Rhys Cole, Shaw Dorn, Egan Marr, Egan Nash, Marr Nash",
    "scale": "Pike Quin, Bell Egan",
}


def eleven(**choices: Any) -> ReviewedRound:
    rows, systems = [], []
    for name, (small, large, scale) in ELEVEN.items():
        rows += [a_set(name, f"b{number}") for number in range(small)]
        rows += [a_set(name, f"b{number}", "pod") for number in range(large)]
        systems += [a_system(name, accelerators=8), a_system(name, "pod", accelerators=scale)]
    return a_round(ELEVEN, rows, systems, **choices)


def pairs(made: tuple[Assignment, ...], by: str) -> list[set[str | None]]:
    both = [frozenset((item.reviewer, item.submitter)) for item in made if item.by == by]
    assert all(both.count(pair) == 2 for pair in both), "each reviews the other"
    return [set(pair) for pair in dict.fromkeys(both)]


def test_eleven_by_hand_and_by_tool() -> None:
    reviewed = eleven(seed=3)
    made = assignments(reviewed)
    assert [
        (by, by_hand)
        for by, by_hand in BY_HAND.items()
        if pairs(made, by) != [{*pair.split()} for pair in by_hand.split(",")]
    ] == []
    whys = {item.submitter: item.why for item in made}
    assert whys["Ames"] == "ranks 1 and 2 by number of results (21 and 18)"
    assert whys["Cole"] == (
        "ranks 3 and 5 by number of results (16 and 15), as partners may not review"
        " each other; ties broken by seed 3"
    )
    last = (
        "ranks 7, 8 and 9 by number of results (11, 3 and 2); the last three review each"
        " other, as the number of submitters is odd"
    )
    assert whys["Nash"] == last
    assert whys["Pike"] == "ranks 1 and 2 by scale (8192 and 4096)"
    folders = {item.submitter: item.folders for item in made}
    assert folders["Rhys"] == folders["Shaw"] == ("Rhys+Shaw",)
    report = replace(reviewed.report, usage="hpc")  # which has no rank by scale
    hpc = replace(reviewed, checked=replace(reviewed.checked, report=report))
    assert {item.by for item in assignments(hpc)} == {"results"}


def paired(names: str) -> str:
    return f"paired by number of results: {names}"


def alone(names: str, by: str = "number of results") -> str:
    whom = "them" if " and " in names else "it"
    return (
        f"no submitter with a similar {by} is left to review {names}; volunteers or the chairs"
        f" review {whom}"
    )


FEW: list[tuple[dict[str, int], Any, tuple[str, ...]]] = [
    ({"A": 1}, (), (alone("A"),)),
    ({"A": 1, "B": 2, "C": 3}, (), (paired("C, B and A"),)),
    ({"A": 1, "B": 2, "C": 3, "D": 4}, ("C+D",), (paired("D and B; C and A"),)),
    ({"a_b": 1, "A B": 2, "C": 2}, (), (paired("A B and C"),)),
    ({"A_B": 3, "A": 1, "B": 1}, (), (alone("A and B"),)),
    ({"A_B": 3, "A": 1}, (), (paired("A_B and A"),)),
    (
        {"Azure_ACME": 5, "B": 9, "C": 4},
        ("Azure_ACME=Azure+ACME",),
        (paired("B and Azure; ACME and C"),),
    ),
    (
        {"ACME": 5, "B": 3, "IBM+Acme": 4},
        (),
        (paired("ACME, IBM and B (but ACME and IBM do not review each other)"),),
    ),
    ({"A+": 3, "+": 2, "B++B": 1}, (), (paired("A+, + and B++B"),)),
    ({"A+B": 3, "C": 2}, ("A+B=C+D",), (alone("C and D"),)),
    (
        {"A+B+C+D+E": 5, "F": 1},
        ("A+B+C+D+E",),
        (paired("D and F"), alone("A, B, C and E")),
    ),
]


@pytest.mark.parametrize(("results", "joint", "lines"), FEW)
def test_few(results: dict[str, int], joint: tuple[str, ...], lines: tuple[str, ...]) -> None:
    made = assignments_section(of_sizes(results, joint=joint))
    assert made.summary == lines


def test_excluded_and_without_results() -> None:
    made = assignments_section(of_sizes({"A": 1, "B": 2, "C": 0}, excluded=("B",)))
    assert made.summary == (alone("A"),)
    assert made.text[-3:] == (
        "Excluded from the assignments: B.",
        "Without results and therefore without assignments: C.",
        "Ties are broken by seed 0.",
    )


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ({"joint": ("ACME",)}, "--joint ACME: fewer than two companies; expected A+B"),
        ({"joint": ("ACME=",)}, "fewer than two companies"),
        ({"joint": ("X=A+B",)}, "'X' is not a submitter of the round; expected one of ACME, Beta"),
    ],
)
def test_unknown_names(choices: dict[str, tuple[str]], message: str) -> None:
    with pytest.raises(UserError) as error:
        assignments(of_sizes({"ACME": 1, "Beta": 1}, **choices))
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("results", "is_tied"), [(dict.fromkeys("ABCD", 3), True), ({"A": 1, "B": 2, "C": 3}, False)]
)
def test_the_seed_decides_ties_alone(results: dict[str, int], is_tied: bool) -> None:
    rounds = [of_sizes(results, seed=seed) for seed in range(5)]
    assert (len({assignments_section(reviewed).summary for reviewed in rounds}) > 1) is is_tied


def test_a_large_submission_alone() -> None:
    rows = [a_set("A"), a_set("A", "resnet"), a_set("B"), a_set("B", name="pod")]
    systems = [a_system("A"), a_system("B"), a_system("B", "pod", accelerators=512)]
    made = assignments_section(a_round("AB", rows, systems))
    assert made.summary == (
        paired("A and B"),
        alone("B", "scale"),
    )
    last = ("volunteers or the chairs", "B", "B", "scale", "the only submitter ranked by scale")
    assert cells(made.tables["pairs"])[-1] == last


def test_large_results_of_a_joint_folder() -> None:
    """The reviewers by scale read the joint folder alone, those by results the others alone."""
    rows = [a_set("A"), a_set("A+B", name="pod"), a_set("C"), a_set("C", name="pod")]
    systems = [a_system(name, "pod", accelerators=512) for name in ("A+B", "C")]
    made = assignments(a_round(["A", "A+B", "C"], rows, systems))
    folders = {(item.by, item.reviewer, item.submitter): item.folders for item in made}
    by_scale = {(one, other) for by, one, other in folders if by == "scale"}
    assert by_scale == {("A", "C"), ("C", "A"), ("B", "C"), ("C", "B")}
    assert folders["scale", "C", "A"] == folders["scale", "C", "B"] == ("A+B",)
    assert folders["results", "C", "A"] == ("A",)


NAMES = [chr(ord("A") + number) for number in range(12)]


@given(
    st.dictionaries(st.sampled_from(NAMES), st.integers(1, 4), min_size=1),
    st.lists(st.lists(st.sampled_from(NAMES), min_size=2, max_size=3, unique=True), max_size=3),
    st.integers(0, 3),
)
def test_any_round(results: dict[str, int], joints: list[list[str]], seed: int) -> None:
    joint = tuple("+".join(names) for names in joints if {*names} <= results.keys())
    made = assignments(of_sizes(results, joint=joint, seed=seed))
    partners = {
        frozenset((a, b)) for names in joint for a in names.split("+") for b in names.split("+")
    }
    met = {(item.reviewer, item.submitter) for item in made}
    assert {submitter for _, submitter in met} == results.keys()
    assert all(frozenset(pair) not in partners and pair[0] != pair[1] for pair in met)
    assert len(met) == len(made)
    times = [sum(item.submitter == name for item in made) for name in results]
    assert {*times} <= {1, 2}
    assert times.count(2) <= 3


# ---- pairs down a ranking -----------------------------------------------------------------


def ways(members: list[int]) -> Iterator[list[ReviewGroup]]:
    """All ways to make pairs, and three of an odd number."""
    if len(members) <= 3 and len(members) != 2:
        yield [members] if members else []
        return
    first, *others = members
    for other in others:
        for way in ways([member for member in others if member != other]):
            yield [[first, other], *way]
    if len(members) % 2:
        for two in combinations(others, 2):
            for way in ways([member for member in others if member not in two]):
                yield [[first, *two], *way]


@given(st.lists(st.integers(0, 4), max_size=9))
def test_everybody_who_can_be_reviewed_is(joint: list[int]) -> None:
    """Submitters by the joint submission that each is in."""
    number = len(joint)

    def may(one: int, other: int) -> bool:
        return joint[one] != joint[other]

    formed = groups(number, may)
    assert sorted(member for group in formed for member in group) == list(range(number))
    assert all(len(group) == 2 for group in formed[:-1])
    pairs = [pair for group in formed for pair in reviews(group, may)]
    assert all(may(*pair) for pair in pairs)
    assert {(two, one) for one, two in pairs} == {*pairs}
    if any(all(is_covered(group, may) for group in way) for way in ways(list(range(number)))):
        assert {one for one, _ in pairs} == set(range(number))


# ---- submitters by their descriptions ------------------------------------------------------


def described(*entries: tuple[str, str, str, int], **choices: Any) -> ReviewedRound:
    """A round of entries: folder, system, the submitter in its description, its results."""
    rows, systems = [], []
    for folder, name, submitter, results in entries:
        rows += [a_set(folder, f"b{number}", name) for number in range(results)]
        systems.append(replace(a_system(folder, name, accelerators=8), submitter=submitter))
    return a_round(dict.fromkeys(entry[0] for entry in entries), rows, systems, **choices)


SMC = (("smc", "a", "SMC", 3), ("smc-ac-power", "a", "SMC", 2), ("smc-dc-power", "a", "SMC", 2))
LARGE_ONE = (
    *(("NVIDIA", "eos", "NVIDIA", 9), ("NVIDIA", "cw", "NVIDIA + CoreWeave", 1)),
    *(("Dell", "a", "Dell", 5), ("HPE", "a", "HPE", 1)),
)
HYPHEN = (
    *(("Red_Hat", "a", "RedHat-Supermicro", 1), ("Supermicro", "a", "Supermicro", 2)),
    ("Dell", "a", "Dell", 1),
)
BY_DESCRIPTION = [
    (SMC, alone("smc")),
    ((*SMC, ("Dell", "a", "Dell", 5)), paired("smc and Dell")),
    (LARGE_ONE, paired("NVIDIA and Dell; HPE and CoreWeave")),
    (
        HYPHEN,
        paired(
            "Supermicro, Red_Hat and Dell (but Supermicro and Red_Hat do not review each other)"
        ),
    ),
    (HYPHEN[:2], alone("Red_Hat and Supermicro")),
]


@pytest.mark.parametrize(
    ("entries", "line"),
    BY_DESCRIPTION,
    ids=["one alone", "three folders", "one joint entry", "a hyphen", "partners alone"],
)
def test_submitters_by_description(entries: Any, line: str) -> None:
    made = assignments_section(described(*entries, seed=1))
    assert made.summary == (line,)


def test_a_partner_of_one_entry_does_not_own_the_folder() -> None:
    reviewed = described(*LARGE_ONE, seed=1)
    made = {item.submitter: item for item in assignments(reviewed)}
    assert made["CoreWeave"].folders == ("NVIDIA",)
    assert made["CoreWeave"].why.endswith("; in the submission NVIDIA, only the systems cw")
    assert "only" not in made["NVIDIA"].why
    table = cells(submitters_section(reviewed).tables["table"])
    assert {row[0]: row[1:3] for row in table} == {
        "CoreWeave": (1, 1),
        "Dell": (1, 5),
        "HPE": (1, 1),
        "NVIDIA": (2, 10),
    }


# ---- the table of submitters --------------------------------------------------------------


def test_one_row_per_submitter() -> None:
    rows = [a_set("ACME", verdict=FAIL), a_set("ACME", "ssd", "pod", division="open")]
    systems = [a_system("ACME"), a_system("ACME", "pod", accelerators=64)]
    findings = [
        finding("ACME/results/dgx/bert/result_0.txt"),
        finding("ACME/systems/pod.json", severity=Severity.WARNING),
        finding("ACMEs/systems/pod.json"),
    ]
    made = submitters_section(a_round(["ACME", "Beta"], rows, systems, findings))
    assert cells(made.tables["table"]) == [
        ("ACME", 2, 2, 64, "closed, open", 1, 0, 1, 1, 0),
        ("Beta", 0, 0, None, "", 0, 0, 0, 0, 0),
    ]
    assert made.summary == (
        "1 submitter, 2 systems, 2 result sets, 0 runs",
        "result sets that fail: 1 by the official verdict, 0 by the rules",
    )
