"""Claims that were published of results, reproduced from their logs."""

import json
from typing import Any

import pytest

from tests.helpers.corpus import CORPUS, needs_corpus
from tests.helpers.program import call

pytestmark = needs_corpus


def compared(*arguments: str) -> dict[tuple[str, ...], dict[str, Any]]:
    """The rows by round, system and benchmark; arguments with a slash are in the corpus."""
    paths = [f"{CORPUS}/{argument}" if "/" in argument else argument for argument in arguments]
    result = call("compare", *paths, "--format", "json")
    assert result.exit_code == 0, result.output
    rows = json.loads(result.stdout)["results"]
    return {(row["round"], row["system"], row["benchmark"]): row for row in rows}


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
    rows = list(compared(*paths, "--keep-scaling").values())
    assert tuple(round(row["minutes"], 3) for row in rows) == minutes
    assert [row["price_usd"] for row in rows] == [300_000, 149_000]
    assert f"{rows[1]['performance_per_dollar']:.1f}" == per_dollar


def test_a_faster_round_and_another_system() -> None:
    """A Bow Pod has no price of its own, and does not improve on a system of another name."""
    systems = ("v1.0", "ipu-pod16-TF1"), ("v1.1", "ipu-pod16-TF1"), ("v2.0", "ipu-pod16-TF1-closed")
    rows = compared(*(f"{tree}/Graphcore/results/{name}/resnet" for tree, name in systems))
    first, second, bow = (rows[tree[1:], name, "resnet"] for tree, name in systems)
    assert first["improvement"] is None
    assert second["improvement"] == pytest.approx(37.115 / 28.335, abs=1e-3)
    assert bow["speed"] / second["speed"] == pytest.approx(28.335 / 19.635, abs=1e-3)
    assert (bow["improvement"], bow["price_usd"]) == (None, None)


def test_throughput_agrees_with_the_log() -> None:
    rows = compared("v2.0/NVIDIA", "v2.0/Krai").values()
    logged = [row for row in rows if row["logged_throughput"] and row["samples_per_second"]]
    # ssd logs that of one accelerator; unet3d evaluates long.
    alike = [row for row in logged if row["benchmark"] not in ("ssd", "unet3d")]
    assert len(alike) > 8
    for row in alike:
        assert row["samples_per_second"] == pytest.approx(row["logged_throughput"], rel=0.05)
