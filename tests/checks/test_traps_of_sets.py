"""What is wrong, or only seems so, with the runs of a result set together: judged live by both.

The rows are as in ``test_traps``.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.checks import test_traps as traps
from tests.checks.test_traps import FILE, OLYMPIC, RUN, SET, Change, Trap, field, measured, system
from tests.helpers.logs import edited, joined, records, without
from tests.helpers.trees import SYSTEM, remove

LORA, LLAMA, SD, OSS = (
    f"results/{SYSTEM}/{name}"
    for name in ("llama2_70b_lora", "llama31_405b", "stable_diffusion", "gpt_oss_20b")
)


def change(folder: str, edit: Callable[[bytes], bytes], *indexes: int) -> Change:
    """Change some logs of a set, or all."""

    def apply(root: Path) -> None:
        for index in indexes or range(len(list((root / folder).glob("result_*.txt")))):
            path = root / folder / f"result_{index}.txt"
            path.write_bytes(edit(path.read_bytes()))

    return apply


def both(*changes: Change) -> Change:
    def apply(root: Path) -> None:
        for step in changes:
            step(root)

    return apply


def written(path: str, text: str) -> Change:
    return lambda root: (root / path).write_text(text)


def factor(value: Any) -> Change:
    return written(f"{SET}/scaling.json", json.dumps({"scaling_factor": value}))


def killed(text: bytes) -> bytes:
    """The log ends after the first evaluation."""
    fields = records(text)
    first = [record["key"] for record in fields].index("eval_accuracy")
    return joined(fields[: first + 1])


def killed_while_writing(text: bytes) -> bytes:
    return killed(text) + b':::MLLOG {"key": "blo'


def killed_early(text: bytes) -> bytes:
    """The log ends before ``run_start``."""
    fields = records(text)
    return joined(fields[: [record["key"] for record in fields].index("run_start")])


def placeholder(_: bytes) -> bytes:
    return b"placeholder\n"


def seed(value: int) -> Callable[[bytes], bytes]:
    return lambda text: edited(text, "seed", value=value)


def another_seed(text: bytes) -> bytes:
    """One more seed, by the same source line."""
    fields = records(text)
    first = [record["key"] for record in fields].index("seed")
    extra = {**fields[first], "value": fields[first]["value"] + 10**6}
    return joined([*fields[: first + 1], extra, *fields[first + 1 :]])


def value(key: str, new: Any) -> Callable[[bytes], bytes]:
    return lambda text: edited(text, key, value=new)


def earlier(samples: int) -> Callable[[bytes], bytes]:
    """All evaluations are earlier by this number of samples."""

    def moved(record: dict[str, Any]) -> dict[str, Any]:
        count = record["metadata"].get("samples_count") if record["metadata"] else None
        if record["key"] != "eval_accuracy" or count is None:
            return record
        return {**record, "metadata": {**record["metadata"], "samples_count": count - samples}}

    return lambda text: joined([moved(record) for record in records(text)])


def fewer_checkpoints(*counts: int) -> Callable[[bytes], bytes]:
    """The checkpoints at these ``counts`` of images were not evaluated."""

    def is_kept(record: dict[str, Any]) -> bool:
        metadata = record["metadata"] or {}
        return record["key"] != "eval_accuracy" or metadata["samples_count"] not in counts

    return lambda text: joined(list(filter(is_kept, records(text))))


BYPASS = "rcp-bypass"
CLOSED, OPEN = system(division="Closed"), system(division="Open")
MORE_RATE = value("lars_opt_base_learning_rate", 11.0)

TRAPS = [
    Trap("a killed run", change(SET, killed, 0), "pass", "pass", (f"RUN130 note rules {RUN}",), OLYMPIC),
    Trap("a killed run of another platform", both(change(SET, killed, 0), field("submission_platform", "another", 0)), "pass", "pass", (f"RUN130 note rules {RUN}",), OLYMPIC),
    Trap("a killed run without power", both(measured(), change(SET, killed, 0), lambda r: remove(r / SET / "power/result_0")), "pass", "pass", (f"POW101 warning official {SET}/power", f"RUN130 note rules {RUN}"), OLYMPIC),
    Trap("a run without power", both(measured(), lambda r: remove(r / SET / "power/result_0")), "pass", "fail", (f"POW101 error rules {SET}/power", f"POW105 warning official {SET}/power"), OLYMPIC),
    Trap("a run killed early", change(SET, killed_early, 0), "pass", "pass", (f"RUN130 note rules {RUN}",), OLYMPIC),
    Trap("a run killed while it writes", change(SET, killed_while_writing, 0), "fail", "pass", (f"LOG101 warning official {RUN}:197", f"RUN130 note rules {RUN}", f"SEED103 error official {RUN}")),
    Trap("a placeholder of a run", change(SET, placeholder, 0), "fail", "pass", (f"LOG110 note official {RUN}", f"RCP103 error official {SET}", f"SEED101 error official {RUN}")),
    Trap("a placeholder of a run, open", change(SET, placeholder, 0), "pass", "pass", (f"LOG110 note official {RUN}",), division="open"),
    Trap("two killed runs", change(SET, killed, 0, 1), "fail", "fail", (f"RCP101 error official {SET}", f"RN103 error official {RUN}:196", f"RN103 error official {SET}/result_1.txt:196", f"RUN109 error official {RUN}", f"RUN109 error official {SET}/result_1.txt", f"RUN115 error official {RUN}", f"RUN115 error official {SET}/result_1.txt", f"RUN130 warning rules {RUN}", f"RUN130 warning rules {SET}/result_1.txt", f"SET102 error both {SET}", f"SET103 error official {SET}")),
    Trap("Closed with one seed, 2.0", both(CLOSED, change(SET, seed(5), 0, 1)), "pass", "pass", (f"SYS201 warning advice {FILE}:3",)),
    Trap("Closed with one seed", both(CLOSED, change(LORA, seed(5), 0, 1)), "pass", "fail", (f"SEED102 error rules {LORA}/result_1.txt:17", f"SYS201 warning advice {FILE}:3"), round="4.1", benchmark="llama2_70b_lora"),
    Trap("two seeds in a run", change(LORA, another_seed, 0), "pass", "pass", (f"SEED105 warning rules {LORA}/result_0.txt:18",), round="4.1", benchmark="llama2_70b_lora"),
    Trap("two seeds in a run", change(LORA, another_seed, 0), "pass", "pass", (), round="4.0", benchmark="llama2_70b_lora"),
    Trap("two seeds in a run", change(LORA, another_seed, 0), "pass", "pass", (), round="5.0", benchmark="llama2_70b_lora", division="open"),
    Trap("no seed", change(LORA, lambda text: without(text, "seed"), 0), "fail", "fail", (f"SEED101 error both {LORA}/result_0.txt",), round="4.1", benchmark="llama2_70b_lora"),
    Trap("no seed", change(LORA, lambda text: without(text, "seed"), 0), "pass", "pass", (), round="5.0", benchmark="llama2_70b_lora", division="open"),
    Trap("Closed and too early", both(CLOSED, change(LORA, earlier(1152))), "pass", "fail", (f"RCP101 error rules {LORA}", f"SYS201 warning advice {FILE}:3"), round="4.1", benchmark="llama2_70b_lora"),
    Trap("Open for open", OPEN, "pass", "pass", (f"SYS201 warning advice {FILE}:3",), division="open"),
    Trap("Closed for open logs", CLOSED, "pass", "fail", (f"SET111 error rules {SET}", f"SYS201 warning advice {FILE}:3"), division="open"),
    Trap("too early", change(LORA, earlier(1152)), "fail", "fail", (f"RCP101 error both {LORA}",), round="4.1", benchmark="llama2_70b_lora"),
    Trap("too early, to be reviewed", both(change(LORA, earlier(1152)), written(f"{LORA}/package_checker_params", BYPASS)), "pass", "pass", (f"RCP102 warning rules {LORA}",), round="4.1", benchmark="llama2_70b_lora"),
    Trap("405b one evaluation early", change(LLAMA, earlier(36_864)), "pass", "pass", (), round="5.0", benchmark="llama31_405b"),
    Trap("405b one evaluation early", change(LLAMA, earlier(36_864)), "pass", "fail", (f"RCP105 error rules {LLAMA}",), round="5.1", benchmark="llama31_405b"),
    Trap("405b one evaluation early", change(LLAMA, earlier(36_864)), "pass", "fail", (f"RCP105 error rules {LLAMA}",), round="6.0", benchmark="llama31_405b"),
    Trap("a factor below 1", factor(0.9), "pass", "fail", (f"SET118 error rules {SET}/scaling.json",)),
    Trap("a factor of 0", factor(0), "pass", "fail", (f"SET118 error rules {SET}/scaling.json",)),
    Trap("a factor that is text", factor("1.02"), "pass", "fail", (f"SET119 error rules {SET}/scaling.json",)),
    Trap("a factor that is not finite", factor(float("nan")), "pass", "fail", (f"SET119 error rules {SET}/scaling.json",)),
    Trap("no JSON for a factor", written(f"{SET}/scaling.json", "{"), "pass", "fail", (f"SET119 error rules {SET}/scaling.json:1",)),
    Trap("a factor of 1", factor(1.0), "pass", "pass", ()),
    Trap("a factor by review", factor(1.5), "pass", "pass", (f"SET120 note advice {SET}/scaling.json",)),
    Trap("a factor of an open set", factor(0.5), "pass", "fail", (f"SET118 error rules {SET}/scaling.json",), division="open"),
    Trap("another platform", field("submission_platform", "another", 0), "pass", "fail", (f"SET121 error rules {SET}",)),
    Trap("a platform in capitals", field("submission_platform", SYSTEM.upper(), 0), "pass", "pass", ()),
    Trap("another learning rate", change(SET, MORE_RATE, 0), "pass", "fail", (f"SET122 error rules {SET}",)),
    Trap("another learning rate", change(SET, MORE_RATE, 0), "pass", "fail", (f"SET122 error rules {SET}",), division="open"),
    Trap("another accumulation", field("gradient_accumulation_steps", 2, 0), "pass", "fail", (f"SET122 error rules {SET}",)),
    Trap("all checkpoints", traps.nothing, "pass", "pass", (), round="5.0", benchmark="stable_diffusion"),
    Trap("the last two checkpoints", change(SD, fewer_checkpoints(512_000, 1_024_000), *range(9)), "pass", "pass", (), round="5.0", benchmark="stable_diffusion"),
    Trap("only the last two checkpoints", change(SD, fewer_checkpoints(512_000, 1_024_000)), "pass", "pass", (f"SET124 note advice {SD}",), round="5.0", benchmark="stable_diffusion"),
    Trap("only the last checkpoint", change(SD, fewer_checkpoints(1_536_000), 0), "pass", "fail", (f"SET123 error rules {SD}/result_0.txt",), round="5.0", benchmark="stable_diffusion"),
    Trap("another end rate", change(OSS, value("opt_base_learning_rate", 3e-4)), "pass", "pass", (), round="6.0", benchmark="gpt_oss_20b"),
    Trap("another end rate, too early", both(change(OSS, value("opt_base_learning_rate", 3e-4)), change(OSS, earlier(36_864)), written(f"{OSS}/package_checker_params", BYPASS)), "pass", "fail", (f"RCP102 warning rules {OSS}", f"RCP106 error rules {OSS}"), round="6.0", benchmark="gpt_oss_20b"),
]  # fmt: skip


@pytest.mark.parametrize(
    "trap", TRAPS, ids=lambda trap: f"{trap.name} {trap.division} {trap.round}"
)
def test_traps(trap: Trap, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    traps.test_traps(trap, tmp_path, caplog)
