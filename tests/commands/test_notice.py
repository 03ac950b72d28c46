"""What must stand beside a result, in every output that is made for showing."""

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from mlperf_pkg.commands.notice import (
    LEGEND,
    NOT_VERIFIED,
    SPEED_UP,
    ShownResult,
    embargo,
    notice,
    score,
)
from mlperf_pkg.rulebook.rounds import changes_until, version_since
from tests.helpers.program import call
from tests.helpers.published import publish
from tests.helpers.trees import SYSTEM, write_submission

OWN = ShownResult("training", "5.1", "bert", "closed", "Available on-premise", 8, 5.0)
VERIFIED = ShownResult("training", "5.1", "bert", "closed", "Preview", 64, 5.0, is_verified=True)
NEXT = ShownResult("training", "6.0", "bert", "closed", "Preview", 64, 5.0)
SNAPSHOT = "retrieved on 2026-11-22"


# ---- the text -----------------------------------------------------------------------------

TEXTS = {
    "unverified": ([OWN], ["MLPerf® Training v5.1; Closed division; bert;", NOT_VERIFIED]),
    "verified": ([VERIFIED], ["Preview; 64 accelerators.", "Verified by MLCommons", SNAPSHOT]),
    "both": ([OWN, VERIFIED], ["Marked unverified", "inconsistent with", "8 to 64 accelerators"]),
    "a round that is not published": ([NEXT], ["may not be shown before", "MLPerf® Training 6.0"]),
    "an id": (
        [ShownResult("hpc", "3.0", "oc20", minutes=1.0, is_verified=True, id="3.0-0023")],
        ["MLPerf® HPC v3.0; no division", "results 3.0-0023", "no known category"],
    ),
    "both divisions": (
        [OWN, ShownResult("training", "5.1", "bert", "open")],
        ["Closed and Open division", "Open results need not follow the rules of Closed"],
    ),
}


@pytest.mark.parametrize(("results", "texts"), TEXTS.values(), ids=TEXTS)
def test_the_text(results: list[ShownResult], texts: list[str]) -> None:
    paragraphs = notice(results)
    assert paragraphs[-1] == LEGEND
    assert [text for text in texts if text not in "\n".join(paragraphs)] == []
    assert paragraphs == notice(reversed(results))


def test_derived_metrics_are_named_with_their_basis() -> None:
    [text] = [part for part in notice([VERIFIED], [SPEED_UP]) if part.startswith("Derived")]
    assert SPEED_UP in text
    assert "neither official MLPerf® results nor verified" in text


@pytest.mark.parametrize("results", [[OWN], [VERIFIED], []], ids=["own", "verified", "none"])
def test_results_of_published_rounds_may_be_shown(results: list[ShownResult]) -> None:
    assert embargo(results) == ""


def test_a_score_says_that_it_is_unverified() -> None:
    assert score(5.0, is_verified=True) == "5.000"
    assert score(5.0, is_verified=False) == "5.000 (unverified)"
    assert score(None, is_verified=False) == "-"


@pytest.mark.parametrize(
    ("edition", "other", "compare"),
    [
        (("training", "1.0", "rnnt"), ("training", "1.1", "rnnt"), False),
        (("training", "1.1", "rnnt"), ("training", "2.1", "rnnt"), True),
        (("hpc", "1.0", "cosmoflow"), ("hpc", "2.0", "cosmoflow"), False),
        (("training", "4.0", "gnn"), ("training", "5.1", "rgat"), True),
    ],
)
def test_versions_compare(
    edition: tuple[str, str, str], other: tuple[str, str, str], *, compare: bool
) -> None:
    assert (changes_until(*edition) == changes_until(*other)) is compare


@pytest.mark.parametrize(
    ("edition", "since"),
    [
        (("training", "5.0", "bert"), "1.0"),
        (("training", "0.7", "bert"), ""),
        (("training", "5.0", "retinanet"), "2.0"),
        (("training", "4.0", "resnet"), ""),
        (("hpc", "3.0", "oc20"), "3.0"),
        (("training", "9.0", "bert"), ""),
    ],
)
def test_a_version_has_a_first_round(edition: tuple[str, str, str], since: str) -> None:
    assert version_since(*edition) == since


