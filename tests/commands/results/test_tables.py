"""The tables of small simulated rounds, and what they say is missing."""

import csv
import math
import tarfile
from collections.abc import Callable, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from mlperf_pkg.checker.check import check
from mlperf_pkg.checker.values import Checked, Options
from mlperf_pkg.commands.results.publication import Publication, publication, ranks, rounded
from mlperf_pkg.commands.results.systems import PrivateIds, systems_with_results
from mlperf_pkg.commands.results.tables import file_contents, tables
from mlperf_pkg.config import Config, WaiverConfig
from mlperf_pkg.errors import UserError
from mlperf_pkg.findings import Basis, Finding, Verdict, Verdicts, Waiver, verdicts_of
from mlperf_pkg.render.table import records
from tests.helpers.trees import (
    SYSTEM,
    described,
    remove,
    simulated,
    write_set,
    write_submission,
    write_system,
)
from tests.helpers.workbooks import read

ROUND = "training_results_v2.0"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A round of one submitter, with one result set."""
    write_submission(tmp_path / ROUND / "ACME")
    return tmp_path / ROUND


def published(root: Path) -> Publication:
    return collected(check([str(root)], Options(jobs=1)))


def collected(
    checked: Checked, verdict: Basis = Basis.OFFICIAL, entries: Mapping[str, Any] = {}
) -> Publication:
    systems = systems_with_results("round", checked)
    ids = PrivateIds(Path("x/ids.json"), entries).extended(systems)
    return publication(checked, systems, ids, verdict)


def test_a_table(root: Path) -> None:
    write_system(root / "ACME" / "systems", hw_notes="one", sw_notes="two")
    (section,) = tables(published(root))
    (row,) = records(section.table)
    base = "https://github.com/mlcommons/training_results_v2.0/blob"
    assert section.title == "Closed: Available on-premise"
    assert [name for name, cell in row.items() if cell is not None] == [
        "id",
        "submitter",
        "system",
        "processor",
        "processors",
        "accelerator",
        "accelerators",
        "software",
        "resnet",
        "details",
        "code",
        "notes",
        "remarks",
    ]
    assert row["id"].count("-") == 3
    assert row["details"] == f"{base}/main/ACME/systems/{SYSTEM}.json"
    assert row["code"] == f"{base}/master/ACME/benchmarks"
    assert (row["processors"], row["accelerators"], row["notes"]) == (2, 16, "one;two")
    write_system(root / "ACME" / "systems", division="ajar", status=7)
    assert tables(published(root))[0].title == "No division: no known category"


# ---- bad input gives the rest ---------------------------------------------------------------


def broken_logs(own: Path, *numbers: int) -> None:
    """A log that is not one counts as a failed run, and one may fail."""
    for number in numbers:
        (own / SETS / "resnet" / f"result_{number}.txt").write_bytes(b"\0" * 100)


FILE, SETS = f"systems/{SYSTEM}.json", f"results/{SYSTEM}"
UNDESCRIBED = f"ACME/{FILE}: missing, or not a system description"
LACKING = "no usable framework, host_processors_count, accelerators_count"
BAD: list[tuple[Callable[[Path], object], int, list[str]]] = [
    (lambda own: None, 1, []),
    (described(division="ajar", status=7), 1, ["no usable division, availability"]),
    (described(framework=..., number_of_nodes="two"), 1, [LACKING]),
    (lambda own: remove(own / FILE), 0, [UNDESCRIBED, f"/resnet: not valid: SET110: {FILE} is"]),
    (lambda own: (own / FILE).write_text("{"), 0, [UNDESCRIBED, "not valid: SET110"]),
    (lambda own: broken_logs(own, 0), 1, []),
    (lambda own: broken_logs(own, 1, 2), 0, ["/resnet: not valid: "]),
    (
        lambda own: write_set(own / SETS / "ssd", simulated("ssd")[:2]),
        1,
        ["/ssd: not valid: SET101: the number of runs"],
    ),
    (
        lambda own: (own / "results" / "idle").mkdir(),
        1,
        ["ACME/results/idle: no result set; expected <benchmark>/result_*.txt"],
    ),
    (
        lambda own: write_set(own / SETS / "bert", ()),
        1,
        [f"ACME/{SETS}/bert: no log; a folder without logs is not a result"],
    ),
]


@pytest.mark.parametrize(
    ("change", "number", "missing"),
    BAD,
    ids=[
        "nothing",
        "no division or status",
        "unusable counts",
        "no description",
        "not a description",
        "one broken log",
        "two broken logs",
        "too few runs",
        "a system without results",
        "a set without logs",
    ],
)
def test_bad_input(
    root: Path, change: Callable[[Path], object], number: int, missing: list[str]
) -> None:
    write_submission(root / "Other", seed=8)
    write_system(root / "Other" / "systems", submitter="Other")
    change(root / "ACME")
    result = published(root)
    assert [score.reason for score in result.scores].count("") == number + 1
    assert all(part in line for part, line in zip(missing, result.missing, strict=True))
    assert sum(len(section.rows) for section in tables(result)) == number + 1


def test_spellings_of_a_submitter(root: Path) -> None:
    write_submission(root / "Acme", seed=8)
    for name in ("ACME", "Acme"):
        write_system(root / name / "systems", submitter=name)
    result = published(root)
    assert result.notes == ("the name of one submitter has 2 spellings: ACME, Acme",)
    assert [(submitter.name, submitter.results) for submitter in result.submitters] == [("ACME", 2)]


def test_another_id_in_the_tree_is_noted(root: Path) -> None:
    file = root / "ACME" / "results" / SYSTEM / "privateid.json"
    file.write_text('{"private_id": "red-oak"}', "utf-8")
    assert published(root).rows[0].id == "red-oak"
    entries = {f"ACME/{SYSTEM}": {"private_id": "blue-elm"}}
    result = collected(check([str(root)], Options(jobs=1)), entries=entries)
    assert result.rows[0].id == "blue-elm"
    assert result.notes == (
        f"ACME/results/{SYSTEM}/privateid.json: red-oak is not used; ids.json has blue-elm",
    )


def test_verdicts_and_waivers_are_noted(root: Path) -> None:
    for number in (1, 2):
        (root / "ACME" / SETS / "resnet" / f"result_{number}.txt").unlink()
    waivers = (WaiverConfig("SET101", "*", Waiver("agreed", "Jane", "2999-12-31"), 1),)
    checked = check([str(root)], Options(jobs=1, config=Config(waivers=waivers)))
    result = collected(checked)
    (score,) = result.scores
    assert (score.reason, score.official, score.waived) == ("", "fail", ("SET101",))
    assert score.published_minutes is not None
    assert result.notes == (
        f"the tables have 1 result set that {result.tool['reference']} rejects",
        "the tables have 1 result set with waived findings",
    )


def failing(root: Path, basis: Basis) -> Checked:
    """The round with an error of a basis in its only result set."""
    checked = check([str(root)], Options(jobs=1))
    (result,) = checked.sets
    error = Finding("RUN157", "wrong", result.row.path, basis=basis)
    findings = (*result.findings, error)
    row = replace(result.row, verdict=verdicts_of(findings), official_minutes=30.5)
    return replace(checked, sets=(replace(result, row=row, findings=findings),))


REASON = "not valid: RUN157: wrong"


@pytest.mark.parametrize(
    ("basis", "verdict", "reason", "remarks"),
    [
        (Basis.BOTH, Basis.OFFICIAL, REASON, "rules: RUN157"),
        (Basis.BOTH, Basis.RULES, REASON, "rules: RUN157"),
        (Basis.OFFICIAL, Basis.OFFICIAL, "", "official: RUN157"),
        (Basis.OFFICIAL, Basis.RULES, "", "official: RUN157"),
        (Basis.RULES, Basis.OFFICIAL, "", "rules: RUN157"),
        (Basis.RULES, Basis.RULES, REASON, "rules: RUN157"),
        (Basis.ADVICE, Basis.OFFICIAL, "", ""),
        (Basis.ADVICE, Basis.RULES, "", ""),
    ],
)
def test_which_verdict_leaves_a_score_out(
    basis: Basis, verdict: Basis, reason: str, remarks: str, root: Path
) -> None:
    """Whatever the official score is, the tables have that of every other command."""
    checked = failing(root, basis)
    minutes = checked.sets[0].row.score_minutes
    result = collected(checked, verdict)
    (score,) = result.scores
    assert (score.reason, score.remarks) == (reason, remarks)
    assert score.minutes == (None if reason else minutes)
    shown = f"resnet: {remarks}" if remarks and not reason else ""
    assert result.rows[0].remarks == shown


def test_without_an_official_verdict_the_rules_decide(root: Path) -> None:
    checked = failing(root, Basis.RULES)
    row = replace(checked.sets[0].row, verdict=Verdicts(Verdict.NOT_CHECKED, Verdict.FAIL))
    checked = replace(checked, sets=(replace(checked.sets[0], row=row),))
    (score,) = collected(checked).scores
    assert (score.reason, score.minutes) == (REASON, None)


def test_an_archive_has_the_ids_of_its_folder(root: Path) -> None:
    archive = root.parent / "round.tar.gz"
    with tarfile.open(archive, "w:gz") as stream:
        stream.add(root, "v2.0")
    assert [row.key for row in published(archive).rows] == [f"ACME/{SYSTEM}"]


def test_no_submission(root: Path) -> None:
    with pytest.raises(UserError, match="round: no submission; expected <submitter>"):
        published(root / "ACME/results" / SYSTEM / "resnet")


# ---- the formats ----------------------------------------------------------------------------

FORMULA = '=HYPERLINK("http://evil.test")'
MARKUP = "</td><script>alert(1)</script>\x1b[31m\u202e"


def test_hostile_text(root: Path) -> None:
    """A page and a workbook hold it as text, and no cell of CSV is a formula."""
    write_system(
        root / "ACME" / "systems",
        submitter=FORMULA,
        system_name=MARKUP,
        framework=f"1;{FORMULA}",
        hw_notes=MARKUP,
        sw_notes="",
    )
    result = published(root)
    files: Any
    files, notes = file_contents(result)
    assert (notes, files) == ([], file_contents(result)[0])
    text = files["results.html"]
    assert (text.count("<script"), "&lt;script&gt;" in text) == (1, True)
    assert not {"\x1b", "\u202e"} & {*text}
    assert "default-src 'none'; script-src 'sha256-" in text
    sheets = read(files["results.xlsx"])
    assert list(sheets) == ["closed", "without a score"]
    head, section, cells = sheets["closed"]
    assert head[:3] == ["id", "submitter", "system"]
    assert section[0] == "Available on-premise"
    assert cells[1] == FORMULA  # a string, which no spreadsheet computes
    assert "\x1b" not in cells[2]
    (row,) = csv.DictReader(files["results.csv"].splitlines())
    assert (row["submitter"], row["software"]) == (f"'{FORMULA}", f"1;'{FORMULA}")
    assert (row["division"], row["category"]) == ("closed", "Available on-premise")


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, None),
        (math.inf, None),
        (9.8065, 9.807),  # Python's format says 9.806
    ],
)
def test_rounding(value: float | None, expected: float | None) -> None:
    assert rounded(value) == expected


@given(st.floats(0, 1e9))
def test_rounding_is_to_the_nearest(value: float) -> None:
    result = rounded(value)
    assert result is not None
    assert abs(Decimal(repr(result)) - Decimal(repr(value))) <= Decimal("0.000501")
    assert rounded(result) == result


def test_ranks_are_within_groups_and_shared() -> None:
    values = [("a", 2.0), ("b", 9.0), ("a", 1.0), ("a", 2.0), ("a", 3.0)]
    assert ranks(values) == [(2, 4), (1, 1), (1, 4), (2, 4), (4, 4)]
