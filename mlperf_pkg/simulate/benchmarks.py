"""The benchmarks, one table each.

Fixed values are those that the Closed division prescribes, and keys are spelt as the official
logger spells them; the rest is ours to choose (training_rules.adoc, Hyperparameters).
"""

from __future__ import annotations

from math import ceil, sqrt

from mlperf_pkg.simulate.model import Benchmark, Unit

_IMAGES = 1_281_167

RESNET = Benchmark(
    name="resnet",
    runs=5,
    unit=Unit.EPOCHS,
    untrained=0.001,
    target=0.759,
    evaluate_every=lambda _: 4,
    free_offset=True,
    accelerator_minutes=200,
    samples_per_accelerator=204,
    settings={
        "gradient_accumulation_steps": 1,
        "train_samples": _IMAGES,
        "eval_samples": 50_000,
        "model_bn_span": 204,
    },
    optimizers={
        "lars": {
            "lars_opt_base_learning_rate": lambda batch: round(0.18 * sqrt(batch), 3),
            "lars_opt_end_learning_rate": 0.0001,
            "lars_opt_learning_rate_decay_poly_power": 2,
            "lars_opt_learning_rate_decay_steps": lambda batch: ceil(38 * _IMAGES / batch),
            "lars_opt_learning_rate_warmup_epochs": 2,
            "lars_epsilon": 0.0,
            "lars_opt_momentum": 0.9,
            "lars_opt_weight_decay": 5e-05,
        },
        "sgd": {
            "sgd_opt_base_learning_rate": lambda batch: round(0.1 * batch / 256, 3),
            "sgd_opt_end_learning_rate": 0.0001,
            "sgd_opt_learning_rate_decay_poly_power": 2,
            "sgd_opt_learning_rate_decay_steps": lambda batch: ceil(38 * _IMAGES / batch),
            "opt_learning_rate_warmup_epochs": 5,
            "sgd_opt_momentum": 0.9,
            "sgd_opt_weight_decay": 5e-05,
        },
    },
)

BERT = Benchmark(
    name="bert",
    runs=10,
    unit=Unit.SAMPLES,
    untrained=0.3,
    target=0.72,
    evaluate_every=lambda batch: int(0.05 * (230.23 * batch + 3_000_000) // 25_000) * 25_000,
    accelerator_minutes=140,
    samples_per_accelerator=28,
    settings={
        "gradient_accumulation_steps": 1,
        "max_sequence_length": 512,
        "train_samples": 156_725_653,
        "eval_samples": 10_000,
    },
    optimizers={
        "lamb": {
            "opt_base_learning_rate": lambda batch: round(1.9e-05 * sqrt(batch), 6),
            "opt_epsilon": 1e-06,
            "opt_learning_rate_training_steps": lambda batch: ceil(3_600_000 / batch),
            "opt_learning_rate_warmup_steps": 0,
            "num_warmup_steps": 0,
            "start_warmup_step": 0,
            "opt_lamb_beta_1": 0.9,
            "opt_lamb_beta_2": 0.999,
            "opt_lamb_weight_decay_rate": 0.01,
        },
    },
)

RNNT = Benchmark(
    name="rnnt",
    runs=10,
    unit=Unit.EPOCHS,
    untrained=1.0,
    target=0.058,
    evaluate_every=lambda _: 1,
    accelerator_minutes=240,
    samples_per_accelerator=128,
    settings={
        "gradient_accumulation_steps": 1,
        "train_samples": 278_528,
        "eval_samples": 2703,
        "eval_max_prediction_symbols": 300,
        "data_train_max_duration": 16.7,
        "data_train_num_buckets": 6,
        "data_speed_perturbaton_min": 0.85,
        "data_speed_perturbaton_max": 1.15,
        "data_spec_augment_freq_n": 2,
        "data_spec_augment_freq_min": 0,
        "data_spec_augment_freq_max": 20,
        "data_spec_augment_time_n": 10,
        "data_spec_augment_time_min": 0,
        "data_spec_augment_time_max": 0.03,
        "model_eval_ema_factor": 0.995,
        "model_weights_initialization_scale": 0.5,
    },
    optimizers={
        "lamb": {
            "opt_base_learning_rate": lambda batch: round(0.00016 * sqrt(batch), 6),
            "opt_lamb_epsilon": 1e-09,
            "opt_lamb_learning_rate_decay_poly_power": 0.94,
            "opt_lamb_learning_rate_hold_epochs": 33,
            "opt_lamb_learning_rate_min": 1e-05,
            "opt_learning_rate_warmup_epochs": 6,
            "opt_learning_rate_alt_decay_func": True,
            "opt_learning_rate_alt_warmup_func": True,
            "opt_weight_decay": 0.001,
            "opt_lamb_beta_1": 0.9,
            "opt_lamb_beta_2": 0.999,
            "opt_gradient_clip_norm": 1,
        },
    },
)
