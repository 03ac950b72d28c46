"""Sentences of the written rules about one log: broken and kept, both verdicts.

The official checker judges each log live.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import pytest

from mlperf_pkg.infra.source import Source
from mlperf_pkg.run.model import LogFile, Run
from mlperf_pkg.run.reading import read_run
from mlperf_pkg.simulate import RunPlan, simulate_run
from tests.helpers.changes import Change, each, field, fields, initialised, later, logged, scaled
from tests.helpers.logs import edited, joined, moved, records, without
from tests.helpers.stored import compared
from tests.parity import incumbent

DAY_MS = 86_400_000
QUOTED = "the checker decides"


@cache
def simulated(plan: RunPlan) -> bytes:
    return simulate_run(plan, 1)


@dataclass(frozen=True)
class Case:
    """A log of a round (of HPC: ``hpc_3.0``), what is done to it, and its findings.

    A finding is "code severity basis"; those that are not errors of the rules fail nothing.
    """

    name: str
    round: str
    benchmark: str
    change: Change
    findings: tuple[str, ...] = ()
    official: str = "pass"
    division: str = "closed"
    quotes: bool = False  # that the checker decides where it and a table differ

    @property
    def run(self) -> tuple[bytes, Run]:
        """The log, and what it says."""
        usage, _, round_ = self.round.rpartition("_")
        plan = RunPlan(
            round=round_,
            benchmark=self.benchmark,
            division=self.division,
            system="system",
            organization="Test",
            usage=usage or "training",
        )
        log = self.change(simulated(plan))
        return log, compared(read_run(LogFile(Source("log.txt", log), plan.usage, round_)))

    @property
    def rules(self) -> str:
        """The verdict by the rules."""
        failing = [f for f in self.findings if " error " in f and "official" not in f]
        return "fail" if failing else "pass"


def ended(status: str, reached: bool = True) -> Change:
    """Another status of the run; perhaps none of its evaluations reaches a target."""

    def change(log: bytes) -> bytes:
        log = edited(log, "run_stop", metadata={"status": status})
        return log if reached else each(lambda r: {"value": _missed(r)})(log)

    return change


def _missed(record: dict[str, Any]) -> Any:
    """The value of a record, far from the target if it is that of an evaluation."""
    value = record["value"]
    if record["key"] not in ("eval_accuracy", "averaged_validation_loss"):
        return value
    return 1e3 if value > 1 or record["key"] == "averaged_validation_loss" else 0.0


def batch_size_again(log: bytes) -> bytes:
    """One more evaluation, below the target, and one more batch size, both before the last one."""
    fields = records(log)
    at = [record["key"] for record in fields].index("eval_accuracy")
    extra = {"key": "global_batch_size", "value": 256}
    return joined(
        [*fields[:at], {**fields[at], "value": 0.1}, {**fields[at], **extra}, *fields[at:]]
    )


def evaluated_twice(log: bytes, samples: int) -> bytes:
    """The log with its evaluation ``samples`` later, and one below the target in its place."""
    fields = records(log)
    at = [record["key"] for record in fields].index("eval_accuracy")
    metadata = {"samples_count": fields[at]["metadata"]["samples_count"] + samples}
    second = {**fields[at], "metadata": metadata}
    return joined([*fields[:at], {**fields[at], "value": 0.1}, second, *fields[at + 1 :]])


def stopped(log: bytes, seconds: float) -> bytes:
    """``run_stop`` so long before the evaluation that reaches the target, the last one."""
    last = [r["time_ms"] for r in records(log) if r["key"] == "eval_accuracy"][-1]
    return edited(log, "run_stop", time_ms=last - int(seconds * 1000))


def stopped_first(log: bytes, ms: int) -> bytes:
    """``run_stop`` on a line before the last evaluation, with this time between them."""
    fields = records(log)
    (stop,) = (record for record in fields if record["key"] == "run_stop")
    rest = [record for record in fields if record is not stop]
    last = max(number for number, record in enumerate(rest) if record["key"] == "eval_accuracy")
    stop["time_ms"] = rest[last]["time_ms"] - ms
    return joined([*rest[:last], stop, *rest[last:]])


def skipped(log: bytes, index: int) -> bytes:
    """The log without one of its evaluations."""
    evaluations = [record for record in records(log) if record["key"] == "eval_accuracy"]
    return joined([record for record in records(log) if record != evaluations[index]])


as_text = each(lambda r: {"value": f"{r['value']}"} if "batch_size" in r["key"] else {})
"""The batch size is text."""


def stretched(start: float, factor: float) -> Callable[[float], float]:
    """Other distances from the first position."""
    return lambda position: start + factor * (position - start)


def positions(
    change: Callable[[float], float | str], name: str, key: str = "eval_accuracy"
) -> Change:
    """Another position in all evaluations."""

    def moved(record: dict[str, Any]) -> dict[str, Any]:
        metadata = record["metadata"]
        is_other = record["key"] == key
        return {"metadata": {**metadata, name: change(metadata[name])}} if is_other else {}

    return each(moved)


def denied(log: bytes) -> bytes:
    """One more evaluation after the last one, far from the target."""
    fields = records(log)
    at = max(n for n, record in enumerate(fields) if record["key"] == "eval_accuracy")
    more = {**fields[at], "value": _missed(fields[at])}
    return joined([*fields[: at + 1], more, *fields[at + 1 :]])


def repeated(log: bytes, index: int = -1) -> bytes:
    """The log with one of its evaluations twice."""
    evaluation = [record for record in records(log) if record["key"] == "eval_accuracy"][index]
    return joined([c for r in records(log) for c in ([r, r] if r == evaluation else [r])])


def swapped(log: bytes) -> bytes:
    """The log with its first two evaluations in the other order, as they may end."""
    fields = records(log)
    first, second, *_ = [n for n, record in enumerate(fields) if record["key"] == "eval_accuracy"]
    fields[first], fields[second] = fields[second], fields[first]
    return joined(fields)


def rounded_up(position: float, interval: int, size: int) -> int:
    """The position of an evaluation, rounded up to whole batches."""
    return -(-round(position / interval) * interval // size) * size


def changed(*changes: Change) -> Change:
    """One change after another."""

    def change(log: bytes) -> bytes:
        for step in changes:
            log = step(log)
        return log

    return change


epochs_from_zero = changed(
    *(positions(lambda n: n - 1, "epoch_num", key) for key in ("epoch_start", "epoch_stop"))
)
"""The epochs are numbered from 0; evaluations keep their position."""


def shifted(days: float) -> Change:
    """All records later."""
    return each(lambda r: {"time_ms": r["time_ms"] + int(days * DAY_MS)})


def untested(
    round_: str, benchmark: str, key: str, values: dict[Any, bool], code: str, *, add: bool = True
) -> list[Case]:
    """A hyperparameter that only the table has: a warning for what it does not allow."""
    change = partial(logged if add else field, key)
    warned = (f"{code} warning rules",)
    return [
        Case(f"{code} {value}", round_, benchmark, change(value), () if ok else warned, quotes=True)
        for value, ok in values.items()
    ]


def thorough(round_: str, benchmark: str, code: str, least: int) -> list[Case]:
    """Evaluations as thorough as those of the reference, and not."""
    return [
        Case(f"{code} {name}", round_, benchmark, field("eval_samples", count), findings)
        for findings, counts in (
            ((), {least: least, "as text": f"{least}", "in a list": [least]}),
            ((f"{code} error rules",), {"fewer": least - 1, "none": None}),
        )
        for name, count in counts.items()
    ]


CASES = [
    # the clock
    Case("start after data", "5.1", "rgat", later("run_start", 30), ("RUN156 error rules",)),
    *(
        Case(
            f"start after data, {benchmark}",
            round_,
            benchmark,
            later("run_start", 30),
            ("RUN156 error rules",),
            division=division,
        )
        for round_, benchmark, division in (
            ("5.0", "stable_diffusion", "closed"),
            ("5.0", "stable_diffusion", "open"),
            ("2.1", "minigo", "closed"),
            ("hpc_3.0", "deepcam", "closed"),
            ("hpc_1.0", "cosmoflow", "open"),
        )
    ),
    Case("clocks differ", "5.1", "rgat", later("run_start", 0.9)),
    Case(
        "stop before evaluation",
        "5.1",
        "rgat",
        partial(stopped, seconds=5),
        ("RUN157 error rules",),
    ),
    Case("stop, clocks differ", "5.1", "rgat", partial(stopped, seconds=0.9)),
    Case(
        "stop logged before evaluation",
        "5.1",
        "rgat",
        partial(stopped_first, ms=1),
        ("RUN157 error rules",),
    ),
    Case("stop logged before evaluation, same time", "5.1", "rgat", partial(stopped_first, ms=0)),
    Case("stop, open", "5.1", "rgat", partial(stopped, seconds=5), division="open"),
    Case("offline evaluation", "5.0", "stable_diffusion", partial(stopped, seconds=5)),
    # caches
    Case("cache not flushed", "5.1", "rgat", field("cache_clear", False), ("RUN159 error rules",)),
    Case(
        "cache not flushed, as text",
        "1.1",
        "minigo",
        field("cache_clear", "false"),
        ("RUN159 error rules",),
    ),
    Case("cache flushed, no value", "5.1", "rgat", field("cache_clear", None)),
    Case(
        "cache flushed late", "5.1", "rgat", later("cache_clear", 36_000), ("RUN160 error rules",)
    ),
    Case(
        "cache logged at the end",
        "5.1",
        "rgat",
        lambda log: moved(log, "cache_clear", "run_stop"),
        ("RUN164 note rules",),
    ),
    Case(
        "cache logged and flushed at the end",
        "5.1",
        "rgat",
        lambda log: later("cache_clear", 36_000)(moved(log, "cache_clear", "run_stop")),
        ("RUN160 error rules", "RUN164 note rules"),
    ),
    Case(
        "cache flushed, blocks in seconds",
        "0.7",
        "dlrm",
        scaled(1e-3, "block_start", "epoch_start"),
    ),
    Case(
        "cache flushed last, a digit too many",
        "2.1",
        "bert",
        lambda log: scaled(10, "cache_clear")(moved(log, "cache_clear", "run_stop")),
        ("RUN160 error rules", "RUN164 note rules"),
    ),
    Case(
        "cache flushed late, epochs in seconds",
        "2.1",
        "resnet",
        lambda log: scaled(1e-3, "epoch_start")(later("cache_clear", 36_000)(log)),
        ("RUN160 error rules",),
    ),
    Case(
        "cache flushed after the clock started",
        "5.1",
        "rgat",
        changed(later("cache_clear", 30), later("block_start", 60)),
        ("RUN169 warning rules",),
    ),
    Case(
        "cache flushed just after the clock started",
        "5.1",
        "rgat",
        changed(later("cache_clear", 28.4), later("block_start", 60)),
    ),
    # the place of a record in the file, where its time is right
    *(
        Case(
            f"{key} behind the first {after}",
            round_,
            benchmark,
            partial(moved, key=key, after=after),
            tuple(f"{code} error official" for code in codes),
            "fail",
        )
        for round_, benchmark, key, after, codes in (
            ("5.1", "rgat", "run_stop", "submission_benchmark", ("RUN109",)),
            ("5.1", "rgat", "run_start", "run_stop", ("RUN109", "RUN110")),
            ("0.7", "gnmt", "run_start", "block_start", ("RUN110",)),
            ("2.0", "bert", "init_stop", "run_stop", ("RUN107", "RUN108")),
            ("5.1", "rgat", "init_start", "run_stop", ("RUN106", "RUN107")),
            ("hpc_3.0", "deepcam", "run_stop", "init_start", ("RUN109",)),
        )
    ),
    *(
        Case(
            f"init_start behind init_stop, {minutes} minutes",
            round_,
            "bert",
            changed(initialised(minutes), partial(moved, key="init_start", after="init_stop")),
            ("RUN106 error official", "RUN107 error official", *findings),
            "fail",
            division,
        )
        for round_, division, minutes, findings in (
            ("2.0", "closed", 29, ()),
            ("2.0", "closed", 30, ()),
            ("2.0", "closed", 31, ("RUN121 error rules",)),
            ("2.0", "open", 31, ()),
            ("2.0", "open", 241, ("RUN122 error rules",)),
            ("1.1", "closed", 21, ("RUN122 error rules",)),
            ("0.7", "open", 21, ("RUN121 error rules",)),
        )
    ),
    Case(
        "run_stop first, and earlier",
        "5.1",
        "rgat",
        changed(later("run_stop", -36_000), partial(moved, key="run_stop", after="init_start")),
        ("RUN109 error both", "RUN140 warning rules"),
        "fail",
    ),
    Case(
        "init_stop behind run_start, and later",
        "5.1",
        "rgat",
        changed(later("init_stop", 1), partial(moved, key="init_stop", after="run_start")),
        ("RUN107 error both", "RUN108 error both"),
        "fail",
    ),
    # a result without a time
    *(
        Case(
            f"no time, {round_}, {division}",
            round_,
            benchmark,
            each(lambda r: {"time_ms": 1_590_000_000_000}),
            findings,
            division=division,
        )
        for round_, benchmark, division, findings in (
            ("0.7", "bert", "closed", ("RUN155 error rules",)),
            ("5.1", "rgat", "closed", ("RUN155 error rules",)),
            ("5.1", "rgat", "open", ("RUN155 error rules",)),
        )
    ),
    Case(
        "one millisecond",
        "5.1",
        "rgat",
        each(lambda r: {"time_ms": 1_590_000_000_000 + (r["key"] == "run_stop")}),
    ),
    # a formula whose operand is wrong itself is silent, unless it fails more than that
    *(
        Case(
            f"{key} {value}, {benchmark}", round_, benchmark, field(key, value), findings, official
        )
        for round_, benchmark, key, value, findings, official in (
            ("5.1", "dlrm_dcnv2", "global_batch_size", 0, ("RUN166 error rules",), "pass"),
            ("5.1", "retinanet", "global_batch_size", -8, ("RUN166 error rules",), "pass"),
            (
                "4.1",
                "gpt3",
                "opt_base_learning_rate",
                5e-5,
                ("GPT104 error both", "GPT124 warning rules"),
                "fail",
            ),
            (
                "5.0",
                "llama31_405b",
                "global_batch_size",
                0,
                ("LLAMAL122 warning rules", "LLAMAL134 error official", "RUN166 error rules"),
                "fail",
            ),
        )
    ),
    # initialisation
    *(
        Case(
            f"{minutes} minutes, {round_} {division}",
            round_,
            benchmark,
            initialised(minutes),
            findings,
            official,
            division,
        )
        for round_, benchmark, division, minutes, findings, official in (
            ("0.7", "bert", "open", 19, (), "pass"),
            ("0.7", "bert", "open", 21, ("RUN121 error both",), "fail"),
            ("1.1", "bert", "closed", 21, ("RUN122 error rules",), "pass"),
            ("1.1", "bert", "open", 31, ("RUN121 error official", "RUN122 error rules"), "fail"),
            ("hpc_1.0", "deepcam", "closed", 21, ("RUN122 error rules",), "pass"),
            ("2.0", "bert", "open", 241, ("RUN122 error both",), "fail"),
            ("0.7", "bert", "closed", 20, ("RUN121 error official",), "fail"),
            ("4.1", "gpt3", "closed", 60, ("RUN121 error official",), "fail"),
            (
                "hpc_3.0",
                "cosmoflow",
                "open",
                241,
                ("RUN121 error official", "RUN122 error rules"),
                "fail",
            ),
            ("hpc_3.0", "cosmoflow", "closed", 31, ("RUN121 error both",), "fail"),
        )
    ),
    # evaluations
    *thorough("5.0", "bert", "BERT122", 10_000),
    *(
        Case(
            f"{count} samples in resnet {round_}",
            round_,
            "resnet",
            field("eval_samples", count),
            findings,
        )
        for round_, count, findings in (
            ("4.0", 50_000, ()),
            ("4.0", 49_999, ("RN144 warning rules",)),
            ("1.0", 49_999, ("RN144 warning rules",)),
            ("4.0", 49_998, ("RN143 error rules",)),
            ("4.0", "49998", ("RN143 error rules",)),
            ("4.0", [50_000], ()),
            ("4.0", None, ("RN143 error rules",)),
            ("0.7", 25_000, ("RN143 error rules",)),
            ("1.0", 3_124, ("RN143 error rules",)),
        )
    ),
    *(
        Case(
            f"{count} samples in {benchmark} {round_}",
            round_,
            benchmark,
            field("eval_samples", count),
            findings,
        )
        for round_, benchmark, count, findings in (
            ("0.7", "ssd", 4_952, ("SSD126 note rules",)),
            ("0.7", "ssd", 4_951, ("SSD125 error rules",)),
            ("2.0", "ssd", 97, ()),
            ("2.1", "dlrm", 89_137_318, ("DLRM111 note rules",)),
            ("1.0", "dlrm", 89_137_317, ("DLRM110 error rules",)),
        )
    ),
    Case(
        "one too many skipped, 405b",
        "5.1",
        "llama31_405b",
        positions(lambda n: n + 2 * 18_432, "samples_count"),
        ("LLAMAL128 error rules",),
    ),
    *(
        Case(
            f"{benchmark}, evaluation {index} skipped",
            round_,
            benchmark,
            partial(skipped, index=index),
            (f"{code} error rules",),
        )
        for round_, benchmark, code in (
            ("0.7", "gnmt", "GNMT112"),
            ("0.7", "transformer", "TRF110"),
            ("1.1", "ssd", "SSD123"),
            ("6.0", "llama31_8b", "LLAMAS129"),
            ("6.0", "gpt_oss_20b", "OSS129"),
            ("6.0", "flux1", "FLUX124"),
            ("4.1", "gpt3", "GPT140"),
            ("5.1", "retinanet", "SSD123"),
            ("0.7", "maskrcnn", "MRCNN122"),
            ("3.1", "maskrcnn", "MRCNN122"),
            ("3.1", "rnnt", "RNNT142"),
            ("5.1", "rgat", "GNN116"),
            ("6.0", "dlrm_dcnv2", "DCN122"),
        )
        for index in (0, 2)
    ),
    *(
        Case(
            f"evaluation {index} skipped, {benchmark} {round_}",
            round_,
            benchmark,
            partial(skipped, index=index),
            (f"{code} error rules",),
        )
        for round_, benchmark, index, code in (
            ("1.0", "bert", 3, "BERT126"),
            ("5.0", "bert", 7, "BERT126"),
            ("6.0", "deepseekv3_671b", 2, "DSV131"),
            ("6.1", "deepseekv3_671b", 1, "DSV131"),
            ("2.1", "unet3d", 4, "UNET140"),
        )
    ),
    Case(
        "also evaluated before training, deepseekv3",
        "6.0",
        "deepseekv3_671b",
        positions(lambda n: n * (n > 660_480), "samples_count"),
    ),
    Case(
        "first step evaluated, deepseekv3",
        "6.0",
        "deepseekv3_671b",
        positions(lambda n: n - 645_120, "samples_count"),
    ),
    *(
        Case(
            f"{name}, bert {round_} at {size}",
            round_,
            "bert",
            changed(field("global_batch_size", size), positions(position, "epoch_num")),
            findings,
        )
        for name, round_, size, position, findings in (
            (
                "every 600,000",
                "0.7",
                448,
                lambda n: 3_000_000 + (n - 150_000) / 150_000 * 600_000,
                ("BERT126 error rules",),
            ),
            (
                "from 3.5M on",
                "0.7",
                448,
                lambda n: 3_500_000 + (n - 150_000) / 150_000 * 500_000,
                ("BERT126 error rules",),
            ),
            ("in steps", "0.7", 3072, lambda n: n / 150_000 * 163, ()),
            (
                "250,000 for 225,000",
                "3.0",
                8192,
                lambda n: n / 150_000 * 250_000,
                ("BERT121 warning rules",),
            ),
        )
    ),
    *(
        Case(
            f"one evaluation {name}, bert",
            "5.0",
            "bert",
            positions(lambda n, at=at, by=by: n + by * (n in at), "epoch_num"),  # type: ignore[misc]
            (f"BERT121 {severity} rules",),
        )
        for name, at, by, severity in (
            ("early", (600_000,), -40_000, "note"),
            ("late", (600_000,), 40_000, "note"),
            ("late, and another", (600_000, 1_200_000), 40_000, "warning"),
        )
    ),
    Case(
        "each point rounded up, llama31_8b",
        "5.1",
        "llama31_8b",
        changed(
            field("global_batch_size", 80),
            positions(partial(rounded_up, interval=12_288, size=80), "samples_count"),
        ),
    ),
    Case(
        "the first two evaluations late, llama31_8b",
        "5.1",
        "llama31_8b",
        positions(lambda n: n + 2000 * min(n // 12_288, 2), "samples_count"),
        ("LLAMAS129 error rules",),
    ),
    Case("rnnt from 1.007", "3.1", "rnnt", positions(lambda n: n + 0.007, "epoch_num")),
    Case(
        "maskrcnn from 1.2",
        "2.1",
        "maskrcnn",
        positions(lambda n: n + 0.2, "epoch_num"),
        ("MRCNN122 error rules",),
    ),
    Case("positions as text", "5.1", "llama31_8b", positions(str, "samples_count")),
    Case(
        "positions as text, one skipped",
        "5.1",
        "llama31_8b",
        changed(positions(str, "samples_count"), partial(skipped, index=3)),
        ("LLAMAS129 error rules",),
    ),
    *(
        Case(
            f"batch size as text, {benchmark} {round_}, {'one' if findings else 'none'} skipped",
            round_,
            benchmark,
            changed(as_text, partial(skipped, index=2)) if findings else as_text,
            findings,
        )
        for round_, benchmark, code in (
            ("1.0", "bert", "BERT126"),
            ("5.0", "bert", "BERT126"),
            ("1.1", "unet3d", "UNET140"),
            ("4.0", "unet3d", "UNET140"),
            ("4.1", "gpt3", "GPT140"),
            ("5.1", "llama31_8b", "LLAMAS129"),
            ("6.0", "gpt_oss_20b", "OSS129"),
            ("5.1", "llama2_70b_lora", "LORA121"),
        )
        for findings in ((), (f"{code} error rules",))
    ),
    Case(
        "batch size as text, 405b",
        "5.0",
        "llama31_405b",
        as_text,
        ("LLAMAL134 error official",),
        "fail",
    ),
    Case(
        "evaluation 1 skipped, resnet",
        "4.0",
        "resnet",
        partial(skipped, index=1),
        ("RN145 error rules",),
    ),
    Case(
        "evaluation 2 skipped, minigo",
        "0.7",
        "minigo",
        partial(skipped, index=2),
        ("MINIGO107 error rules",),
    ),
    *(
        Case(
            f"{games} games, minigo {round_}",
            round_,
            "minigo",
            logged("eval_games", games),
            findings,
        )
        for round_, games, findings in (
            ("0.7", 100, ()),
            ("1.0", 256, ()),
            ("1.0", 255, ("MINIGO112 error rules",)),
            ("2.1", "100", ("MINIGO112 error rules",)),
        )
    ),
    *(
        Case(
            f"evaluated on {count}, {benchmark} {round_}",
            round_,
            benchmark,
            field("eval_samples", count),
            findings,
        )
        for round_, benchmark, count, findings in (
            ("2.0", "ssd", 5_000, ("SSD130 warning rules",)),
            ("5.1", "retinanet", 5_000, ("SSD130 warning rules",)),
            ("5.1", "retinanet", 0, ("SSD130 warning rules",)),
            ("5.1", "retinanet", 100_000, ("SSD130 warning rules",)),
            ("5.1", "retinanet", 24_781, ()),
            ("5.1", "retinanet", 24_832, ()),
            ("5.1", "retinanet", "388", ()),
            ("0.7", "maskrcnn", 2_500, ("MRCNN127 note advice", "MRCNN129 warning rules")),
            ("3.1", "maskrcnn", 10_000, ("MRCNN129 warning rules",)),
            ("3.1", "maskrcnn", 4_952, ("MRCNN127 note advice",)),
            ("3.1", "maskrcnn", 1, ("MRCNN127 note advice",)),
            ("3.1", "maskrcnn", [5_000], ()),
        )
    ),
    # In 0.7 at least as often as the reference, then as often.
    Case("more often, resnet 0.7", "0.7", "resnet", positions(lambda n: n / 2, "epoch_num")),
    Case(
        "more often, resnet 1.0",
        "1.0",
        "resnet",
        positions(lambda n: n / 2, "epoch_num"),
        ("RN142 warning rules",),
    ),
    *(
        Case(f"ssd 0.7, {name}", "0.7", "ssd", positions(position, "epoch_num"), findings)
        for name, position, findings in (
            ("the schedule", lambda n: 40 if n == 5 else 40 + n, ()),
            ("without 50", lambda n: 40 if n == 5 else 45 + n, ("SSD124 error rules",)),
            (
                "every 10 from 50 on",
                lambda n: 40 if n == 5 else 30 + 2 * n,
                ("SSD123 error rules",),
            ),
        )
    ),
    Case("ended in another order, resnet", "4.0", "resnet", swapped),
    *(
        Case(f"ended in another order, unet3d {round_}", round_, "unet3d", swapped)
        for round_ in ("1.1", "4.0")
    ),
    Case(
        "the first one skipped, the others in another order, bert",
        "5.0",
        "bert",
        changed(partial(skipped, index=0), swapped),
        ("BERT123 error rules",),
    ),
    # Where epoch_num does not increase, the runs were evaluated more often than they must be.
    *(
        Case(
            f"{name}, {benchmark} {round_}",
            round_,
            benchmark,
            positions(position, "epoch_num"),
            findings,
        )
        for round_, benchmark, code in (
            ("1.0", "rnnt", "RNNT145"),
            ("3.1", "rnnt", "RNNT145"),
            ("1.0", "maskrcnn", "MRCNN128"),
            ("3.1", "maskrcnn", "MRCNN128"),
            ("2.0", "ssd", "SSD121"),
            ("5.1", "retinanet", "SSD121"),
            ("4.0", "resnet", "RN142"),
            ("1.1", "ssd", "SSD121"),
        )
        for name, position, findings in (
            ("every half interval", lambda n: n / 2, (f"{code} warning rules",)),
            ("one position", lambda _: 1, (f"{code} warning rules",)),
            ("a batch late", lambda n: n + 0.01 * (n > 5), ()),
        )
    ),
    *(
        Case(
            f"one position, {benchmark} {round_}",
            round_,
            benchmark,
            positions(lambda _: 1, "epoch_num"),
        )
        for round_, benchmark in (("0.7", "maskrcnn"), ("0.7", "gnmt"), ("1.0", "bert"))
    ),
    *(
        Case(
            f"one position twice, {benchmark}",
            round_,
            benchmark,
            repeated,
            (f"{code} error rules",),
        )
        for round_, benchmark, code in (
            ("4.0", "llama2_70b_lora", "LORA125"),
            ("5.0", "llama31_405b", "LLAMAL133"),
            ("6.0", "llama31_405b", "LLAMAL133"),
            ("5.1", "llama31_8b", "LLAMAS130"),
            ("6.0", "flux1", "FLUX125"),
            ("6.0", "gpt_oss_20b", "OSS130"),
            ("6.0", "deepseekv3_671b", "DSV130"),
        )
    ),
    Case(
        "1,560 for 1,536, lora",
        "5.1",
        "llama2_70b_lora",
        changed(field("global_batch_size", 8), positions(lambda n: n - 360, "samples_count")),
    ),
    Case(
        "every 300 samples, lora",
        "5.1",
        "llama2_70b_lora",
        positions(lambda n: 1920 + (n - 1920) / 384 * 300, "samples_count"),
        ("LORA119 warning rules",),
    ),
    Case(
        "a short end of the epoch, rgat",
        "5.1",
        "rgat",
        positions(lambda n: min(round(n * 1.02, 6), 1.0), "epoch_num"),
    ),
    Case(
        "short intervals, rgat",
        "5.1",
        "rgat",
        positions(lambda n: n / 2, "epoch_num"),
        ("GNN114 warning rules",),
    ),
    # targets
    *(
        Case(
            f"bert 0.7 at {size}, {accuracy}",
            "0.7",
            "bert",
            fields(global_batch_size=size, eval_accuracy=accuracy),
            findings,
            official,
        )
        for size, accuracy, findings, official in (
            (8192, 0.712, (), "pass"),
            (8192, 0.708, ("BERT114 error rules",), "pass"),
            (448, 0.708, ("BERT111 error official", "BERT114 error rules"), "fail"),
        )
    ),
    Case(
        "a failed run of bert 0.7",
        "0.7",
        "bert",
        changed(
            field("eval_accuracy", 0.6),
            lambda log: edited(log, "run_stop", metadata={"status": "aborted"}),
        ),
        ("BERT111 error official", "RUN130 warning rules"),
        "fail",
    ),
    Case(
        "one too many skipped, bert",
        "5.0",
        "bert",
        positions(lambda n: n + 10**6, "epoch_num"),
        ("BERT123 error rules",),
    ),
    Case(
        "trained too long, unet3d",
        "2.0",
        "unet3d",
        positions(lambda n: n + 10_000, "epoch_num"),
        ("UNET133 error rules", "UNET134 error rules"),
    ),
    Case(
        "trained too long, but failed",
        "2.0",
        "unet3d",
        changed(positions(lambda n: n + 10_000, "epoch_num"), ended("aborted", reached=False)),
        ("UNET110 error official", "UNET133 error rules", "RUN130 warning rules"),
        "fail",
    ),
    Case(
        "flux rounded up",
        "5.1",
        "flux1",
        lambda log: edited(
            edited(log, "global_batch_size", value=1000), "evaluation_frequency", value=263_000
        ),
        ("FLUX102 error official", "FLUX121 warning rules"),
        "fail",
    ),
    # the data
    *(
        Case(
            f"{count} samples in {benchmark} {round_}",
            round_,
            benchmark,
            field("train_samples", count),
            (f"{code} warning rules",) if code else (),
        )
        for round_, benchmark, code, counts in (
            ("0.7", "resnet", "", (1_281_167, 1_281_168, 1_280_000)),
            ("1.1", "ssd", "SSD171", (58_633,)),
            ("5.1", "retinanet", "SSD172", (585_150, 100)),
            ("0.7", "transformer", "", (566_340, 4_590_101, "566340")),
            ("5.1", "rgat", "GNN171", (94_605_580,)),
            ("hpc_3.0", "cosmoflow", "COSMO171", (262_144,)),
        )
        for count in counts
    ),
    *(
        Case(
            f"{count} batches of retinanet",
            "5.0",
            "retinanet",
            lambda log, count=count: edited(  # type: ignore[misc]
                edited(log, "global_batch_size", value=256), "train_samples", value=count
            ),
            findings,
        )
        for count, findings in (
            (4571, ()),
            (4572, ()),
            (4576, ()),
            (2286, ("SSD172 warning rules",)),
        )
    ),
    *(
        Case(
            f"no {key} of minigo, open",
            "2.0",
            "minigo",
            partial(without, key=key),
            (f"{code} error official",),
            "fail",
            "open",
        )
        for key, code in (("train_samples", "RUN117"), ("eval_samples", "RUN118"))
    ),
    Case(
        "half the samples, open", "5.1", "rgat", field("train_samples", 47_302_790), division="open"
    ),
    # seeds
    *(
        Case(f"seed {seed!r}", "5.1", "rgat", field("seed", seed))
        for seed in (1, "1", " 12 ", -5, 12.0, 1.5, 3.7, 10**400)
    ),
    *(
        Case(f"seed {seed!r}", "5.1", "rgat", field("seed", seed), ("RUN153 error rules",))
        for seed in ("x", None, [1], "1.5", "12.0")
    ),
    # the end of a run, which is free in Open
    *(
        Case(
            f"{status}, {'' if reached else 'not '}reached, {benchmark} {division}",
            round_,
            benchmark,
            ended(status, reached),
            findings,
            official,
            division,
        )
        for round_, benchmark, division, status, reached, findings, official in (
            ("5.1", "rgat", "closed", "aborted", True, ("RUN140 warning rules",), "pass"),
            (
                "5.1",
                "rgat",
                "closed",
                "aborted",
                False,
                ("GNN104 error official", "RUN130 warning rules"),
                "fail",
            ),
            ("5.1", "rgat", "open", "aborted", True, ("RUN130 note advice",), "pass"),
            ("5.1", "rgat", "open", "success", False, (), "pass"),
            ("0.7", "resnet", "open", "success", False, ("RN202 error both",), "fail"),
            ("0.7", "ssd", "open", "success", True, (), "pass"),
            (
                "0.7",
                "resnet",
                "open",
                "aborted",
                False,
                ("RN202 error official", "RUN130 warning rules"),
                "fail",
            ),
            ("1.0", "resnet", "open", "aborted", False, ("RUN130 note advice",), "pass"),
            ("1.0", "resnet", "open", "success", False, (), "pass"),
            (
                "5.1",
                "llama31_405b",
                "open",
                "success",
                False,
                ("LLAMAL217 error official",),
                "fail",
            ),
        )
    ),
    *(
        Case(
            f"killed, {'' if reached else 'not '}reached, {benchmark} {division}",
            round_,
            benchmark,
            changed(ended("success", reached), partial(without, key="run_stop")),
            ("RUN109 error official", *findings),
            "fail",
            division,
        )
        for round_, benchmark, division, reached, findings in (
            ("5.1", "rgat", "closed", True, ("RUN140 warning rules",)),
            ("5.1", "rgat", "closed", False, ("GNN104 error official", "RUN130 warning rules")),
        )
    ),
    *(
        Case(
            f"missed after all, {benchmark} {round_}",
            round_,
            benchmark,
            denied,
            ("RUN154 warning rules",),
        )
        for round_, benchmark in (("0.7", "gnmt"), ("hpc_1.0", "deepcam"), ("hpc_3.0", "deepcam"))
    ),
    # one clock in HPC
    *(
        Case(
            f"two {key}",
            "hpc_3.0",
            "deepcam",
            lambda log, key=key: joined(  # type: ignore[misc]
                [c for r in records(log) for c in ([r, r] if r["key"] == key else [r])]
            ),
            (f"{code} error rules", f"{note} note advice"),
        )
        for key, code, note in (("run_start", "RUN151", "RUN108"), ("run_stop", "RUN152", "RUN109"))
    ),
    # the day of a run
    Case("in review", "5.1", "rgat", shifted(30)),
    Case(
        "times in seconds",
        "5.1",
        "rgat",
        each(lambda r: {"time_ms": r["time_ms"] // 1000}),
        ("LOG115 error rules",),
    ),
    Case("long after the submission", "5.1", "rgat", shifted(90), ("RUN158 warning rules",)),
    Case(
        "fewer warm-up steps, as text",
        "5.1",
        "llama31_8b",
        field("opt_learning_rate_warmup_steps", "0"),
        ("LLAMAS107 error both",),
        "fail",
    ),
    Case(
        "decay steps as text",
        "5.1",
        "llama31_8b",
        field("opt_learning_rate_decay_steps", "1199872"),
        ("LLAMAS107 error official",),
        "fail",
    ),
    Case(
        "no evaluation, open",
        "4.0",
        "stable_diffusion",
        lambda log: without(log, "eval_accuracy"),
        ("RUN116 error both", "SD201 error official"),
        "fail",
        "open",
    ),
    Case(
        "boxes alone, open",
        "3.1",
        "maskrcnn",
        field("eval_accuracy", {"BBOX": 0.3}),
        ("MRCNN201 error official", "MRCNN202 error official"),
        "fail",
        "open",
    ),
    # batch size and formats
    *(
        Case(
            f"deepseekv3 at {rate}",
            "6.0",
            "deepseekv3_671b",
            field("opt_base_learning_rate", rate),
            findings,
            quotes=True,
        )
        for rate, findings in (
            (2.3238e-5, ()),
            (2.32379e-5, ()),
            (2.3237e-5, ("DSV129 warning rules",)),
        )
    ),
    Case(
        "405b, small batch",
        "5.1",
        "llama31_405b",
        field("global_batch_size", 1024),
        (
            "LLAMAL106 error both",
            "LLAMAL122 warning rules",
            "LLAMAL124 error rules",
            "LLAMAL127 warning rules",
            "LLAMAL134 error official",
        ),
        "fail",
    ),
    *(
        Case(
            f"405b, batch size {size} in 5.0",
            "5.0",
            "llama31_405b",
            fields(global_batch_size=size, opt_base_learning_rate=rate),
            (
                f"{code} rules",
                "LLAMAL126 warning rules",
                "LLAMAL127 warning rules",
                "LLAMAL134 error official",
            ),
            "fail",
        )
        for size, rate, code in (
            (1120, 7.778e-5, "LLAMAL135 note"),  # there are reference points of 1008 and 1152
            (896, 6.222e-5, "LLAMAL122 warning"),
        )
    ),
    *(
        Case(
            f"gpt3, {size} at {rate}",
            "4.1",
            "gpt3",
            fields(
                global_batch_size=size, opt_base_learning_rate=rate, opt_end_learning_rate=rate / 10
            ),
            tuple(f"{code} warning rules" for code in codes),
            quotes="GPT124" in codes,
        )
        for size, rate, codes in (
            (1024, 2e-5, ("GPT124", "GPT126", "GPT127", "GPT136")),
            (2048, 3e-5, ("GPT124",)),
            (3072, 3e-5, ("GPT124", "GPT126", "GPT127", "GPT136")),
            (4096, 2e-5, ("GPT124", "GPT126", "GPT127", "GPT136")),
            (8192, 3e-5, ("GPT126", "GPT127", "GPT136")),
            (12_288, 3e-5, ("GPT124", "GPT126", "GPT127", "GPT136")),
        )
    ),
    Case(
        "mxfp6",
        "6.1",
        "flux1",
        field("lowest_numerical_precision_in_linear", "mxfp6"),
        ("RUN161 error rules",),
    ),
    Case(
        "no such format",
        "6.1",
        "flux1",
        field("lowest_numerical_precision_in_attn", "fp5"),
        ("RUN132 error official", "RUN162 error rules"),
        "fail",
    ),
    # keys and benchmarks that only the checker has
    Case(
        "counted from the last batch size",
        "6.1",
        "qwen35_397b_grpo",
        batch_size_again,
        ("QWEN101 note advice",),
    ),
    Case(
        "evaluated again after one batch",
        "6.1",
        "qwen35_397b_grpo",
        partial(evaluated_twice, samples=256),
    ),
    Case(
        "evaluated again after two batches",
        "6.1",
        "qwen35_397b_grpo",
        partial(evaluated_twice, samples=512),
        ("QWEN121 error official",),
        "fail",
    ),
    # hyperparameters that only the table has
    *untested("2.0", "resnet", "lars_opt_momentum", {0.9: True, 0.8: False}, "RN118", add=False),
    *untested("0.7", "bert", "max_sequence_length", {512: True, 128: False}, "BERT125", add=False),
    *untested("0.7", "bert", "max_predictions_per_seq", {76: True, 20: False}, "BERT127"),
    *untested("5.0", "bert", "max_predictions_per_seq", {76: True, 80: False}, "BERT127"),
    *untested("hpc_1.0", "cosmoflow", "sgd_opt_momentum", {0.9: True, 0.99: False}, "COSMO113"),
    *untested(
        "hpc_1.0",
        "cosmoflow",
        "opt_learning_rate_decay_factor",
        {0.25: True, 1.0: False, 0: False},
        "COSMO112",
        add=False,
    ),
    *(
        Case(f"{key} {value}", round_, benchmark, field(key, value), findings, quotes=True)
        for round_, benchmark, key, value, findings in (
            (
                "hpc_3.0",
                "cosmoflow",
                "opt_learning_rate_decay_factor",
                [0.5, 1.5],
                ("COSMO112 warning rules",),
            ),
            *(
                (
                    "hpc_3.0",
                    "cosmoflow",
                    "opt_learning_rate_decay_boundary_epochs",
                    epochs,
                    () if is_right else ("COSMO114 warning rules",),
                )
                for is_right, epochs in (
                    (True, [32, 64]),
                    (True, [20, 22, 23, 24]),
                    (False, [32, 0]),
                    (False, [1.5, 3]),
                    (False, []),
                    (False, "32"),
                )
            ),
            ("hpc_1.0", "oc20", "opt_learning_rate_decay_boundary_steps", [100, 200], ()),
            (
                "hpc_1.0",
                "oc20",
                "opt_learning_rate_decay_boundary_steps",
                [100, 0],
                ("OC116 warning rules",),
            ),
        )
    ),
    *(
        Case(
            f"{buckets} buckets, rnnt {round_}",
            round_,
            "rnnt",
            field("data_train_num_buckets", buckets),
            findings,
            "fail" if findings else "pass",
        )
        for round_, buckets, findings in (
            ("1.0", 6, ()),
            ("1.0", 5, ("RNNT121 error both",)),
            ("1.1", 1, ()),
        )
    ),
    *untested("2.0", "bert", "opt_name", {"lamb": True, "LAMB": True, "adam": False}, "BERT124"),
    *untested("5.1", "llama31_405b", "dropout", {0: True, 0.1: False}, "LLAMAL129"),
    *untested(
        "5.1",
        "llama2_70b_lora",
        "sequence_length",
        {8192: True, 8196: True, 4096: False},
        "LORA123",
    ),
    *untested(
        "1.1",
        "ssd",
        "opt_learning_rate_warmup_factor",
        {0: True, 64.0: True, 0.0002: False},
        "SSD128",
        add=False,
    ),
    *(
        Case(
            f"UNET136 {shape}",
            "4.0",
            "unet3d",
            logged("evaluation_input_shape", shape),
            findings,
            quotes=True,
        )
        for shape, findings in (([128, 128, 128], ()), ([64, 64, 64], ("UNET136 warning rules",)))
    ),
    *(
        Case(
            f"unet3d {round_}, every {factor} times 20 epochs",
            round_,
            "unet3d",
            positions(stretched(start, factor), "epoch_num"),
            findings,
        )
        for round_, start in (("1.1", 1000), ("4.0", 168_000))
        for factor, findings in (
            (0.5, ("UNET132 warning rules",)),
            (1.05, ("UNET140 error rules",)),
            (2, ("UNET140 error rules",)),
        )
    ),
    *(
        Case(
            f"epochs from 0, {benchmark}",
            round_,
            benchmark,
            epochs_from_zero,
            (f"{code} note rules",),
            official,
        )
        for round_, benchmark, code, official in (
            ("4.0", "resnet", "RN141", "pass"),
            ("3.1", "rnnt", "RNNT151", "pass"),
            ("2.0", "maskrcnn", "MRCNN121", "pass"),
        )
    ),
]


@pytest.fixture(autouse=True)
def cached() -> Iterator[None]:
    with incumbent.cached_rules():
        yield


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_sentences(case: Case, tmp_path: Path) -> None:
    log, run = case.run
    findings = {f"{f.code} {f.severity.value} {f.basis.value}" for f in run.findings}
    assert findings == set(case.findings)
    assert (run.verdicts.official.value, run.verdicts.rules.value) == (case.official, case.rules)
    assert all("; expected " in finding.text for finding in run.findings)
    assert all(QUOTED in str(finding.hint) for finding in run.findings if case.quotes)
    file = tmp_path / "result_0.txt"
    file.write_bytes(log)
    official = incumbent.check(file, run.usage, f"{run.round}.0")
    assert official.passes == (case.official == "pass")


def test_a_run_that_failed_may_stop_early() -> None:
    case = Case("stopped", "5.1", "rgat", partial(stopped, seconds=5))
    log = edited(case.run[0], "run_stop", metadata={"status": "aborted"})
    run = compared(read_run(LogFile(Source("log.txt", log), "training", "5.1")))
    (finding,) = run.findings
    assert finding.code == "RUN140"
    assert "although the target was reached" in finding.text


@pytest.mark.parametrize(("division", "counts"), [("open", True), ("closed", False)])
def test_every_run_of_open_that_ended_has_converged(division: str, counts: bool) -> None:
    case = Case("", "5.1", "flux1", ended("success", reached=False), division=division)
    assert case.run[1].converged is counts
