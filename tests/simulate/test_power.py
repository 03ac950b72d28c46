"""Simulated power logs give the energy that they should by the official summarizer."""

from itertools import pairwise
from pathlib import Path

import pytest
from mlperf_logging.result_summarizer import result_summarizer

from mlperf_pkg.errors import UserError
from mlperf_pkg.simulate import RunPlan, simulate_power
from tests.helpers.logs import records

PLAN = RunPlan("4.1", "llama2_70b_lora", "closed", "box16", "Example Org", accelerators=16)
START = 1_728_510_042_000


@pytest.mark.parametrize(("seconds", "switches"), [(1, 1), (59.5, 0), (600, 2)])
def test_energy(seconds: float, switches: int, tmp_path: Path) -> None:
    length = int(seconds * 1000)
    logs = simulate_power(PLAN, 1, START, START + length, nodes=2, switches=switches)
    folder = tmp_path / "power" / "result_0"
    folder.mkdir(parents=True)
    for name, log in logs.items():
        (folder / name).write_bytes(log)
    log = "x/result_0.txt"
    joules = result_summarizer._compute_total_power(str(tmp_path), log, length, "4.1.0")
    watts = 0.96 * (2 * (1500 + 8 * 700) + switches * 900)
    assert joules == pytest.approx(watts * seconds, rel=0.05)
    assert sorted(logs) == ["node_0.txt", "node_1.txt", "sw_0.txt", "sw_1.txt"][: 2 + switches]


def test_samples_are_many_and_a_second_apart_at_most() -> None:
    for length, samples in [(500, 60), (59_000, 60), (120_500, 121)]:
        (log,) = simulate_power(PLAN, 1, START, START + length, nodes=1, switches=0).values()
        times = [record["time_ms"] for record in records(log) if record["key"] == "power_reading"]
        assert len(times) == samples
        assert all(0 <= later - earlier <= 1000 for earlier, later in pairwise([START, *times]))
        assert times[-1] == START + length


def test_same_seed_same_bytes_and_each_meter_its_own() -> None:
    one, again, other = (
        simulate_power(PLAN, seed, START, START + 5000, nodes=2, switches=2) for seed in (1, 1, 2)
    )
    assert one == again
    assert len({*one.values(), *other.values()}) == 8


def test_impossible_measurements_are_refused() -> None:
    for length, nodes, switches, message in [
        (0, 1, 1, "stop_ms - start_ms must be a positive number, not 0"),
        (1, 0, 1, "nodes must be a positive number, not 0"),
        (1, 1, -1, "switches must not be negative, not -1"),
    ]:
        with pytest.raises(UserError, match=message):
            simulate_power(PLAN, 1, START, START + length, nodes=nodes, switches=switches)
