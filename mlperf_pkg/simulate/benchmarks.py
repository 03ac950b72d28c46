"""The benchmarks, one recipe each: what the rulebook and the reference points do not say.

Evaluations come as often as training_rules.adoc (Evaluation frequency) or the official checker
asks. A benchmark that a round changes has a recipe for each, ``CHANGED`` by the round that began.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil, floor

from msgspec.structs import replace

from mlperf_pkg.rulebook.model import version_of
from mlperf_pkg.simulate import settings
from mlperf_pkg.simulate.model import Laps, Recipe

_TOKENS = 2048
_EPOCH_OF_UNET3D = 168
_DLRMV4_SAMPLES = 2_290_835_423


def _rounded(samples: float, batch: int) -> int:
    """``samples`` in whole batches."""
    return ceil(samples / batch) * batch


def recipe_of(benchmark: str, round_name: str) -> Recipe | None:
    """The recipe of a benchmark in a round; None where there is none."""
    changes = CHANGED.get(benchmark, {})
    since = [name for name in changes if version_of(name) <= version_of(round_name)]
    return changes[max(since, key=version_of)] if since else RECIPES.get(benchmark)


def _lora_first(batch: int) -> int:
    return _rounded(384 * (floor(0.125 * batch + 2) + 1), batch)


def _unet3d_epochs(epochs: int, batch: int) -> int:
    return ceil(epochs * _EPOCH_OF_UNET3D / _rounded(_EPOCH_OF_UNET3D, batch))


def _unet3d_samples(epochs: int, batch: int) -> int:
    return _unet3d_epochs(epochs, batch) * _rounded(_EPOCH_OF_UNET3D, batch)


def _dlrmv4_every(batch: int) -> int:
    return max(1, ceil(0.001 * _DLRMV4_SAMPLES / batch)) * batch


def _dlrmv4_first(batch: int) -> int:
    every = _dlrmv4_every(batch)
    return ceil(floor((4480 * batch + 135_331_840) / 3) / every) * every


_RETINANET = Recipe(
    untrained=0.0,
    every=lambda _: 1,
    laps=Laps.EACH,
    accelerator_minutes=700,
    samples_per_accelerator=32,
    optimizers=("adam", "sgd"),
    values=settings.SSD,
)
_RGAT = Recipe(
    untrained=0.6,
    every=lambda _: 0.05,
    accelerator_minutes=60,
    samples_per_accelerator=2048,
    values=settings.RGAT,
)
_UNET3D = Recipe(
    untrained=0.0,
    every=lambda batch: _unet3d_epochs(20, batch),
    first=lambda batch: _unet3d_epochs(1000, batch),
    accelerator_minutes=180,
    samples_per_accelerator=7,
    optimizers=("sgd",),
    values=settings.UNET3D,
)
_STABLE_DIFFUSION = Recipe(
    untrained={"FID": 300.0, "CLIP": 0.03},
    every=lambda batch: _rounded(512_000, batch),
    accelerator_minutes=2500,
    samples_per_accelerator=16,
    values=settings.STABLE_DIFFUSION,
)
_LLAMA31_8B = Recipe(
    untrained=9.0,
    every=lambda batch: _rounded(12_288, batch),
    accelerator_minutes=800,
    samples_per_accelerator=2,
    values=settings.LLAMA31_8B,
)
_LLAMA31_405B = Recipe(
    untrained=9.0,
    every=lambda batch: _rounded(46_080, batch),
    accelerator_minutes=60_000,
    samples_per_accelerator=2,
    values=settings.LLAMA31_405B,
)

RECIPES: Mapping[str, Recipe] = {
    "resnet": Recipe(
        untrained=0.001,
        every=lambda _: 4,
        free_offset=True,
        laps=Laps.EACH,
        accelerator_minutes=200,
        samples_per_accelerator=204,
        optimizers=("lars", "sgd"),
        always=settings.RESNET_ALWAYS,
        values=settings.RESNET,
    ),
    "bert": Recipe(
        untrained=0.3,
        every=lambda batch: int(0.05 * (230.23 * batch + 3_000_000) // 25_000) * 25_000,
        laps=Laps.WHOLE,
        accelerator_minutes=140,
        samples_per_accelerator=28,
        optimizers=("lamb",),
        always=settings.BERT_ALWAYS,
        values=settings.BERT,
    ),
    "rnnt": Recipe(
        untrained=1.0,
        every=lambda _: 1,
        laps=Laps.EACH,
        accelerator_minutes=240,
        samples_per_accelerator=128,
        values=settings.RNNT,
    ),
    "ssd": _RETINANET,
    "retinanet": _RETINANET,
    "gnn": _RGAT,
    "rgat": _RGAT,
    "unet3d": _UNET3D,
    "maskrcnn": Recipe(
        untrained={"BBOX": 0.0, "SEGM": 0.0},
        every=lambda _: 1,
        laps=Laps.EACH,
        accelerator_minutes=400,
        samples_per_accelerator=12,
        optimizers=("sgd",),
        values=settings.MASKRCNN,
    ),
    "dlrm": Recipe(
        untrained=0.7,
        every=lambda _: 0.05,
        accelerator_minutes=20,
        samples_per_accelerator=7168,
        optimizers=("sgd",),
        values=settings.DLRM,
    ),
    "dlrm_dcnv2": Recipe(
        untrained=0.75,
        every=lambda _: 0.05,
        accelerator_minutes=60,
        samples_per_accelerator=8192,
        values=settings.DLRM,
    ),
    "gnmt": Recipe(
        untrained=0.0,
        every=lambda _: 1,
        laps=Laps.EACH,
        accelerator_minutes=80,
        samples_per_accelerator=256,
        optimizers=("adam",),
        values=settings.GNMT,
        typical=(4096, (4, 4, 5, 5, 5, 6)),
    ),
    "transformer": Recipe(
        untrained=0.0,
        every=lambda _: 1,
        laps=Laps.EACH,
        accelerator_minutes=80,
        samples_per_accelerator=128,
        values=settings.TRANSFORMER,
        typical=(2048, (4, 4, 4, 5, 5, 5)),
    ),
    "minigo": Recipe(
        untrained=0.1,
        every=lambda _: 1,
        laps=Laps.EACH,
        lap_records={"actual_selfplay_games_per_generation": 8192},
        accelerator_minutes=4000,
        samples_per_accelerator=256,
        values=settings.MINIGO,
        typical=(4096, (41, 43, 45, 45, 47, 49)),
    ),
    "gpt3": Recipe(
        untrained=2.8,
        every=lambda batch: _rounded(24_576, batch) * _TOKENS,
        accelerator_minutes=40_000,
        samples_per_accelerator=3,
        values=settings.GPT3,
    ),
    "stable_diffusion": _STABLE_DIFFUSION,
    "llama2_70b_lora": Recipe(
        untrained=1.0,
        every=lambda batch: _rounded(384, batch),
        first=_lora_first,
        accelerator_minutes=230,
        samples_per_accelerator=1,
        optimizers=("adamw",),
        values=settings.LLAMA2_70B_LORA,
    ),
    "llama31_405b": _LLAMA31_405B,
    "llama31_8b": _LLAMA31_8B,
    "gpt_oss_20b": _LLAMA31_8B,
    "flux1": Recipe(
        untrained=0.8,
        every=lambda batch: _rounded(262_144, batch),
        accelerator_minutes=3000,
        samples_per_accelerator=32,
        values=settings.FLUX1,
    ),
    "deepseekv3_671b": Recipe(
        untrained=9.0,
        every=lambda batch: batch,
        first=lambda batch: floor(42 + 24_576 / batch) * batch,
        accelerator_minutes=60_000,
        samples_per_accelerator=64,
        values=settings.DEEPSEEKV3_671B,
    ),
    "dlrmv4": Recipe(
        untrained=0.6,
        every=_dlrmv4_every,
        first=_dlrmv4_first,
        accelerator_minutes=400,
        samples_per_accelerator=1024,
        values=settings.DLRMV4,
    ),
    "qwen35_397b_grpo": Recipe(
        untrained=0.2,
        every=lambda batch: batch,
        first=lambda batch: ceil(2.5 + 3840 / batch) * batch,
        accelerator_minutes=60_000,
        samples_per_accelerator=2,
        values=settings.QWEN35_397B,
    ),
    "cosmoflow": Recipe(
        untrained=0.6,
        every=lambda _: 1,
        laps=Laps.EACH,
        accelerator_minutes=300,
        samples_per_accelerator=8,
        optimizers=("sgd", "SGD"),
        values=settings.COSMOFLOW,
    ),
    "deepcam": Recipe(
        untrained=0.4,
        every=lambda _: 1,
        laps=Laps.EACH,
        accelerator_minutes=400,
        samples_per_accelerator=8,
        optimizers=("LAMB", "AdamW", "Adam"),
        values=settings.DEEPCAM,
    ),
    "oc20": Recipe(
        untrained=0.08,
        every=lambda _: 1,
        laps=Laps.EACH,
        accelerator_minutes=1500,
        samples_per_accelerator=16,
        values=settings.OC20,
    ),
    "openfold": Recipe(
        untrained=0.5,
        every=lambda batch: 40 * batch,
        laps=Laps.WHOLE,
        accelerator_minutes=1200,
        samples_per_accelerator=8,
    ),
}

CHANGED: Mapping[str, Mapping[str, Recipe]] = {
    "unet3d": {
        "3.1": replace(
            _UNET3D,
            every=lambda batch: _unet3d_samples(20, batch),
            first=lambda batch: _unet3d_samples(1000, batch),
        ),
    },
    "ssd": {
        "0.7": replace(_RETINANET, every=lambda _: 5, optimizers=("sgd",), values=settings.COCO),
        "2.0": _RETINANET,
    },
    "llama31_405b": {
        "5.1": replace(
            _LLAMA31_405B,
            every=lambda batch: _rounded(18_432, batch),
            first=lambda batch: _rounded(18_432 * (floor(0.0026 * batch + 12) + 1), batch),
        ),
    },
    "stable_diffusion": {
        "3.1": replace(_STABLE_DIFFUSION, every=lambda batch: ceil(512_000 / batch)),
        "4.0": _STABLE_DIFFUSION,
    },
}