# ---- every output -------------------------------------------------------------------------


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The outputs of a published round, ``verified``, of one whose log was edited, ``edited``, and
    of one that is not published, ``next``.
    """
    root = tmp_path_factory.mktemp("shown")
    round_ = root / "verified/v2.0"
    results = write_submission(round_ / "ACME") / "results"
    (results / SYSTEM / "privateid.json").write_text('{"private_id": "2.0-2101"}', "utf-8")
    shutil.copytree(round_, root / "next/v2.1")
    shutil.copytree(root / "verified", root / "edited")
    log = next((root / "edited").rglob("result_0.txt"))
    log.write_text(f"{log.read_text('utf-8')}\n", "utf-8")
    with pytest.MonkeyPatch.context() as patch:
        publish(patch, round_)
        for name in ("verified", "edited", "next"):
            _write_all(next((root / name).glob("v*")), root / f"{name}-shown")
        drawn = ("--draw", "rcp", "--draw", "scoreboard")
        call("report", root / "edited/v2.0", *drawn, "-o", root / "edited-shown/charts")
        yield root


def _write_all(round_: Path, folder: Path) -> None:
    folder.mkdir()
    call("report", round_, "-o", folder / "report.html")
    call("report", "--history", round_, "-o", folder / "history.html")
    call("report", "--site", folder / "site", round_)
    call("results", round_, "-o", folder / "results")
    call("score", round_, "--format", "markdown", "-o", folder / "score.md")
    compared = ("compare", round_, "--published", "2.0")
    call(*compared, "--format", "markdown", "-o", folder / "compare.md")
    call("review", round_, "-o", folder / "review")
    drawn = ("review", "audits", round_, "--seed", "7")
    call(*drawn, "--format", "markdown", "-o", folder / "audits.md")


def _without_scripts(file: Path) -> str:
    return re.sub("<script.*?</script>", "", file.read_text("utf-8"), flags=re.DOTALL)


WITHOUT_SCORES = ["site/index.html", "review/review.html", "review/README.md"]
WITH_SCORES = ["report.html", "results/results.html", "score.md", "compare.md", "audits.md"]
OUTPUTS = ["history.html", *WITH_SCORES, *WITHOUT_SCORES]


@pytest.mark.parametrize("output", OUTPUTS)
def test_every_output_has_it(output: str, shown: Path) -> None:
    verified = _without_scripts(shown / "verified-shown" / output)
    assert LEGEND in verified
    assert SNAPSHOT in verified
    assert "MLPerf® Training v2.0; Closed division; resnet;" in verified
    assert "(unverified)" not in verified
    # The record has no ids, so the history has none.
    assert ("results 2.0-2101" in verified) == (output != "history.html")
    edited = _without_scripts(shown / "edited-shown" / output)
    # The history shows the published score.
    assert ("(unverified)" in edited) == (output in WITH_SCORES)


PICTURES = ["charts/resnet.scoreboard.svg", "charts/ACME-results-bow-pod16-resnet.rcp.svg"]


@pytest.mark.parametrize("output", PICTURES)
def test_every_picture_has_it_as_text(output: str, shown: Path) -> None:
    picture = (shown / "edited-shown" / output).read_text("utf-8")
    text = " ".join(re.findall("<text[^>]*>([^<]*)</text>", picture))
    assert LEGEND in text
    assert NOT_VERIFIED in text
    assert "MLPerf® Training v2.0; Closed division; resnet;" in text
    height = re.search('height="([0-9.]+)"', picture)
    assert height
    assert max(float(top) for top in re.findall('y="([0-9.]+)"', picture)) < float(height[1])


@pytest.mark.parametrize("output", OUTPUTS)
def test_results_before_publication_say_so(output: str, shown: Path) -> None:
    page = _without_scripts(shown / "next-shown" / output)
    assert "These results may not be shown before MLCommons has published" in page
    assert ("(unverified)" in page) == (output not in WITHOUT_SCORES)


@pytest.mark.parametrize("output", WITH_SCORES)
def test_each_score_says_that_it_is_unverified(output: str, shown: Path) -> None:
    """The score, the mean and the official score, which are equal, wherever they stand."""
    [result] = json.loads(call("score", shown / "next", "--format", "json").output)["result_sets"]
    number = re.escape(f"{result['score_minutes']:.3f}")
    text = re.sub("<[^>]*>", "", _without_scripts(shown / "next-shown" / output))
    assert len(re.findall(number, text)) > 0
    assert re.findall(rf"{number}(?! min \(unverified\)| \(unverified\)).*", text) == []


def test_a_built_tree_has_it() -> None:
    submissions = Path(__file__).parents[2] / "submissions"
    for path in submissions.rglob("results.[hm][td]*"):
        assert LEGEND in path.read_text("utf-8"), path


@pytest.mark.parametrize("arguments", [("check",), ("score", "--format", "csv"), ("score",)])
def test_what_is_not_for_showing_lacks_it(arguments: tuple[str, ...], shown: Path) -> None:
    done = call(*arguments, shown / "next")
    assert "unverified" not in done.output
    assert "trademark" not in done.output
