"""The pages in a real browser: they work, they stay silent, and no log is ever markup.

Tests of a page share it opened, and leave its table as it was; axe changes it, and opens its own.
"""

import re
import shutil
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from xml.etree import ElementTree

import pytest
from playwright.sync_api import Browser, Locator, Page, ViewportSize, expect

from mlperf_pkg.commands.page.content import PageContent
from mlperf_pkg.commands.page.history import history_html
from mlperf_pkg.commands.review.files import files_of, review_of, sections
from mlperf_pkg.commands.review.round import ReviewSection
from mlperf_pkg.render.table import Column, table_of
from tests.helpers.browser import (
    Opened,
    assert_accessible,
    assert_fits,
    chromium,
    needs_chromium,
    opened,
)
from tests.helpers.histories import entry, history_of
from tests.helpers.logs import edited
from tests.helpers.pages import html_of, many
from tests.helpers.pages import section as section_of
from tests.helpers.program import call
from tests.helpers.reports import rcp, report
from tests.helpers.reviews import a_round, a_set, a_system
from tests.helpers.tables import loaded
from tests.helpers.trees import SYSTEM, simulated, write_set, write_submission, write_system

pytestmark = needs_chromium

HOSTILE = (
    "</script><script>window.taken = 1</script><img src=x onerror='window.taken = 2'>"
    "]]>&lt;b&gt;\u2028\u202e{{ 7 * 7 }}"
)
PAYLOADS = " ".join(
    (
        *(HOSTILE, "javascript:window.taken=3", "\"' onmouseover=window.taken=4 x='", "${taken=5}"),
        *(
            "](javascript:window.taken=6)",
            "datum.x;window.taken=7",
            "![i](http://evil.example/i.png)",
        ),
        *("=cmd|'calc'!A0", "\u200b\u2066zero", "<svg onload=window.taken=8>"),
    )
)
FORMULA = "=1+1</script><img src=x onerror='window.taken = 1'>{{ 7 * 7 }}"
DESKTOP = ViewportSize(width=1280, height=1500)
LONG = "W" * 120  # a name without a place to break the line
BERT = "s-ACME-bow-pod16-bert-closed"
RESNET_SET = "s-(ACME|Other)-bow-pod16-resnet-closed"
RESNET = "training_results_v4.0/NVIDIA/results/eos_n316_ngc24.04_mxnet/resnet"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """One browser for all tests."""
    with chromium() as started:
        yield started


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The pages of commands.

    A submission of three benchmarks with long texts, one set of which lacks runs; a round of two
    submitters, one of which has hostile text in its system description; and the history.
    """
    root = tmp_path_factory.mktemp("pages")
    good, whole_round = root / "good/training_results_v2.0", root / "round/training_results_v2.0"
    tree = write_submission(good / "ACME", "bert", "resnet", "ssd")
    write_system(tree / "systems", hw_notes="long " * 100, system_name="x" * 200)
    for number in (3, 4):
        (tree / "results" / SYSTEM / "resnet" / f"result_{number}.txt").unlink()
    write_submission(whole_round / "ACME", "bert", "resnet")
    write_submission(whole_round / "Other", "resnet", seed=8)
    write_system(
        whole_round / "Other" / "systems",
        accelerator_model_name=HOSTILE,
        **dict.fromkeys(("framework", "hw_notes", "sw_notes", "operating_system"), PAYLOADS),
        number_of_nodes="2",
        accelerators_per_node="4",
    )
    done = [
        call("report", tree, "-o", root / "good.html"),
        call("report", whole_round, "-o", root / "round.html"),
        call("report", "--history", "-o", root / "history.html"),
        call("report", "--site", root / "site", whole_round),
    ]
    assert [result.exit_code for result in done] == [1, 0, 0, 0], done
    summaries = [
        call("results", tree, "-o", root / "good_summary"),
        call("results", whole_round, "-o", root / "round_summary"),
    ]
    assert {result.exit_code for result in summaries} <= {0, 1}, summaries
    for name in ("good", "round"):
        shutil.copy(root / f"{name}_summary/results.html", root / f"{name}_summary.html")
    shutil.copy(root / "site/index.html", root / "site.html")
    return {path.stem: path for path in root.glob("*.html")}


@pytest.fixture(scope="module")
def good(browser: Browser, files: dict[str, Path]) -> Iterator[Opened]:
    with opened(browser, files["good"], f"#{BERT}", viewport=DESKTOP) as shown:
        yield shown


@pytest.fixture(scope="module")
def whole_round(browser: Browser, files: dict[str, Path]) -> Iterator[Opened]:
    with opened(browser, files["round"], "#g-resnet-2-0", viewport=DESKTOP) as shown:
        yield shown


@pytest.fixture(scope="module")
def history(browser: Browser, files: dict[str, Path]) -> Iterator[Opened]:
    with opened(browser, files["history"], "#b=resnet", viewport=DESKTOP) as shown:
        expect(shown.page.locator("#plot svg")).to_be_visible()
        yield shown


def column(page: Page, name: str) -> list[str]:
    """The visible cells of a column."""
    at = page.locator("#table thead th").all_inner_texts().index(name) + 1
    return page.locator(f"#table tbody tr:not([hidden]) > :nth-child({at})").all_inner_texts()


def press(page: Page | Locator, name: str, times: int = 1) -> None:
    """Click on a button, or the head of a column."""
    for _ in range(times):
        page.get_by_role("button", name=name).click()


def saved(page: Page, button: str, name: str = "") -> Path:
    """A file that is saved, whose name says what is filtered."""
    with page.expect_download() as download:
        page.get_by_role("button", name=button, exact=True).click()
    assert re.match("MLPerf-Training-2.0|mlperf-results", download.value.suggested_filename)
    assert name in download.value.suggested_filename
    return Path(download.value.path())


# ---- every page -----------------------------------------------------------------------------


def write_review(file: Path) -> None:
    """A review of many submitters, one of which has a hostile name, and with a long word."""
    names = [*(f"Submitter{number}" for number in range(8)), f"{HOSTILE}\x1b"]
    fast = rcp(official_pass=False, margin_percent=-1.0)
    rows = [a_set(name, f"b{n}", rcp=fast) for name in names for n in range(6)]
    reviewed = a_round(names, rows, map(a_system, names))
    table = table_of([Column("Topic")], [("Rules",)], title=f"{LONG}, reviewed by nobody")
    parts = [*sections(reviewed), ReviewSection("named", "Named", (LONG,), {"one": table})]
    file.write_text(files_of(review_of(reviewed, parts))["review.html"], "utf-8")


ACCESSIBLE = [
    (f"good#{BERT}", f"#{BERT}[open] svg", 4),
    ("round#g-resnet-2-0", "#g-resnet-2-0 svg, #plot svg", 2),
    ("review", "svg", 0),
    ("good_summary", "svg", 0),
    ("site", "svg", 0),
    ("history#b=resnet&round=1.0&benchmark=resnet", "#plot svg", 1),
]


@pytest.mark.parametrize(("address", "charts", "number"), ACCESSIBLE)
def test_it_is_accessible_and_no_wider_than_its_window(
    address: str, charts: str, number: int, browser: Browser, files: dict[str, Path], tmp_path: Path
) -> None:
    """On a telephone in light colours; on a desktop in dark ones, with all sections opened."""
    write_review(tmp_path / "review.html")
    name, _, fragment = address.partition("#")
    file = files.get(name, tmp_path / "review.html")
    with opened(browser, file, f"#{fragment}", ViewportSize(width=390, height=1500)) as shown:
        page = shown.page
        expect(page.locator(charts)).to_have_count(number)
        assert_fits(page)
        assert_accessible(page)
        page.emulate_media(color_scheme="dark")
        page.set_viewport_size(DESKTOP)
        page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
        expect(page.locator("main > section details:not([open])")).to_have_count(0)
        assert_fits(page)
        assert_accessible(page)
        if name == "history":
            page.locator("#table tbody button").first.click()
            expect(page.locator("#details")).to_be_visible()
            assert_accessible(page, "#details")
        assert ("SET101" in page.locator("main").inner_text()) == name.startswith("good")
        assert page.evaluate("window.taken") is None
        assert shown.quiet


@pytest.mark.parametrize("name", ["round", "round_summary", "site"])
def test_nothing_that_a_submitter_writes_runs_or_is_fetched(
    name: str, browser: Browser, files: dict[str, Path]
) -> None:
    with opened(browser, files[name], viewport=DESKTOP) as shown:
        page = shown.page
        page.locator("details").evaluate_all("all => all.forEach(one => one.open = true)")
        addresses = page.locator("a").evaluate_all("all => all.map(a => a.getAttribute('href'))")
        assert addresses
        assert [href for href in addresses if re.search("javascript:|evil", href or "")] == []
        assert page.evaluate("window.taken") is None
        assert page.locator("img, [onmouseover], [onload], [onerror]").count() == 0
        assert shown.quiet


# ---- a report -------------------------------------------------------------------------------


def test_the_keyboard_opens_a_set_and_its_visible_charts(good: Opened) -> None:
    page = good.page
    assert "ACME" in page.locator("#table").inner_text()
    opened_set = page.locator(f"#{BERT.replace('bert', 'ssd')}")
    opened_set.locator("summary").focus()
    page.keyboard.press("Enter")
    expect(opened_set.locator("svg")).to_have_count(4)
    titles = opened_set.locator("figcaption b").all_inner_texts()
    assert (titles[0], titles[-1]) == ("Convergence", "Timeline of the runs")
    assert opened_set.locator("[aria-label^='Convergence. evaluation against']").first.is_visible()
    # A chart is saved with what it is about, and what must stand beside its result.
    with page.expect_download() as download:
        opened_set.get_by_role("button", name="Download as SVG: Times of the runs").click()
    picture = ElementTree.parse(download.value.path()).getroot()
    text = " ".join(part.text or "" for part in picture.iter("{http://www.w3.org/2000/svg}text"))
    assert "(unverified)" in text
    assert "Times of the runs. ssd, bow-pod16, ACME closed" in text
    assert "Result not verified by MLCommons Association." in text
    assert "Unauthorized use strictly prohibited." in text
    height = float(picture.attrib["viewBox"].split()[-1])
    assert float(picture.attrib["height"]) == height > 250
    assert good.quiet


def test_it_sorts_by_a_click_on_a_head_or_the_keyboard(good: Opened) -> None:
    page = good.page
    press(page.locator("#table thead"), "Runs")
    assert column(page, "Runs") == ["3/5", "5/5", "10/10"]
    press(page.locator("#table thead"), "Runs")
    assert column(page, "Runs") == ["10/10", "5/5", "3/5"]
    head = page.locator("#table th", has_text="Runs")
    assert head.get_attribute("aria-sort") == "descending"
    assert page.locator("[aria-sort]").count() == 1
    page.get_by_role("button", name="Benchmark").focus()
    page.keyboard.press("Space")
    assert column(page, "Benchmark") == ["bert", "resnet", "ssd"]
    page.keyboard.press("Space")
    assert column(page, "Benchmark") == ["ssd", "resnet", "bert"]


@pytest.mark.parametrize(
    ("control", "value", "left"),
    [
        ("[name=q]", "bert", ["bert"]),
        ("[name=Benchmark]", "ssd", ["ssd"]),
        ("[name=FAIL]", "official", ["resnet"]),
        ("[name=q]", "nothing like it", []),
    ],
)
def test_it_filters(control: str, value: str, left: list[str], good: Opened) -> None:
    page = good.page
    field = page.locator(control)
    field.fill(value) if control == "[name=q]" else field.select_option(value)
    assert column(page, "Benchmark") == left
    assert page.locator(".group .set:visible").count() == len({*left} - {"bert"})  # picked
    assert page.locator("#plot").is_hidden()  # it would have one point
    assert page.locator("#count").inner_text() == f"{len(left)} of 3 result sets"
    press(page, "Clear")
    expect(page.locator("#count")).to_have_text("3 of 3 result sets")


def test_it_begins_with_its_verdicts(whole_round: Opened, good: Opened) -> None:
    of_one = ["Results", "Result sets", "Findings"]
    of_a_round = ["Benchmarks", "Results", "Submitters", "Result sets", "Findings"]
    assert whole_round.page.locator("h2").all_inner_texts() == of_a_round
    assert whole_round.page.locator("nav a").all_inner_texts() == of_a_round
    assert good.page.locator("h2").all_inner_texts() == ["What to do", *of_one]
    assert good.page.locator("nav a").all_inner_texts() == of_one
    page = good.page
    assert page.title() == "ACME: MLPerf\u00ae Training 2.0: FAIL / FAIL"
    assert page.locator("h1").inner_text() == "ACME: MLPerf\u00ae Training 2.0"
    assert page.locator(".todo li").first.inner_text().startswith("error ")
    failing = page.locator(".verdicts .fail").first
    assert failing.inner_text().startswith("official FAIL; 1 of 3 result sets fail")
    failing.get_by_role("link").click()
    expect(page.locator("#count")).to_have_text("1 of 3 result sets")
    assert column(page, "Benchmark") == ["resnet"]
    press(page, "Clear")


def test_findings_are_by_code_and_filtered(good: Opened) -> None:
    page = good.page
    kinds = page.locator(".kind")
    number = kinds.count()
    page.locator("#finding-filters [name=severity]").select_option("error")
    shown = page.locator(".kind:visible")
    assert 0 < shown.count() < number
    expect(page.locator("#finding-count")).to_have_text(
        f"{shown.count()} of {number} kinds of findings"
    )
    assert page.locator("h3.title:visible").all_inner_texts() == ["Errors"]
    page.locator("#finding-filters [name=severity]").select_option("")
    page.evaluate("document.querySelectorAll('.kind').forEach(kind => { kind.open = true; })")
    assert_accessible(page, "section:has(> #findings)")
    page.evaluate("document.querySelectorAll('.kind').forEach(kind => { kind.open = false; })")
    page.locator(".todo a").first.click()
    expect(page.locator(".kind[open]")).to_have_count(1)
    assert good.quiet


def test_the_rows_of_a_review_are_searched(browser: Browser, tmp_path: Path) -> None:
    file = tmp_path / "review.html"
    write_review(file)
    with opened(browser, file) as shown:
        page = shown.page
        is_open = "[...document.querySelectorAll('main details')].map(one => one.open)"
        before = page.evaluate(is_open)
        page.locator("#q").fill("submitter3")
        rows = page.locator("main details[open] tbody tr:visible")
        assert rows.count() > 0
        assert all("Submitter3" in text for text in rows.all_inner_texts())
        expect(page.locator("#count")).to_have_text(f"{rows.count()} rows")
        page.locator("#q").fill("")
        assert page.evaluate(is_open) == before
        assert shown.quiet


def test_a_point_opens_its_set_and_another_one_beside_it(whole_round: Opened) -> None:
    page = whole_round.page
    page.locator("#plot a[aria-label*=Other]").hover()  # whose description is never markup
    assert "<img src=x onerror=" in page.locator("#tip").inner_text()
    assert page.evaluate("window.taken") is None
    assert page.locator("img").count() == 0
    assert page.locator("#plot a").count() == 3
    page.locator("#plot [aria-label*='resnet'][aria-label*='ACME']").click()
    picked = page.locator("#picked .set[open]")
    expect(picked.locator("h4")).to_contain_text("resnet, bow-pod16, ACME")
    expect(picked.locator(".charts svg")).to_have_count(4)
    assert page.evaluate("document.activeElement.id") == "picked-title"
    page.locator("#beside").select_option(index=1)
    expect(picked).to_have_count(2)
    assert re.fullmatch(f"#[?]set={RESNET_SET}%2C{RESNET_SET}", page.evaluate("location.hash"))
    assert "Other/" in picked.last.locator(".facts .differs", has_text="/results/").inner_text()
    press(page, "Close")
    assert page.locator("#picked").is_hidden()
    assert page.locator(".group .set").count() == 3
    assert page.evaluate("document.activeElement.getAttribute('href')").startswith("#s")
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Enter")
    expect(picked.locator("h4")).to_have_count(1)
    press(page, "Close")
    assert whole_round.quiet


def test_no_log_is_ever_markup(browser: Browser, tmp_path: Path) -> None:
    """Loose logs with hostile text in every field that holds text."""
    logs = [edited(log, "submission_platform", value=HOSTILE) for log in simulated("resnet")]
    logs[0] = edited(logs[0], "opt_name", value=HOSTILE, metadata={HOSTILE: HOSTILE})
    write_set(tmp_path / "logs" / "<img src=x onerror=alert(1)>", tuple(logs))
    file = tmp_path / "report.html"
    assert call("report", tmp_path / "logs", "--round", "2.0", "-o", file).exit_code == 1
    with opened(browser, file) as shown:
        page = shown.page
        page.locator("#table th a").click()
        expect(page.locator(".set svg")).to_have_count(4)
        assert page.evaluate("window.taken") is None
        assert page.locator("img, b:has-text('&lt;')").count() == 0
        assert page.locator("body script").count() == 3
        assert "<img src=x onerror=" in page.locator(".set h4").inner_text()
        assert "\\u2028\\u202e{{ 7 * 7 }}" in page.locator(".set h4").inner_text()
        page.locator(".kind summary").first.click()
        expect(page.locator(".kind pre").first).to_contain_text("</script>")
        assert shown.quiet


def test_what_is_shown_is_saved(whole_round: Opened) -> None:
    page = whole_round.page
    page.locator("[name=Benchmark]").select_option("resnet")
    frame = loaded(
        saved(page, "CSV", "2.0-resnet.csv"),
        "Accelerators",
        "Minutes",
        "Runs",
        "Runs, of",
        "RCP margin (%)",
    )
    assert list(frame["Submitter"]) == column(page, "Submitter")
    assert set(frame["Benchmark"]) == {"resnet"}
    picture = saved(page, "SVG").read_text("utf-8")
    assert "MLPerf\u00ae Training 2.0: resnet, minutes" in picture
    assert "Result not verified by MLCommons Association." in picture
    assert ElementTree.fromstring(picture).tag.endswith("svg")
    assert saved(page, "PNG").read_bytes().startswith(b"\x89PNG")
    press(page, "Clear")
    assert whole_round.quiet


def test_the_chart_has_a_line_of_ideal_scaling_only_beside_several_numbers(
    browser: Browser, tmp_path: Path
) -> None:
    others = [section_of(6.05, 16, "Third"), section_of(1.0, 64, "Other")]
    entries = [section_of(10.0, 8), section_of(6.0, 16), *others]
    rows = tuple(one.row for one in entries)
    file = tmp_path / "page.html"
    file.write_text(html_of(PageContent(report(result_sets=rows), entries, {}), "1"), "utf-8")
    with opened(browser, file) as shown:
        page = shown.page
        labels = page.locator("#plot text")
        assert "ideal scaling" in labels.all_text_contents()
        page.locator("[name=y]").select_option("cost")
        assert "accelerator-minutes" in labels.all_text_contents()
        assert page.evaluate("location.hash") == "#?y=cost"
        page.locator("#plot [aria-label*=Third]").dispatch_event("click")
        expect(page.locator("#same a")).to_have_count(1)
        press(page, "Close")
        page.locator("[name=q]").fill("Other")
        assert page.locator("#chart").is_hidden()
        page.locator("[name=q]").fill("")
        page.locator("[name=Accelerators]").select_option("8")
        assert page.locator("#chart").is_hidden()
        assert shown.quiet


def test_the_state_of_the_page_is_in_the_url(
    browser: Browser, whole_round: Opened, files: dict[str, Path]
) -> None:
    page = whole_round.page
    page.locator("[name=Submitter]").select_option("ACME")
    press(page.locator("#table"), "Benchmark", times=2)
    assert column(page, "Benchmark") == ["resnet", "bert"]
    fragment = page.evaluate("location.hash")
    assert fragment == "#?Submitter=ACME&down=Benchmark"
    press(page, "Clear")
    small = ViewportSize(width=1280, height=400)
    with opened(
        browser, files["round"], f"{fragment}&set=s-ACME-bow-pod16-resnet-closed", small
    ) as shown:
        page = shown.page
        assert column(page, "Benchmark") == ["resnet", "bert"]
        assert page.locator("#count").inner_text() == "2 of 3 result sets"
        assert page.locator("#plot a").count() == 2
        expect(page.locator("#picked .set")).to_have_attribute(
            "id", "s-ACME-bow-pod16-resnet-closed"
        )
        press(page, "Clear")
        expect(page.locator("#count")).to_have_text("3 of 3 result sets")
        assert shown.quiet


def test_rows_are_made_when_they_are_seen_and_all_are_sorted(
    browser: Browser, tmp_path: Path
) -> None:
    file = tmp_path / "report.html"
    file.write_text(html_of(many(110)), "utf-8")
    with opened(browser, file) as shown:
        page = shown.page
        rows = page.locator("#table tbody tr")
        assert rows.count() == 100
        assert page.locator(".set td").count() == 0
        page.locator("#more").scroll_into_view_if_needed()
        expect(rows).not_to_have_count(100)
        page.locator("[name=q]").fill("system-10")
        expect(rows).to_have_count(11)
        press(page, "Clear")
        expect(rows).to_have_count(100)
        page.evaluate("dispatchEvent(new Event('beforeprint'))")
        assert rows.count() == 110
        press(page, "Minutes", times=2)
        assert column(page, "Minutes")[:2] == ["114.000 (unverified)", "113.000 (unverified)"]
        rows.nth(90).scroll_into_view_if_needed()
        sticks = "document.querySelector('#table th').getBoundingClientRect().top >= 0"
        assert page.evaluate(sticks)
    with opened(browser, file, java_script_enabled=False) as shown:  # all numbers are there
        page = shown.page
        assert "all numbers are in the tables" in page.locator("main").inner_text()
        assert page.locator("#table tbody tr:visible").count() == 110
        page.locator(".set summary").last.click()
        assert "0.0012345" in page.locator(".set dl.pairs").last.inner_text()


def test_the_summary_is_sorted_and_filtered(browser: Browser, files: dict[str, Path]) -> None:
    """A system in two tables, such as one with energy, counts once."""
    text = files["round_summary"].read_text("utf-8")
    table = text[text.index('<section aria-labelledby="t0">') :].partition("</section>")[0]
    twice = files["round_summary"].with_name("twice.html")
    twice.write_text(text.replace(table, f"{table}</section>\n{table}"), "utf-8")
    with opened(browser, twice) as shown:
        assert shown.page.locator("table.sorted tbody tr").count() == 4
        assert shown.page.locator("#count").inner_text() == "2 of 2 systems"
        frame = loaded(saved(shown.page, "CSV"), "Accelerators", "resnet", "bert")
        assert len(frame) == 4
        assert list(frame)[:2] == ["Table", "System"]
    with opened(browser, files["round_summary"]) as shown:
        page = shown.page
        rows = page.locator("table.sorted tbody tr")
        press(page, "resnet")
        assert page.locator(".winner").count() == 1
        first = rows.all_inner_texts()
        press(page, "resnet")
        assert rows.all_inner_texts() == first[::-1]
        page.locator("[name=Accelerator]").select_option(index=2)
        assert page.locator("#count").inner_text() == "1 of 2 systems"
        assert page.evaluate("location.hash").startswith("#?down=resnet&Accelerator=")
        page.locator("[name=q]").fill("no such system")
        assert rows.count() == 0
        assert shown.quiet


# ---- the history ----------------------------------------------------------------------------


def scores(page: Page) -> list[str]:
    return page.locator("#table td.score").all_inner_texts()


def test_the_history_opens_silently_and_makes_rows_when_they_are_asked_for(
    browser: Browser, files: dict[str, Path]
) -> None:
    with opened(browser, files["history"]) as shown:
        page = shown.page
        expect(page.locator("#count")).to_have_text("2,195 of 2,195 results")
        assert page.locator("#table tbody tr").count() == 100
        page.locator("#more").click()
        assert page.locator("#table tbody tr").count() == 200
        expect(page.locator("#plot text").first).to_contain_text("22 benchmarks")
        together = [name for name, _ in groupby(column(page, "Benchmark"))]
        assert len(together) == len({*together})
        assert shown.quiet
    with opened(browser, files["history"], java_script_enabled=False) as shown:
        page = shown.page
        assert page.locator(".card").count() == 22
        assert "0.229" in page.locator(".rounds").first.inner_text()
        assert "require JavaScript" in page.locator("main").inner_text()


def test_a_benchmark_is_drawn_over_rounds_and_over_accelerators(history: Opened) -> None:
    page = history.page
    labels = page.locator("#plot text")
    for value in page.locator("#b option").evaluate_all("all => all.map((one) => one.value)")[::8]:
        page.locator("#b").select_option(value)
        for x in ("accelerators", ""):
            page.locator("#x").select_option(x)
            expect(page.locator("#plot a").first).to_be_attached()
    page.locator(".card[href='#b=bert']").click()
    assert "b=bert" in page.url
    assert {"fastest", "fastest on 8", "Moore's law"} <= {*labels.all_text_contents()}
    expect(labels.first).to_have_text("bert: minutes over rounds, lines: on-premise")
    page.locator("#status").select_option("cloud")
    expect(labels.first).to_have_text("bert: minutes over rounds, lines: cloud")
    page.locator("#status").select_option("")
    page.locator("#x").select_option("accelerators")
    page.locator("#y").select_option("cost")
    drawn = {"1,024", "accelerator-minutes", "NVIDIA H100-SXM5-80GB"}
    assert drawn <= {*labels.all_text_contents()}
    press(page, "Clear")
    assert history.quiet


def test_filters_and_order_of_the_history_are_in_the_address(
    browser: Browser, files: dict[str, Path]
) -> None:
    address = "#round=1.0&benchmark=resnet&accelerators=16&sort=minutes"
    with opened(browser, files["history"], address) as shown:
        page = shown.page
        expect(page.locator("#count")).to_contain_text(" of 2,195 results")
        minutes = [float(score) for score in scores(page)]
        assert minutes == sorted(minutes)
        assert 37.115 in minutes
        in_view = "document.querySelector('#all').getBoundingClientRect().top < 200"
        assert page.evaluate(in_view)  # the filter, not the top of the page
        press(page.locator("#table thead"), "Minutes")
        assert [float(score) for score in scores(page)] == minutes[::-1]
        expect(page).to_have_url(re.compile("sort=-minutes"))
        page.locator("#q").fill("graphcore")
        expect(page.locator("#table tbody tr")).to_have_count(1)
        expect(page).to_have_url(re.compile("q=graphcore"))
        press(page, "Clear")
        expect(page.locator("#count")).to_have_text("2,195 of 2,195 results")


def test_a_permalink_opens_a_result_with_its_source(
    browser: Browser, files: dict[str, Path]
) -> None:
    with opened(browser, files["history"], f"#r={RESNET}") as shown:
        page = shown.page
        expect(page.locator("#details")).to_be_visible()
        expect(page.locator("#details-title")).to_have_text("NVIDIA: resnet, round 4.0")
        source = page.locator("#details a", has_text="Source").get_attribute("href")
        stored = RESNET.replace("v4.0/", "v4.0/tree/HEAD/")
        assert source == f"https://github.com/mlcommons/{stored}"
        page.keyboard.press("Escape")
        expect(page.locator("#details")).to_be_hidden()
        expect(page).not_to_have_url(re.compile("r="))
        assert shown.quiet


def test_a_point_and_a_number_lead_to_their_result(history: Opened) -> None:
    page = history.page
    page.locator("#b").select_option("resnet")
    page.locator("#plot a[aria-label^='resnet, round 2.0: 0.191 minutes']").click()
    expect(page.locator("#details-title")).to_have_text("Google: resnet, round 2.0")
    press(page, "Close")
    page.locator(".rounds a", has_text="0.229").click()
    expect(page.locator("#details-title")).to_have_text("Google: resnet, round 1.0")
    page.get_by_role("link", name="Its benchmark over rounds").click()
    expect(page.locator("#details")).to_be_hidden()
    expect(page).to_have_url(re.compile("b=resnet"))


def test_the_history_is_saved_as_csv(browser: Browser, tmp_path: Path) -> None:
    file = tmp_path / "page.html"
    sets = [entry("5.0", 20.0), entry("5.0", 9.8065, submitter=FORMULA, path=f"{FORMULA}/resnet")]
    file.write_text(history_html(history_of(*sets)), "utf-8")
    with opened(browser, file, "#sort=minutes") as shown:
        page = shown.page
        assert scores(page) == ["9.807", "20.000"]
        assert page.evaluate("window.taken") is None
        assert FORMULA in page.locator("#table").inner_text()
        file = saved(page, "CSV")
        loaded(file, "minutes", "accelerators", "runs")
        lines = file.read_text("utf-8-sig").splitlines()
        assert lines[0].startswith("minutes,unscaled,official,round,benchmark,")
        assert lines[1].startswith("9.8065,")
        assert "\"'=1+1" in lines[1]
        assert len(lines) == 3
