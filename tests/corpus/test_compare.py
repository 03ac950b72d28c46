"""Claims that were published of results, reproduced from their logs."""

import json
from collections.abc import Sequence
from typing import Any

import pytest

from tests.helpers.corpus import CORPUS, needs_corpus
from tests.helpers.program import call

pytestmark = needs_corpus


def compared(*paths: str, options: Sequence[str] = ()) -> list[dict[str, Any]]:
    names = [f"{CORPUS}/{path}" for path in paths]
    result = call("compare", *names, *options, "--format", "json")
    assert result.exit_code == 0, result.output
    rows: list[dict[str, Any]] = json.loads(result.stdout)["results"]
    return rows


@pytest.mark.parametrize(
    ("dgx", "pod", "minutes", "per_dollar"),
    [
        ("dgxa100_ngc21.05_mxnet/resnet", "ipu-pod16-TF1/resnet", (28.771, 37.115), "1.6"),
        ("dgxa100_ngc21.05_pytorch/bert", "ipu-pod16-POPART-closed/bert", (21.693, 34.489), "1.3"),
    ],
)
def test_performance_per_dollar_of_round_1_0(
    dgx: str, pod: str, minutes: tuple[float, float], per_dollar: str
) -> None:
    """Scores were not normalised in this round."""
    paths = (f"v1.0/NVIDIA/results/{dgx}", f"v1.0/Graphcore/results/{pod}")
    rows = compared(*paths, options=["--keep-scaling"])
    assert tuple(round(row["minutes"], 3) for row in rows) == minutes
    assert [row["price_usd"] for row in rows] == [300_000, 149_000]
    assert f"{rows[1]['performance_per_dollar']:.1f}" == per_dollar


def test_throughput_agrees_with_the_log() -> None:
    rows = compared("v2.0/NVIDIA", "v2.0/Krai")
    logged = [row for row in rows if row["logged_throughput"] and row["samples_per_second"]]
    # ssd logs that of one accelerator; unet3d evaluates long.
    alike = [row for row in logged if row["benchmark"] not in ("ssd", "unet3d")]
    assert len(alike) > 8
    for row in alike:
        assert row["samples_per_second"] == pytest.approx(row["logged_throughput"], rel=0.05)
