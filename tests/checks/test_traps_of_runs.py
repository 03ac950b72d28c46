"""Sentences of the written rules about runs and descriptions, in a whole submission.

The rows are as in ``test_traps``: kept at the boundary, and broken; judged live by both.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.checks import test_traps as traps
from tests.checks.test_traps import FILE, OLYMPIC, Trap, of_all, system
from tests.checks.test_traps_of_sets import LLAMA, LORA, OSS, SD, change, value
from tests.helpers.logs import moved
from tests.helpers.trees import SYSTEM
from tests.run.test_written_rules import initialised, later, logged, positions, stopped

BERT, FLUX, RNNT = (f"results/{SYSTEM}/{name}" for name in ("bert", "flux1", "rnnt"))
IN_BERT: dict[str, Any] = {"round": "5.0", "benchmark": "bert"}
IN_FLUX: dict[str, Any] = {"round": "6.0", "benchmark": "flux1"}
IN_LORA: dict[str, Any] = {"round": "6.0", "benchmark": "llama2_70b_lora"}
IN_LLAMA: dict[str, Any] = {"round": "6.0", "benchmark": "llama31_405b"}
SIX = (
    "host_networking",
    "host_networking_topology",
    "host_memory_configuration",
    "accelerator_host_interconnect",
    "accelerator_interconnect",
    "cooling",
)
RDI = "Research, Development, or Internal"
CURRENT = {"status": "Available on-premise"}


def first(finding: str, folder: str = BERT, key: str = "") -> tuple[str, ...]:
    """The finding of the first run."""
    return of_all(finding, key, folder, 1)


TRAPS = [
    # the clock
    Trap("30 minutes", change(BERT, initialised(30), 0), "pass", "pass", first("RUN121 warning official", key="@init_stop"), OLYMPIC, **IN_BERT),
    Trap("31 minutes", change(BERT, initialised(31), 0), "pass", "fail", first("RUN121 error rules", key="@init_stop"), OLYMPIC, **IN_BERT),
    Trap("30 minutes in all runs", change(BERT, initialised(30)), "fail", "pass", (f"SET103 error official {BERT}", *of_all("RUN121 error official", "@init_stop", BERT, 10)), **IN_BERT),
    Trap("200 minutes", change(BERT, initialised(200)), "pass", "pass", division="open", **IN_BERT),
    Trap("241 minutes", change(BERT, initialised(241), 0), "pass", "fail", first("RUN122 error rules", key="@init_stop"), division="open", **IN_BERT),
    Trap("start after data", change(BERT, later("run_start", 30), 0), "pass", "fail", first("RUN156 error rules", key="@run_start"), **IN_BERT),
    Trap("start after data", change(SD, later("run_start", 30), 0), "pass", "fail", first("RUN156 error rules", SD, "@run_start"), round="5.0", benchmark="stable_diffusion"),
    Trap("start before data", change(BERT, later("run_start", -1)), "pass", "pass", **IN_BERT),
    Trap("stop before the evaluation", change(BERT, partial(stopped, seconds=5), 0), "pass", "fail", first("RUN157 error rules", key="@run_stop"), **IN_BERT),
    Trap("stop at the evaluation", change(BERT, partial(stopped, seconds=0)), "pass", "pass", **IN_BERT),
    Trap("stop before the evaluation", change(BERT, partial(stopped, seconds=5), 0), "pass", "pass", division="open", **IN_BERT),
    # caches
    Trap("cache not flushed", change(BERT, value("cache_clear", False), 0), "pass", "fail", first("RUN159 error rules", key="@cache_clear"), **IN_BERT),
    Trap("cache flushed late", change(BERT, later("cache_clear", 36_000), 0), "pass", "fail", first("RUN160 error rules", key="@cache_clear"), **IN_BERT),
    Trap("cache logged late", change(BERT, lambda text: moved(text, "cache_clear", "run_stop"), 0), "pass", "pass", first("RUN164 warning rules", key="@cache_clear"), **IN_BERT),
    # evaluations
    Trap("too few samples", change(BERT, value("eval_samples", 9_999), 0), "pass", "fail", first("BERT122 error rules", key="@eval_samples"), **IN_BERT),
    Trap("more samples", change(BERT, value("eval_samples", 10_001)), "pass", "pass", **IN_BERT),
    Trap("too few samples", change(LORA, value("eval_samples", 172), 0), "pass", "fail", first("LORA120 error rules", LORA, "@eval_samples"), **IN_LORA),
    Trap("skipped too many", change(LORA, positions(lambda n: n + 384, "samples_count"), 0), "pass", "fail", (f"LORA121 error rules {LORA}/result_0.txt:23",), **IN_LORA),
    # formats, rates and other hyperparameters
    Trap("no such format", change(FLUX, logged("lowest_numerical_precision_in_linear", "fp6")), "fail", "fail", (f"SET103 error official {FLUX}", *of_all("RUN131 error both", "@lowest_numerical_precision_in_linear", FLUX, 10)), **IN_FLUX),
    Trap("no such format", change(FLUX, logged("lowest_numerical_precision_in_linear", "fp6")), "fail", "pass", (f"SET103 error official {FLUX}", *of_all("RUN131 error official", "@lowest_numerical_precision_in_linear", FLUX, 10)), division="open", **IN_FLUX),
    Trap("mxfp4", change(FLUX, logged("lowest_numerical_precision_in_linear", "mxfp4")), "pass", "pass", **IN_FLUX),
    Trap("another dropout", change(LORA, logged("lora_dropout", 0.2)), "pass", "pass", of_all("LORA122 warning rules", "@lora_dropout", LORA, 10), **IN_LORA),
    Trap("dropout logged by two runs", change(LORA, logged("lora_dropout", 0.1), 1, 2), "pass", "pass", **IN_LORA),
    Trap("another end rate", change(OSS, value("opt_end_learning_rate", 5e-5)), "pass", "pass", of_all("OSS125 warning rules", "@opt_end_learning_rate", OSS, 10), round="6.0", benchmark="gpt_oss_20b"),
    Trap("another end rate", change(LLAMA, value("opt_end_learning_rate", 8e-6)), "pass", "pass", of_all("LLAMAL125 warning rules", "@opt_end_learning_rate", LLAMA, 3), **IN_LLAMA),
    Trap("another bucket of data", change(RNNT, value("data_train_max_duration", 14.0), 0), "pass", "fail", (f"SET122 error rules {RNNT}",), round="3.1", benchmark="rnnt"),
    # descriptions
    Trap("six empty fields", system(**dict.fromkeys(SIX, "")), "pass", "pass"),
    Trap("six empty fields", system(**dict.fromkeys(SIX, ""), **CURRENT), "pass", "pass", (f"SYS202 warning advice {FILE}:17",), **IN_BERT),
    Trap("a preview without processors", system(status="Preview", host_processor_core_count="", host_processor_vcpu_count=""), "pass", "pass", **IN_BERT),
    Trap("a spelling of the rules", system(status=RDI), "fail", "pass", (f"SYS103 error official {FILE}:4",), "status", **IN_BERT),
    Trap("a spelling of the checker", system(status=f"{RDI} (RDI)"), "pass", "pass", **IN_BERT),
    Trap("no such availability", system(status="soon"), "fail", "fail", (f"SYS103 error both {FILE}:4",), "status", **IN_BERT),
    Trap("processors by one count", system(host_processor_vcpu_count="8", host_processor_core_count="", **CURRENT), "pass", "pass", **IN_BERT),
]  # fmt: skip


@pytest.mark.parametrize(
    "trap", TRAPS, ids=lambda trap: f"{trap.name} {trap.benchmark} {trap.division} {trap.round}"
)
def test_traps(trap: Trap, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    traps.test_traps(trap, tmp_path, caplog)
