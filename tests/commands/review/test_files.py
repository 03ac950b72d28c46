"""A review as Markdown, CSV, JSON, one page, and the printed summary."""

import csv
import io
import json
import math
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from mlperf_pkg.commands.notice import NOT_VERIFIED
from mlperf_pkg.commands.review import convergence, files
from mlperf_pkg.commands.review.files import Review, files_of, read_review, review_of, sections
from mlperf_pkg.commands.review.round import ReviewedRound, ReviewSection, table_of_cells
from mlperf_pkg.errors import UserError
from tests.helpers.reports import rcp
from tests.helpers.reviews import a_round, a_set

NASTY = "<b>|*x*\x1b[31m=1+1"
TABLE = table_of_cells(
    ("Name", "Size", "Rate"),
    (("ACME", 8, 0.1 + 0.2), (NASTY, None, math.nan), ("=1+1", 16, 2.0)),
    title="Values",
    marked=frozenset({(0, 1), (0, 2), (2, 0)}),
    note="A note.",
)
SECTION = ReviewSection(
    "values", "All values", ("A | paragraph.",), {"a/b": TABLE}, ("three values",)
)
ROUND = a_round(["ACME"])


def made(*parts: ReviewSection) -> Review:
    return review_of(ROUND, parts)


def test_markdown() -> None:
    assert files.markdown(SECTION) == (
        "## All values\n\nA \\| paragraph.\n\n### Values\n\n"
        "| Name | Size | Rate |\n| --- | ---: | ---: |\n"
        "| ACME | **8** | **0.3** |\n"
        "| \\<b\\>\\|\\*x\\*\\\\x1b\\[31m=1+1 | - | - |\n"
        "| **=1+1** | 16 | 2 |\n\nA note."
    )


def test_files_have_safe_and_different_names() -> None:
    tables = dict.fromkeys(("../x", "..//x", "X", "é" * 300, "e" * 300), TABLE)
    written = files_of(made(ReviewSection("s", "S", tables=tables)))
    names = [table["file"] for table in json.loads(written["review.json"])["sections"][0]["tables"]]
    assert len({*names}) == len(tables)
    assert all(len(name) < 100 and name.isascii() for name in written)
    assert {name.rpartition("/")[0] for name in written} == {"", "tables"}
    assert {*names} <= written.keys()


def test_csv_and_page_escape_all_and_mark_cells() -> None:
    written = files_of(made(SECTION))
    rows = list(csv.reader(io.StringIO(written["tables/values-a-b.csv"])))
    assert rows[0] == ["Name", "Size", "Rate", "Marked"]
    assert [row[-1] for row in rows[1:]] == ["Size, Rate", "", "Name"]
    assert rows[3][0] == "'=1+1"
    page = written["review.html"]
    assert "<b>" not in page.partition("<main")[2]
    assert "\x1b" not in page + written["tables/values-a-b.csv"]
    assert page.count("<script") == 1
    assert [
        text
        for text in ('<td class="n m">8</td>', "default-src 'none'; script-src 'sha256-")
        if text not in page
    ] == []


def test_scores_say_that_they_are_unverified(tmp_path: Path) -> None:
    """Also in a package, which is made of the JSON of a review; CSV has numbers."""
    minutes: dict[str, Any] = {"unscaled_minutes": 10.0, "score_minutes": 10.2}
    rows = [a_set("ACME", rcp=rcp(), scaling_factor=1.02, **minutes)]
    reviewed = a_round(["ACME", "Beta"], rows)
    review = review_of(reviewed, [convergence.section(reviewed)])
    files.write_review(tmp_path / "review", files_of(review), force=False)
    packages = files.packages_of(read_review(tmp_path / "review"))
    written = {**files_of(review), **packages}
    for name in ("review.html", "README.md", "ACME/review.html", "ACME/README.md"):
        texts = ["10.2 (unverified)", "10 (unverified)", NOT_VERIFIED, "increase by the factor"]
        assert [text for text in texts if text not in written[name]] == [], name
    assert "unverified" not in written["tables/convergence-normalised.csv"]


def test_summary_is_short_and_narrow() -> None:
    long = ReviewSection("long", "Long", summary=tuple(f"line {number}" for number in range(50)))
    wide = replace(SECTION, title="Wide", summary=("word " * 40, NASTY))
    text = files.summary(made(SECTION, wide, long))
    lines = text.splitlines()
    assert max(map(len, lines)) <= 80
    assert "\x1b" not in text
    assert lines[0] == "MLPerf Training 2.0"
    assert lines[1] == "0 submitters, 0 result sets, 0 with errors, 0 possible objections"
    assert lines[3:5] == ["all values", "  three values"]
    assert lines[-1] == "  ... 43 more: see review.html"
    assert len(lines) - lines.index("long") == 9


def test_no_text_of_a_summary_is_cut() -> None:
    texts = tuple(f"number {number} " + "word " * 40 for number in range(5))  # three lines each
    lines = files.summary(made(replace(SECTION, title="Wide", summary=texts))).splitlines()
    assert [line[:11] for line in lines if "number" in line] == ["  number 0 ", "  number 1 "]
    assert lines[-1] == "  ... 3 more: see review.html"
    assert " ".join(" ".join(lines).split()).count("word") == 80


def test_a_section_that_fails_leaves_the_others_unless_an_option_is_wrong() -> None:
    def part(reviewed: ReviewedRound) -> ReviewSection:
        raise KeyError("oops") if reviewed is ROUND else UserError("no")

    failed, other = sections(ROUND, (("broken", part), ("values", lambda _: SECTION)))
    assert other == SECTION
    problem = "did not finish writing the section broken because of an internal error"
    assert problem in failed.summary[0]
    with pytest.raises(UserError):
        list(sections(a_round(["Beta"]), (("broken", part),)))


def test_a_review_is_read_as_it_was_written(tmp_path: Path) -> None:
    review = made(SECTION, replace(SECTION, name="points", checks=True))
    files.write_review(tmp_path / "review", files_of(review), force=False)
    again = read_review(tmp_path / "review")
    assert files.json(again) == files.json(review)
    assert files.page(again) == files.page(review)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "not a review"),
        ("{", "not a review"),
        ('{"format": "mlperf-pkg/review/1"}', "of another version: Object missing required"),
        (files.json(made(SECTION)).replace('"name": "values"', '"name": "../values"'), "not valid"),
        (files.json(made(SECTION)).replace(" 16,", ""), "not valid"),
        (files.json(made(SECTION)).replace('"version"', '"former"'), "not valid"),
    ],
    ids=[
        "no file",
        "not JSON",
        "another version",
        "a path for a name",
        "a number lacks",
        "an unknown field",
    ],
)
def test_no_review(tmp_path: Path, text: str | None, message: str) -> None:
    if text is not None:
        (tmp_path / "review.json").write_text(text, "utf-8")
    with pytest.raises(UserError, match=message):
        read_review(tmp_path)
