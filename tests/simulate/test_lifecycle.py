"""What the logs of particular benchmarks look like."""

from __future__ import annotations

import pytest

from mlperf_pkg.simulate import RunPlan, simulate_run
from tests.helpers.simulated_logs import positions


@pytest.mark.parametrize(
    ("usage", "round_name", "benchmark", "batch_size", "expected"),
    [
        ("training", "6.1", "qwen35_397b_grpo", 512, [5120]),
        ("training", "6.1", "deepseekv3_671b", 16384, [704512, 720896, 737280, 753664]),
        ("training", "6.1", "dlrmv4", 8192, [57344000, 59637760, 61931520]),
        ("training", "5.1", "llama31_405b", 1152, [276480, 294912]),
        ("training", "5.0", "llama31_405b", 1152, [46080, 92160]),
        ("training", "4.1", "llama2_70b_lora", 64, [4224, 4608, 4992]),
        ("training", "3.1", "stable_diffusion", 2048, [250, 250, 500, 500]),
        ("training", "4.0", "stable_diffusion", 2048, [512000, 512000, 1024000]),
        ("training", "3.0", "unet3d", 56, [1000, 1020]),
        ("training", "4.0", "unet3d", 56, [168000, 171360]),
        ("training", "3.0", "gpt3", 2048, [50331648, 100663296]),
        ("training", "5.1", "rgat", 32768, [0.05, 0.1, 0.15]),
        ("hpc", "3.0", "openfold", 128, [5120, 10240]),
    ],
)
def test_first_evaluations(
    usage: str, round_name: str, benchmark: str, batch_size: int, expected: list[float]
) -> None:
    log = simulate_run(
        RunPlan(
            round_name, benchmark, "closed", "box16", "Org", batch_size=batch_size, usage=usage
        ),
        1,
    )
    assert positions(log)[: len(expected)] == expected
