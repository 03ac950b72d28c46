"""The columns of the table of results."""

from __future__ import annotations

from msgspec.structs import replace

from mlperf_pkg.checker.values import Rank, Standing
from mlperf_pkg.commands.page.columns import choices, columns, in_words
from mlperf_pkg.config import Price
from tests.commands.page.test_cards import entry

STANDING = Standing("2.0", 8, Rank(3, 12), "X1", Rank(1, 2))


def test_a_column_without_values_is_left_out() -> None:
    plain = entry(5.0, 8)
    titles = [column.title for column in columns([plain])]
    rare = {"Round", "Nodes", "Batch size", "Energy (kJ)", "Price (USD)", "Published rank"}
    assert not rare & set(titles)
    assert titles.index("Benchmark") < titles.index("Accelerator") < titles.index("Score")


def test_values() -> None:
    full = entry(5.0, 8, energy_joules=1_234_567.0)
    full = replace(full, price=Price(149000, "a list"), standing=STANDING)
    full = replace(full, settings={"global_batch_size": "3072"})
    row = {column.title: column.text(full) for column in columns([full, entry(6.0, 16)])}
    assert row["Energy (kJ)"] == "1,235"
    assert row["Price (USD)"] == "149,000"
    assert row["Published rank"] == "3 of 12"
    assert row["Batch size"] == "3072"
    assert row["Availability"] == "onprem"
    assert row["Score"] == "5.000"


def test_a_standing_in_words() -> None:
    assert in_words(STANDING) == "3 of 12 in 2.0 on 8 accelerators, 1 of 2 with X1"
    assert in_words(replace(STANDING, of_model=None)) == "3 of 12 in 2.0 on 8 accelerators"


def test_numbers_to_filter_by_are_in_their_order() -> None:
    entries = [entry(5.0, size) for size in (1024, 8, 16)]
    assert choices(columns(entries), entries) == {"Accelerators": ["8", "16", "1,024"]}
