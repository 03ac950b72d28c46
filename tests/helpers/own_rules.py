"""A folder of rules of one's own: round 99.0 with one new benchmark."""

from collections.abc import Mapping
from pathlib import Path

ROUND_FILE, BENCHMARK_FILE = "training/99.0/round.yaml", "training/99.0/ownb.yaml"
ROUND = """\
round: "99.0"
extends: "6.1"
ruleset: 99.0.0
submission_date: 2099-05-14
benchmarks: [flux1, ownb]
common:
  seeds: {code: RUN901, occurs: at_least_once}
"""
BENCHMARK = """\
# A benchmark that round 99.0 adds.
runs: {required: 10, drop: 1}
target: {at_least: 0.75}
convergence: {unit: samples, from: samples_count}
source: "training_rules, Hyperparameters"
define:
  step: "math.ceil(1000.0 / global_batch_size)"

closed:
  global_batch_size: {code: OWNB101, occurs: once, above: 0}
  opt_name: {code: OWNB102, occurs: once, equals: adamw}
  opt_learning_rate_warmup_steps: {code: OWNB103, occurs: once, formula: "value >= step"}
  eval_accuracy:
    - {code: OWNB104, occurs: at_least_once, metadata: [samples_count], reaches: target}
    - code: OWNB105
      formula: "metadata.samples_count >= 2.0 * step"
open:
  eval_accuracy: {code: OWNB201, occurs: at_least_once, metadata: [samples_count]}

simulation:
  values: {global_batch_size: 100, opt_learning_rate_warmup_steps: 10}
  typical: {batch_size: 100, to_converge: [5000, 6000]}
"""
FILES = {ROUND_FILE: ROUND, BENCHMARK_FILE: BENCHMARK}


def written(folder: Path, files: Mapping[str, str]) -> Path:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    return folder
