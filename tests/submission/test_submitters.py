"""The companies that submit the entries of a round."""

import pytest

from mlperf_pkg.submission.submitters import (
    SubmitterNames,
    companies,
    is_same_submitter,
    spellings,
)

Entry = tuple[str, str]


def names_of(*entries: Entry) -> list[str]:
    """Return the companies of each entry, a folder and the submitter described, in words."""
    names = [SubmitterNames(*entry) for entry in entries]
    of_entry = companies(names)
    return [" & ".join(of_entry[name]) for name in names]


ALONE = [("Dell", ""), ("Red_Hat", "Red Hat")]
SMC = [("smc", "SMC"), ("smc-ac-power", "smc"), ("smc-dc-power", "smc"), ("Dell", "Dell")]
CLOUD = [("smc-ac-power", "Metal Cloud"), ("smc-dc-power", "Metal Cloud"), ("Dell", "Dell")]
LARGE = [("NVIDIA", "NVIDIA"), ("NVIDIA", "NVIDIA + CoreWeave"), ("CoreWeave", "CoreWeave")]
HYPHEN = [("Red_Hat", "RedHat-Supermicro"), ("Supermicro", "Supermicro")]


@pytest.mark.parametrize(
    ("entries", "expected"),
    [
        pytest.param(ALONE, ["Dell", "Red_Hat"], id="each its own"),
        pytest.param([("ACME", ""), ("ac me", "")], ["ACME", "ACME"], id="spellings"),
        pytest.param([("ACME", "Acme Corp.")], ["ACME"], id="a longer name in the description"),
        pytest.param(SMC, ["smc", "smc", "smc", "Dell"], id="three folders of one company"),
        pytest.param(CLOUD, ["Metal Cloud", "Metal Cloud", "Dell"], id="of no folder's name"),
        pytest.param([("A+B", "")], ["A & B"], id="a joint folder"),
        pytest.param([("A+B", "B")], ["A & B"], id="a joint folder whose descriptions name one"),
        pytest.param([("A+B", "A"), ("A+B", "B + A")], ["A", "A & B"], id="a joint entry in it"),
        pytest.param([("A+B", "A_B")], ["A & B"], id="joined by another sign"),
        pytest.param([("x", "A + B")], ["A & B"], id="a joint description"),
        pytest.param([("A_B", "A+B")], ["A & B"], id="a joint description of a folder A_B"),
        pytest.param(LARGE, ["NVIDIA", "CoreWeave & NVIDIA", "CoreWeave"], id="one joint entry"),
        pytest.param(HYPHEN, ["Red_Hat & Supermicro", "Supermicro"], id="A-B, both known"),
        pytest.param(HYPHEN[:1], ["Red_Hat"], id="A-B, one known"),
        pytest.param([("x", "A & B"), ("A", ""), ("B", "")], ["A & B", "A", "B"], id="A & B"),
        pytest.param([("x", "A and B"), ("A", ""), ("B", "")], ["A & B", "A", "B"], id="A and B"),
        pytest.param([("A_B", ""), ("A", ""), ("B", "")], ["A & B", "A", "B"], id="A_B, known"),
        pytest.param([("A_B", ""), ("A", "")], ["A_B", "A"], id="A_B, one known"),
        pytest.param([("IBM+Acme", ""), ("ACME", "")], ["ACME & IBM", "ACME"], id="spelt alike"),
        pytest.param([("A+", ""), ("B++B", "")], ["A+", "B++B"], id="plus signs of one name"),
        pytest.param([("A", "B"), ("A", "A"), ("B", "")], ["B", "A", "B"], id="another's entry"),
        pytest.param([("A", "X"), ("A", "Y"), ("A", "Y")], ["A", "A", "A"], id="names of no other"),
        pytest.param([], [], id="none"),
    ],
)
def test_companies(entries: list[Entry], expected: list[str]) -> None:
    assert names_of(*entries) == expected


def test_spellings() -> None:
    assert spellings(["b", "ac me", "ACME"]) == {"ACME": ["ACME", "ac me"], "b": ["b"]}


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        pytest.param(("ACME+Beta",), ("Cray+Beta",), True, id="a company in common"),
        pytest.param(("ACME+Beta",), ("Cray+Dell",), False, id="none in common"),
        pytest.param(("Intel",), ("Intel-HabanaLabs",), True, id="a longer name"),
        pytest.param(("QCT",), ("Quanta_Cloud_Technology",), True, id="an abbreviation"),
        pytest.param(("smc-ac", "SMC"), ("smc-dc", "SMC"), True, id="described alike"),
        pytest.param(("Habana", "HabanaLabs"), ("Intel-HabanaLabs",), True, id="one described"),
        pytest.param(("Red_Hat", "RedHat-Dell"), ("Dell", "Dell"), True, id="a joint entry"),
        pytest.param(("NVIDIA", "NVIDIA"), ("Dell", "Dell"), False, id="two companies"),
        pytest.param(("Eta",), ("Beta",), False, id="a part of another name"),
        pytest.param(("Habana",), ("Intel-HabanaLabs",), True, id="begins a word of another"),
        pytest.param(("smc",), ("smc-ac-power",), True, id="a folder of another measurement"),
        pytest.param(("浪潮",), ("NVIDIA",), False, id="another alphabet"),
    ],
)
def test_submitters(one: tuple[str, ...], other: tuple[str, ...], *, expected: bool) -> None:
    assert is_same_submitter(SubmitterNames(*one), SubmitterNames(*other)) is expected
