"""Values of hyperparameters where the rules leave them free: those that submitters use.

A tuple holds several to try in turn; a function takes the values chosen before. What a benchmark
does not have here is taken from the hyperparameters of its reference points, or from its rule.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil, sqrt

from mlperf_pkg.simulate.model import Known, Setting

Settings = Mapping[str, Setting]


def _batch(known: Known) -> int:
    return int(known["global_batch_size"])


def _from_samples(samples: float, batch: int) -> int:
    """Steps in which ``samples`` are seen."""
    return ceil(samples / batch)


_IMAGES = 1_281_167
_COSINE_STEPS = 1_200_000
_GPT3_LARGE = 4096
"""From this batch size on, the higher learning rate is due."""

COMMON: Settings = {
    "gradient_accumulation_steps": 1,
    "lowest_numerical_precision_in_linear": "bfloat16",
    "lowest_numerical_precision_in_attn": "bfloat16",
    "lowest_numerical_precision_in_comm": "bfloat16",
    "config_filename": "config.sh",
}

RESNET_ALWAYS: Settings = {
    "gradient_accumulation_steps": 1,
    "train_samples": _IMAGES,
    "eval_samples": 50_000,
    "model_bn_span": 204,
}
RESNET: Settings = {
    "lars_opt_base_learning_rate": lambda known: round(0.18 * sqrt(_batch(known)), 3),
    "lars_opt_learning_rate_decay_steps": lambda known: ceil(38 * _IMAGES / _batch(known)),
    "lars_opt_learning_rate_warmup_epochs": 2,
    "lars_opt_momentum": 0.9,
    "lars_opt_weight_decay": 5e-05,
    "sgd_opt_base_learning_rate": lambda known: round(0.1 * _batch(known) / 256, 3),
    "sgd_opt_learning_rate_decay_poly_power": 2,
    "sgd_opt_learning_rate_decay_steps": lambda known: ceil(38 * _IMAGES / _batch(known)),
    "sgd_opt_momentum": 0.9,
    "sgd_opt_weight_decay": 5e-05,
    "opt_learning_rate_warmup_epochs": 5,
}
BERT_ALWAYS: Settings = {
    "gradient_accumulation_steps": 1,
    "max_sequence_length": 512,
    "train_samples": 156_725_653,
    "eval_samples": 10_000,
}
BERT: Settings = {
    "opt_base_learning_rate": lambda known: round(1.9e-05 * sqrt(_batch(known)), 6),
    "opt_epsilon": 1e-06,
    "opt_lamb_epsilon": 1e-06,
    "opt_learning_rate_training_steps": lambda known: ceil(3_600_000 / _batch(known)),
    "opt_learning_rate_warmup_steps": 0,
    "num_warmup_steps": 0,
    "start_warmup_step": 0,
    "opt_lamb_beta_1": 0.9,
    "opt_lamb_beta_2": 0.999,
    "opt_lamb_weight_decay_rate": 0.01,
}
RNNT: Settings = {
    "train_samples": 278_528,
    "data_train_max_duration": 16.7,
    "data_train_num_buckets": 6,
    "model_eval_ema_factor": 0.995,
    "model_weights_initialization_scale": 0.5,
    "opt_base_learning_rate": lambda known: round(0.00016 * sqrt(_batch(known)), 6),
    "opt_lamb_learning_rate_decay_poly_power": 0.94,
    "opt_lamb_learning_rate_hold_epochs": 33,
    "opt_learning_rate_warmup_epochs": 6,
    "opt_lamb_beta_1": 0.9,
    "opt_lamb_beta_2": 0.999,
}
SSD: Settings = {"train_samples": 1_170_301, "eval_samples": 24_781}
RGAT: Settings = {"train_samples": 94_605_581, "eval_samples": 788_379}
UNET3D: Settings = {
    "opt_momentum": 0.9,
    "oversampling": 0.4,
    "training_input_shape": [128, 128, 128],
    "validation_input_shape": [128, 128, 128],
    "validation_overlap": 0.5,
}
COCO: Settings = {"train_samples": 118_287, "eval_samples": 5000}
MASKRCNN: Settings = {
    **COCO,
    "opt_learning_rate_decay_steps": lambda known: [
        _from_samples(1_536_000, _batch(known)),
        _from_samples(2_048_000, _batch(known)),
    ],
    "min_image_size": 800,
    "max_image_size": 1333,
}
DLRM: Settings = {"train_samples": 4_195_197_692, "eval_samples": 89_137_319}
GNMT: Settings = {
    "train_samples": 3_442_299,
    "eval_samples": 3003,
    "opt_base_learning_rate": 0.002,
    "opt_learning_rate_alt_decay_func": True,
    "opt_learning_rate_decay_factor": 0.5,
    "opt_learning_rate_decay_interval": 283,
    "opt_learning_rate_decay_steps": 4,
    "opt_learning_rate_remain_steps": 2259,
    "max_sequence_length": 75,
    "opt_learning_rate_alt_warmup_func": True,
    "opt_learning_rate_warmup_steps": 200,
}
TRANSFORMER: Settings = {
    "train_samples": 566_340,
    "eval_samples": 3003,
    "opt_base_learning_rate": 1.7,
    "opt_learning_rate_warmup_steps": 664,
    "opt_adam_beta_1": 0.9,
    "opt_adam_beta_2": 0.98,
    "max_sequence_length": 80,
}
MINIGO: Settings = {
    "train_batch_size": _batch,
    "lr_boundaries": [128, 10_000, 20_000],
    "lr_rates": [0.016, 0.16, 0.016, 0.0016],
    "train_samples": 8192,
    "eval_samples": 8192,
}
GPT3: Settings = {
    "opt_base_learning_rate": lambda known: 2e-5 if _batch(known) < _GPT3_LARGE else 3e-5,
    "opt_end_learning_rate": lambda known: known["opt_base_learning_rate"] / 10,
    "opt_learning_rate_decay_steps": lambda known: _from_samples(108_600 * 1536, _batch(known)),
    "opt_learning_rate_warmup_steps": lambda known: _from_samples(265 * 1536, _batch(known)),
    "train_samples": 1_574_207_408,
    "eval_samples": 24_567,
    "init_checkpoint_step": lambda known: _from_samples(4000 * 1536, _batch(known)),
}
STABLE_DIFFUSION: Settings = {"train_samples": 6_513_144, "eval_samples": 30_000}
LLAMA2_70B_LORA: Settings = {
    "train_samples": 3901,
    "eval_samples": 173,
    "opt_learning_rate_training_steps": 1024,
    "opt_gradient_clip_norm": 0.3,
    "opt_adamw_weight_decay": 0.0001,
}
LLAMA31_405B: Settings = {
    "opt_base_learning_rate": (
        lambda known: round(8e-5 * _batch(known) / 1152, 8),
        lambda known: 8e-5 * _batch(known) / 1152,
    ),
    "opt_end_learning_rate": 8e-07,
    "opt_learning_rate_warmup_steps": lambda known: _from_samples(8000 * 1152, _batch(known)),
    "opt_learning_rate_decay_steps": lambda known: (
        _from_samples(_COSINE_STEPS * 1152, _batch(known))
        - _from_samples(8000 * 1152, _batch(known))
    ),
    "opt_learning_rate_decay_schedule": "cosine with linear warmup",
    "opt_adamw_beta_1": 0.9,
    "opt_adamw_beta_2": 0.95,
    "opt_adamw_epsilon": 1e-05,
    "opt_adamw_weight_decay": 0.1,
    "opt_gradient_clip_norm": 1.0,
    "train_samples": 1_574_207_408,
}
LLAMA31_8B: Settings = {
    "opt_end_learning_rate": lambda known: known["opt_base_learning_rate"] / 10,
    "opt_learning_rate_warmup_steps": lambda known: _from_samples(4096, _batch(known)),
    "opt_learning_rate_decay_steps": lambda known: (
        _COSINE_STEPS - known["opt_learning_rate_warmup_steps"]
    ),
    "train_samples": 1_574_207_408,
}
FLUX1: Settings = {
    "train_samples": 1_099_776,
    "eval_samples": 29_696,
    "evaluation_frequency": (
        262_144,
        lambda known: _from_samples(262_144, _batch(known)) * _batch(known),
    ),
}
DEEPSEEKV3_671B: Settings = {
    "train_samples": 1_574_207_408,
    "opt_base_learning_rate": lambda known: round(2.4e-5 * sqrt(_batch(known) / 16_384), 9),
    "max_steps": 12_000,
    "opt_learning_rate_warmup_steps": 4,
    "opt_learning_rate_decay_steps": lambda known: 12_000 - known["opt_learning_rate_warmup_steps"],
}
DLRMV4: Settings = {
    "opt_base_learning_rate": lambda known: 1e-6 * _batch(known) / 8192,
    "opt_sparse_base_learning_rate": lambda known: 1e-6 * _batch(known) / 8192,
}
QWEN35_397B: Settings = {
    "train_samples": 20_000,
    "max_steps": 100,
    "opt_base_learning_rate": lambda known: 1e-6 * sqrt(_batch(known) / 256),
    "opt_gradient_clip_norm": lambda known: 0.125 * sqrt(256 / _batch(known)),
    "num_prompts_per_step": lambda known: _batch(known) // 16,
    "num_generations_per_prompt": 16,
}
COSMOFLOW: Settings = {"train_samples": 524_288, "eval_samples": 65_536}
DEEPCAM: Settings = {
    "batchnorm_group_size": 1,
    "scheduler_milestones": [8192, 16_384],
    "scheduler_decay_rate": 0.1,
    "scheduler_t_max": 9000,
    "scheduler_eta_min": 0.0,
}
OC20: Settings = {"train_samples": 2_000_000, "eval_samples": 999_866}
