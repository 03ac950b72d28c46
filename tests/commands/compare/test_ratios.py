"""Ratios of results to a baseline, and to earlier rounds."""

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from mlperf_pkg.commands.compare.ratios import ComparisonRow, Result, all_prices, compare, price_of
from mlperf_pkg.config import Price, read_prices
from mlperf_pkg.errors import UserError
from tests.helpers.published import result

PRICES = {"dgx": Price(300_000.0, "list"), "pod": Price(150_000.0, "list", "2021-06-30")}
A = result(hardware="chip", framework="torch", samples_per_second=800.0, energy_joules=4e6)
OTHER = {"argument": 1, "submitter": "Two", "system": "pod", "minutes": 25.0}
B = replace(A, **OTHER, accelerators=16, nodes=2, energy_joules=2e6)


def rows(*results: Result) -> dict[str, ComparisonRow]:
    made = compare(results, PRICES, lambda result: result.argument == 0)
    return {row.result.name: row for row in made}


def test_ratios_are_relative_to_the_baseline() -> None:
    made = rows(A, B)
    own, other = made["2.0 ACME/dgx"], made["2.0 Two/pod"]
    assert (own.baseline, other.baseline) == (True, False)
    assert (own.speed, own.performance_per_dollar, own.performance_per_joule) == (1.0, 1.0, 1.0)
    assert (other.speed, other.speed_per_accelerator, other.speed_per_node) == (0.8, 0.4, 0.4)
    assert (other.performance_per_dollar, other.performance_per_joule) == (1.6, 2.0)
    assert other.samples_per_second_per_accelerator == 50.0
    assert (other.price_usd, other.price_date) == (150_000.0, "2021-06-30")


@pytest.mark.parametrize(
    ("changes", "lacking"),
    [
        ({"minutes": None}, "speed speed_per_accelerator speed_per_node performance_per_dollar"),
        ({"accelerators": None}, "speed_per_accelerator samples_per_second_per_accelerator"),
        ({"nodes": 0}, "speed_per_node samples_per_second_per_node"),
        ({"system": "c"}, "performance_per_dollar"),
        ({"energy_joules": None}, "performance_per_joule"),
    ],
)
def test_what_is_not_known_has_no_ratio(
    changes: dict[str, None] | dict[str, int] | dict[str, str], lacking: str
) -> None:
    result = replace(B, **changes)
    row = rows(A, result)[result.name]
    names = [name for name in row.__struct_fields__ if name.startswith(("s", "performance"))]
    assert [name for name in names if getattr(row, name) is None] == lacking.split()


@pytest.mark.parametrize(
    "changes",
    [{"benchmark": "ssd"}, {"division": "open"}, {"scaling": "weak"}, {"round": "0.7"}],
)
def test_only_results_of_one_group_are_compared(changes: dict[str, str]) -> None:
    result = replace(B, **changes)
    assert rows(A, result)[result.name].speed is None


BETTER = ("1.1", "dgx", 1.5)
NO_PREVIOUS = (None, None, None)


@pytest.mark.parametrize(
    ("others", "improvement"),
    [
        pytest.param([{}], BETTER, id="an earlier round"),
        pytest.param([{}, {"round": "1.0", "minutes": 9.0}], BETTER, id="the latest one"),
        pytest.param([{"system": "x", "minutes": 9.0}, {}], BETTER, id="that of the same name"),
        pytest.param(
            [{"system": "x"}, {"system": "y", "framework": "tf", "minutes": 9.0}],
            ("1.1", "x", 1.5),
            id="that of the same software",
        ),
        pytest.param([{"hardware": None}], BETTER, id="unknown hardware"),
        pytest.param([{"submitter": "Two"}], NO_PREVIOUS, id="another submitter"),
        pytest.param([{"hardware": "other"}], NO_PREVIOUS, id="other hardware"),
        pytest.param([{"accelerators": 16}], NO_PREVIOUS, id="another size"),
        pytest.param([{"round": "10.0"}], NO_PREVIOUS, id="a later round"),
        pytest.param([{"round": None}], NO_PREVIOUS, id="no round"),
        pytest.param([{"round": "0.7"}], NO_PREVIOUS, id="another target"),
        pytest.param([{"minutes": None}], NO_PREVIOUS, id="no minutes"),
    ],
)
def test_improvement_is_over_the_same_system_in_the_latest_earlier_round(
    others: list[dict[str, Any]], improvement: tuple[str | float | None, ...]
) -> None:
    earlier = {"round": "1.1", "minutes": 30.0}
    results = [replace(A, **{**earlier, **changes}) for changes in others]
    row = next(row for row in compare([*results, A], {}, lambda _: False) if row.result is A)
    assert (row.previous_round, row.previous_system, row.improvement) == improvement


def test_a_result_goes_by_system_submitter_and_round() -> None:
    names = ("dgx", "DGX", "acme", "ACME/dgx", "2.0 dgx", "2.0 acme/dgx", "2.0*", "a*", A.path)
    assert [name for name in names if not A.matches(name)] == []
    assert not A.matches("b")
    assert not A.matches("0.7 dgx")


LIST = {
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
    names: tuple[str] | tuple[str, str] | tuple[str, None], usd: float | None
) -> None:
    price = price_of(LIST, *names)
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
        ("a: {}\na: {}\n", ":2: the key 'a' is repeated"),
        ("a: [", ":1: "),
    ],
)
def test_a_file_of_prices_is_refused_with_its_line(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "prices.yaml"
    path.write_text(text, "utf-8")
    with pytest.raises(UserError) as caught:
        read_prices(path)
    assert message in str(caught.value)
    assert "such as dgx-a100: {price_usd: 300000, source: " in str(caught.value)


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
    prices = all_prices(None, {}, tmp_path / "systems")  # those of the package
    assert (prices["ipu-pod16"].usd, prices["dgx-a100-640gb"].usd) == (149000.0, 300000.0)
