"""The text of the page of all rounds: its policy, its size, and that every value in it is escaped."""

import base64
import json
import re
import zlib
from typing import Any

import pytest

from mlperf_pkg.commands.page.history import MAX_BYTES, History, history_html, small_chart
from tests.commands.page.test_history import entry, of
from tests.commands.page.test_html import assert_policy_of_page

HOSTILE = "</script><img src=x onerror=alert(1)>\u202e{{ 7 * 7 }}"


@pytest.fixture(scope="module")
def page(record: History) -> str:
    return history_html(record)


def unpacked(page: str, element: str) -> Any:
    match = re.search(f'id="{element}">([^<]*)<', page)
    assert match
    return json.loads(zlib.decompress(base64.b64decode(match[1]), 31))


def test_the_page_of_the_record_is_within_its_budget(record: History) -> None:
    assert len(history_html(record).encode()) < MAX_BYTES


def test_the_policy_allows_the_scripts_of_the_page_and_nothing_else(page: str) -> None:
    assert_policy_of_page(page)


def test_every_link_to_a_result_is_that_of_a_row(record: History, page: str) -> None:
    links = set(re.findall('href="(#r=[^"]*)"', page))
    assert len(links) > 200
    assert links <= {one.link for one in record.entries}


def test_no_text_of_a_result_is_markup() -> None:
    fields = ("submitter", "system", "system_name", "accelerator_model", "framework", "status")
    hostile = entry("5.0", 9.0, path=f"{HOSTILE}/resnet", **dict.fromkeys(fields, HOSTILE))
    text = history_html(of(entry("4.1", 20.0), hostile))
    assert "<img" not in text
    assert text.count("<script") == 2
    assert "\u202e" not in text


def test_a_new_target_is_marked() -> None:
    sets = [entry("0.7", 50.0, "bert"), entry("1.0", 21.0, "bert")]
    text = history_html(of(*sets))
    assert text.count('<td class="n new">') == 2  # overall and on 8 accelerators
    [trend] = of(*sets).trends
    assert [kind for kind, _ in small_chart(trend)] == ["eight", "overall"] * 2


def test_own_results_are_named_first() -> None:
    mine = entry("5.0", 10.0, "bert", path="MINE/results/mine/bert")
    text = history_html(of(entry("5.0", 20.0, "bert"), own=(mine,)))
    assert "<b>Your results</b> (1, 1 not published)" in text
    assert "bert 5.0, 10.000 min on 8 \u00d7 A1" in text
    assert unpacked(text, "data")["rows"]["own"] == ["v", "others", 1, "yours", 1]
