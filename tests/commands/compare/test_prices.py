"""List prices: files of them, and whose price is whose."""

from __future__ import annotations

from pathlib import Path

import pytest

from mlperf_pkg.commands.compare.ratios import all_prices, price_of
from mlperf_pkg.config import Price, read_prices
from mlperf_pkg.errors import UserError

PRICES = {
    "bow-pod16": Price(1.0, "list"),
    "dgx-a100": Price(2.0, "list", also=("dgxa100_ngc*", "bow-pod16-*")),
}


@pytest.mark.parametrize(
    ("names", "usd"),
    [
        (("bow-pod16",), 1.0),
        (("x", "Bow Pod16"), 1.0),
        (("x", "BOW_POD16"), 1.0),
        (("dgxa100_ngc21.05_mxnet",), 2.0),
        (("dgxa100_n8_ngc21.05_mxnet",), None),
        # The name of a price goes before what another is also called.
        (("bow-pod16-closed", "Bow-Pod16"), 1.0),
        (("bow-pod16-closed", None), 2.0),
        (("bow-pod64",), None),
        (("-", ""), None),
    ],
)
def test_a_price_is_found_by_any_name_of_the_system(
    names: tuple[str | None, ...], usd: float | None
) -> None:
    price = price_of(PRICES, *names)
    assert (price.usd if price else None) == usd


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("pod:\n  price_usd: cheap\n  source: x\n", ":2: pod.price_usd is 'cheap'; expected"),
        ("pod:\n  price_usd: 0\n  source: x\n", ":2: pod.price_usd is '0'; expected"),
        ("a: {price_usd: 1, source: x}\npod: {price_usd: 1}\n", ":2: pod lacks source"),
        ("pod:\n  price_usd: 1\n  source: x\n  data: 1\n", ":4: unknown key 'data'; did you mean"),
        ("pod: 5\n", ":1: pod is '5'; expected a mapping"),
        ("- pod\n", ":1: the file is ['pod']; expected a mapping"),
        (
            "a: {price_usd: 1, source: x}\na: {price_usd: 2, source: x}\n",
            ":2: the key 'a' is repeated",
        ),
        ("a: [", ":1: "),
    ],
)
def test_a_file_of_prices_is_refused_with_its_line(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "prices.yaml"
    path.write_text(text, "utf-8")
    with pytest.raises(UserError) as caught:
        read_prices(path)
    assert message in str(caught.value)


def test_the_nearest_price_counts(tmp_path: Path) -> None:
    def write(path: Path, *prices: tuple[str, int]) -> Path:
        path.parent.mkdir(exist_ok=True)
        lines = (f"{name}: {{price_usd: {usd}, source: x}}\n" for name, usd in prices)
        path.write_text("".join(lines), "utf-8")
        return path

    write(tmp_path / "systems" / "prices.yaml", ("a", 1), ("b", 1), ("c", 1))
    file = write(tmp_path / "own.yaml", ("c", 3))
    prices = all_prices(file, {"b": Price(2.0, "x"), "c": Price(2.0, "x")}, tmp_path)
    assert {name: price.usd for name, price in prices.items()} == {"a": 1.0, "b": 2.0, "c": 3.0}


def test_prices_travel_with_the_package(tmp_path: Path) -> None:
    prices = all_prices(None, {}, tmp_path)
    assert (prices["ipu-pod16"].usd, prices["dgx-a100-640gb"].usd) == (149000.0, 300000.0)
