"""Submissions that are broken in one way, a row each: both verdicts, and all findings."""

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

from mlperf_logging import compliance_checker

from tests.helpers.broken_runs import SET
from tests.helpers.changes import initialised, later, logged
from tests.helpers.logs import edited, good_log, joined, records, without
from tests.helpers.power import line
from tests.helpers.traps import (
    FILE,
    Change,
    Trap,
    change,
    diverged,
    field,
    killed,
    log,
    measured,
    nothing,
    other_log,
    rewrite,
    shifted,
    system,
    value,
)
from tests.helpers.trees import SYSTEM, remove, simulated, write_set, write_system

DEEP = f"results/{SYSTEM}/strong/resnet"
NAMES = (
    "bert",
    "flux1",
    "rnnt",
    "llama2_70b_lora",
    "llama31_405b",
    "stable_diffusion",
    "gpt_oss_20b",
)
BERT, FLUX, RNNT, LORA, LLAMA, SD, OSS = (f"results/{SYSTEM}/{name}" for name in NAMES)


def aborted(*indexes: int) -> Change:
    changed = {"status": "aborted"}
    return lambda root: rewrite(
        root, lambda text: edited(text, "run_stop", metadata=changed), *indexes
    )


def readme(text: str, benchmark: str = "resnet") -> Change:
    """Another text in the README of the code."""
    return lambda root: (root / "benchmarks" / benchmark / "README.md").write_text(text)


def without_file(name: str, benchmark: str = "resnet") -> Change:
    return lambda root: remove(root / "benchmarks" / benchmark / name)


def other_platform(platform: str, name: str = "Bow Pod64") -> Change:
    """The logs have another platform, and the submission another system of this name."""

    def change(root: Path) -> None:
        write_system(root / "systems", name.lower().replace(" ", "-"), system_name=name)
        field("submission_platform", platform)(root)

    return change


def rename(old: str, new: str) -> Change:
    return lambda root: (root / old).rename(root / new)


# ---- the clock ----------------------------------------------------------------------------


def second_start(text: bytes) -> bytes:
    """Another ``run_start``, a second before ``run_stop``."""
    fields = records(text)
    (stop,) = (i for i, record in enumerate(fields) if record["key"] == "run_stop")
    (start,) = (record for record in fields if record["key"] == "run_start")
    late = {**start, "time_ms": fields[stop]["time_ms"] - 1000}
    return joined([*fields[:stop], late, *fields[stop:]])


def stop_first(text: bytes) -> bytes:
    """A ``run_stop`` a minute before ``run_start``."""
    (start,) = (record for record in records(text) if record["key"] == "run_start")
    return edited(text, "run_stop", time_ms=start["time_ms"] - 60_000)


# ---- what does not fit together -----------------------------------------------------------


def rewritten(edit: Callable[[bytes], bytes]) -> Change:
    """Another log of run 0."""
    return lambda root: rewrite(root, edit, 0)


def late_initialisation(text: bytes) -> bytes:
    """``init_start`` a second before ``run_start``, the settings minutes before both."""
    fields = records(text)
    (start,) = (record for record in fields if record["key"] == "run_start")
    settings = False
    for record in fields:
        if record["key"] == "init_start":
            settings = True
            record["time_ms"] = start["time_ms"] - 1000
        elif record["key"] == "init_stop":
            settings = False
        elif settings:
            record["time_ms"] -= 150_000
    return joined(fields)


def of_eight_devices(text: bytes) -> bytes:
    """A batch size of a device that is the global one on 8 accelerators, of 16."""
    fields = records(text)
    (place,) = (i for i, record in enumerate(fields) if record["key"] == "global_batch_size")
    size = fields[place]
    of_device = {**size, "key": "d_batch_size", "value": size["value"] // 8}
    return joined([*fields[:place], of_device, *fields[place:]])


def spliced(root: Path) -> None:
    """Run 3 has three evaluations of run 0; both have more digits than simulated ones."""
    logs = [records(log(root, index).read_bytes()) for index in (0, 3)]
    evaluations = [[r for r in fields if r["key"] == "eval_accuracy"] for fields in logs]
    for place, (first, other) in enumerate(zip(*evaluations, strict=False)):
        first["value"] += 1.23456e-6
        other["value"] = first["value"] if place in (2, 3, 4) else other["value"] + 2.34567e-6
    for index, fields in zip((0, 3), logs, strict=True):
        log(root, index).write_bytes(joined(fields))


# ---- identity -----------------------------------------------------------------------------


def copied(seed: int, by_ms: int) -> Change:
    """Run 3 becomes run 0, with another seed or at another time."""
    return lambda root: log(root, 3).write_bytes(
        shifted(edited(log(root, 0).read_bytes(), "seed", value=seed), by_ms)
    )


def dressed_up(noise: float) -> Change:
    """Run 3 becomes run 0 a day later, faster, with another seed and noise in its evaluations."""

    def edit(root: Path) -> None:
        fields = records(shifted(edited(log(root, 0).read_bytes(), "seed", value=4711), 86_400_000))
        start = next(record["time_ms"] for record in fields if record["key"] == "run_start")
        for record in fields:
            late = record["time_ms"] > start
            record["time_ms"] -= late * round(0.01 * (record["time_ms"] - start))
            if record["key"] == "eval_accuracy":
                record["value"] *= 1 + noise
        log(root, 3).write_bytes(joined(fields))

    return edit


def repeated(seed: int | None) -> Change:
    """Run 3 has the values of run 0 at times of its own, perhaps with another seed."""

    def edit(root: Path) -> None:
        fields = records(log(root, 0).read_bytes())
        for number, record in enumerate(fields):
            record["time_ms"] += 86_400_000 + 7919 * number % 997
            if record["key"] == "seed" and seed is not None:
                record["value"] = seed
        log(root, 3).write_bytes(joined(fields))

    return edit


def of_another_process(root: Path) -> None:
    """Run 3 is run 0, with another seed and a clock that is up to a second late."""
    fields = records(edited(log(root, 0).read_bytes(), "seed", value=4711))
    for number, record in enumerate(fields):
        record["time_ms"] += 7919 * number % 997
    log(root, 3).write_bytes(joined(fields))


def at_once(root: Path) -> None:
    """Run 1 starts when run 0 does."""
    first, second = (records(log(root, index).read_bytes())[0]["time_ms"] for index in (0, 1))
    rewrite(root, lambda text: shifted(text, first - second), 1)


def other_line(root: Path) -> None:
    for index in (0, 1):
        seed = partial(edited, key="seed", value=5, metadata={"file": "a.py", "lineno": index})
        rewrite(root, seed, index)


def other_key(text: bytes) -> bytes:
    """A last record whose key only holds the word that the RCP checker looks for."""
    fields = records(text)
    extra = {**fields[-1], "key": "eval_global_batch_size", "value": 128}
    return joined([*fields, extra])


# ---- the tree -----------------------------------------------------------------------------


def too_deep(root: Path) -> None:
    (root / SET).rename(root / "resnet")
    (root / f"{DEEP}/..").resolve().mkdir()
    (root / "resnet").rename(root / DEEP)


def too_high(root: Path) -> None:
    for path in (root / SET).iterdir():
        path.rename(root / "results" / SYSTEM / path.name)
    (root / SET).rmdir()


def of_bert(root: Path) -> None:
    for index, text in enumerate(simulated("bert", runs=5)):
        log(root, index).write_bytes(text)


def bracketed(name: str) -> Change:
    """The only system has another name."""

    def change(root: Path) -> None:
        (root / "results" / SYSTEM).rename(root / "results" / name)
        (root / FILE).rename(root / "systems" / f"{name}.json")

    return change


def beside_its_match(root: Path) -> None:
    """``pod[1]`` holds no run that passes, ``pod1`` five."""
    bracketed("pod1")(root)
    write_system(root / "systems", "pod[1]")
    write_set(root / "results" / "pod[1]" / "resnet", (without(good_log(), "cache_clear"),))


FOREIGN = "- BEGIN:\n    CODE: open({!r}, 'w').close()\n"


def foreign(root: Path) -> None:
    """The division is the path of a rule file, which leaves a mark when it is run."""
    folder = root.parent / uuid4().hex  # else a second run in one process is taken for the first
    folder.mkdir()
    (folder / "x_common.yaml").write_text(FOREIGN.format(str(root.parent / "executed")))
    up = "../" * (len(Path(compliance_checker.__path__[0]).parts) + 1)
    field("submission_division", f"{up}{folder.as_posix().strip('/')}/x")(root)


def of_nodes(count: str, files: int, switches: int = 1) -> Change:
    """Power of some nodes of a system, and of the interconnect."""

    def change(root: Path) -> None:
        system(number_of_nodes=count)(root)
        measured()(root)
        for path in (root / SET / "power").iterdir():
            for index in range(1, files):
                (path / f"node_{index}.txt").write_bytes((path / "node_0.txt").read_bytes())
            for index in range(switches):
                (path / f"sw_{index}.txt").write_bytes(line("interconnect_power_est", 1.0, 90.0))

    return change


def late_batch_size(text: bytes) -> bytes:
    """The record of the batch size follows those that depend on it."""
    fields = records(text)
    *rest, last = [record for record in fields if record["key"] != "global_batch_size"]
    return joined([*rest, *(r for r in fields if r["key"] == "global_batch_size"), last])


def of_all(finding: str, key: str = "", folder: str = SET, runs: int = 5) -> tuple[str, ...]:
    """The same finding of every log of a folder."""
    return tuple(f"{finding} {folder}/result_{index}.txt{key}" for index in range(runs))


def of_61(finding: str) -> tuple[str, ...]:
    """The finding of the set of round 6.1."""
    return (f"{finding} results/{SYSTEM}/flux1",)


def of_all_power(finding: str, node: str = "/node_0.txt") -> tuple[str, ...]:
    return tuple(f"{finding} {SET}/power/result_{index}{node}" for index in range(5))


RUN = f"{SET}/result_0.txt"
OLYMPIC = "accepting this under olympic scoring"


PASSED = [
    Trap("nothing is wrong", nothing, "pass", "pass"),
    Trap(
        "Closed for closed",
        system(division="Closed"),
        "pass",
        "pass",
        (f"SYS201 note advice {FILE}:3",),
    ),
    Trap(
        "a division that is neither",
        system(division="close"),
        "pass",
        "fail",
        (f"SYS201 error rules {FILE}:3",),
    ),
    Trap(
        "fewer nodes than none",
        system(number_of_nodes="-1"),
        "pass",
        "fail",
        (f"SYS204 error rules {FILE}:6", f"SYS301 warning advice {FILE}:6"),
    ),
    Trap("no node", system(number_of_nodes="0"), "pass", "fail", (f"SYS204 error rules {FILE}:6",)),
    Trap(
        "the description of another submitter",
        system(submitter="Others"),
        "pass",
        "pass",
        (f"SYS205 warning rules {FILE}:2",),
    ),
    Trap(
        "the description of a partner",
        system(submitter="Graphcore+Others"),
        "pass",
        "pass",
        (f"SYS205 note advice {FILE}:2",),
    ),
    Trap("the submitter in another case", system(submitter="GRAPHCORE"), "pass", "pass"),
    Trap(
        "no answer about network cards",
        system(host_network_card_count=""),
        "pass",
        "pass",
        (f"SYS202 warning rules {FILE}:36",),
        round="6.1",
        benchmark="flux1",
    ),
    Trap(
        "a closed description of open logs",
        system(),
        "pass",
        "fail",
        (f"SET111 error rules {SET}",),
        division="open",
    ),
    Trap(
        "an open description of closed logs",
        system(division="open"),
        "pass",
        "pass",
        (f"SET111 note advice {SET}",),
    ),
    Trap(
        "a second run_start",
        lambda r: rewrite(r, second_start, 0, 1),
        "pass",
        "fail",
        (
            *of_all("RUN108 note advice", "@run_start", runs=2),
            *of_all("RUN151 error rules", "@run_start", runs=2),
        ),
    ),
    Trap(
        "run_stop before run_start",
        lambda r: rewrite(r, stop_first, 0),
        "pass",
        "fail",
        (f"RUN155 error rules {RUN}@run_stop",),
    ),
    Trap("an aborted run", aborted(0), "pass", "pass", (f"RUN140 warning rules {RUN}@run_stop",)),
    Trap(
        "two aborted runs",
        aborted(0, 1),
        "fail",
        "fail",
        (
            f"RCP101 error official {SET}",
            f"SET102 error both {SET}",
            *of_all("RUN140 warning rules", "@run_stop", runs=2),
        ),
    ),
    Trap(
        "two aborted runs, open",
        aborted(0, 1),
        "pass",
        "pass",
        of_all("RUN130 note advice", "@run_stop", runs=2),
        division="open",
    ),
    Trap(
        "a run without cache_clear",
        lambda r: rewrite(r, lambda t: without(t, "cache_clear"), 0),
        "pass",
        "fail",
        (f"RUN105 error rules {RUN}",),
        OLYMPIC,
    ),
    Trap(
        "a copy with another seed",
        copied(4711, 0),
        "pass",
        "fail",
        (f"SET112 error rules {SET}/result_3.txt", f"SET113 note advice {SET}"),
    ),
    Trap(
        "a copy at another time",
        copied(4711, 86_400_000),
        "pass",
        "fail",
        (f"SET112 error rules {SET}/result_3.txt",),
    ),
    Trap(
        "a copy with noise and other times",
        dressed_up(1e-5),
        "pass",
        "fail",
        (f"SET112 error rules {SET}/result_3.txt",),
    ),
    Trap(
        "the log of another process",
        of_another_process,
        "pass",
        "fail",
        (f"SET112 error rules {SET}/result_3.txt", f"SET113 note advice {SET}"),
    ),
    Trap(
        "values that another seed repeats",
        repeated(4711),
        "pass",
        "pass",
        (f"SEED108 warning rules {SET}/result_3.txt",),
    ),
    Trap(
        "values that the same seed repeats",
        repeated(None),
        "fail",
        "pass",
        (
            f"SEED102 error official {SET}/result_3.txt@seed",
            f"SEED107 note advice {SET}/result_3.txt",
        ),
    ),
    Trap("a run that is nearly the same", dressed_up(1e-3), "pass", "pass"),
    Trap("overlapping runs", at_once, "pass", "pass", (f"SET113 note advice {SET}",)),
    Trap(
        "the same seed by another line",
        other_line,
        "pass",
        "pass",
        (f"SEED104 note advice {SET}/result_1.txt@seed", f"SET127 note advice {SET}"),
    ),
    Trap(
        "a misspelt benchmark",
        rename(SET, f"{SET}50"),
        "pass",
        "fail",
        (
            f"SET106 error rules {SET}50",
            f"CODE101 warning rules {SET}50",
            *of_all("SET107 error rules", "", f"{SET}50"),
        ),
        "Skipping benchmark: resnet50",
        skipped=True,
    ),
    Trap(
        "[ in a benchmark's name",
        rename(SET, f"{SET}[1]"),
        "pass",
        "fail",
        (
            f"SET106 error rules {SET}[1]",
            f"CODE101 warning rules {SET}[1]",
            *of_all("SET107 error rules", "", f"{SET}[1]"),
        ),
        "Skipping benchmark: resnet[1]",
        skipped=True,
    ),
    Trap(
        "results too deep",
        too_deep,
        "pass",
        "fail",
        (f"TREE105 error rules {DEEP}",),
        "Skipping benchmark: strong",
        skipped=True,
    ),
    Trap(
        "results too high",
        too_high,
        "pass",
        "fail",
        (
            "TREE101 error rules .",
            f"TREE105 error rules results/{SYSTEM}",
            f"TREE120 note advice {FILE}",
        ),
        skipped=True,
    ),
    Trap("runs of another benchmark", of_bert, "pass", "fail", of_all("SET107 error rules")),
    Trap(
        "an empty package",
        lambda r: remove(r / "results" / SYSTEM),
        "pass",
        "fail",
        ("TREE101 error rules .", f"TREE120 note advice {FILE}"),
        skipped=True,
    ),
    Trap(
        "a system without results",
        lambda r: write_system(r / "systems", "idle"),
        "pass",
        "pass",
        ("TREE120 note advice systems/idle.json",),
    ),
    Trap(
        "mixed batch sizes, open",
        field("global_batch_size", 999, 0),
        "pass",
        "fail",
        (f"SET108 error rules {SET}",),
        division="open",
    ),
    Trap(
        "a batch size of another key",
        lambda r: rewrite(r, other_key),
        "pass",
        "pass",
        of_all("RCP104 warning rules"),
    ),
    Trap(
        "a placeholder for a platform",
        field("submission_platform", "SUBMISSION_PLATFORM_PLACEHOLDER"),
        "pass",
        "pass",
        (f"SET114 note advice {SET}",),
    ),
    Trap(
        "a placeholder for an organisation",
        field("submission_org", "SUBMISSION_ORG_PLACEHOLDER"),
        "pass",
        "pass",
        (f"SET114 note advice {SET}",),
    ),
    Trap(
        "another organisation",
        field("submission_org", "Others"),
        "pass",
        "pass",
        (f"SET115 note advice {SET}",),
    ),
    Trap(
        "another organisation in one run",
        field("submission_org", "Others", 3),
        "pass",
        "pass",
        (f"SET115 warning rules {SET}",),
    ),
    Trap("a partner in one run", field("submission_org", "Graphcore+Others", 3), "pass", "pass"),
    Trap(
        "an organisation with a part of the name in one run",
        field("submission_org", "Raphco", 3),
        "pass",
        "pass",
        (f"SET115 warning rules {SET}",),
    ),
    Trap(
        "a Cyrillic letter in the platform of one run",
        field("submission_platform", "b\u043ew-pod16", 3),
        "pass",
        "fail",
        (f"SET121 error rules {SET}", f"SET128 warning advice {SET}"),
    ),
    Trap(
        "a Cyrillic letter in the name of the submission",
        nothing,
        "pass",
        "pass",
        (f"SYS205 warning rules {FILE}:2", "TREE121 warning advice ."),
        submitter="Gr\u0430phcore",
    ),
    Trap(
        "config_filename of no file",
        rename("benchmarks/flux1/config.sh", "benchmarks/flux1/run.sh"),
        "pass",
        "fail",
        of_all("CODE102 error rules", "@config_filename", f"results/{SYSTEM}/flux1", 10),
        round="6.1",
        benchmark="flux1",
    ),
    Trap(
        "no code of the benchmark",
        rename("benchmarks/resnet", "benchmarks/bert"),
        "pass",
        "pass",
        (f"CODE101 warning rules {SET}",),
    ),
    Trap(
        "no code of the benchmark",
        rename("benchmarks/flux1", "benchmarks/bert"),
        "pass",
        "fail",
        of_61("CODE101 error rules"),
        round="6.1",
        benchmark="flux1",
    ),
    Trap("no README", without_file("README.md"), "pass", "pass", (f"CODE103 warning rules {SET}",)),
    Trap(
        "a README without a command",
        readme("Our code. Ask us how to run it."),
        "pass",
        "pass",
        (f"CODE103 warning rules {SET}",),
    ),
    Trap(
        "an empty README",
        readme("", "flux1"),
        "pass",
        "fail",
        of_61("CODE103 error rules"),
        round="6.1",
        benchmark="flux1",
    ),
    Trap(
        "a README below",
        rename("benchmarks/resnet/README.md", "benchmarks/resnet/readme.md"),
        "pass",
        "pass",
    ),
    Trap(
        "a README of another name",
        rename("benchmarks/resnet/README.md", "benchmarks/resnet/README.txt"),
        "pass",
        "pass",
        (f"CODE106 warning rules {SET}",),
    ),
    Trap(
        "no run_and_time.sh",
        without_file("run_and_time.sh"),
        "pass",
        "pass",
        (f"CODE104 warning rules {SET}",),
    ),
    Trap(
        "no run_and_time.sh",
        without_file("run_and_time.sh", "flux1"),
        "pass",
        "fail",
        of_61("CODE104 error rules"),
        round="6.1",
        benchmark="flux1",
    ),
    *(
        Trap(f"no {name}", without_file(name), "pass", "pass", (f"CODE105 warning rules {SET}",))
        for name in ("setup.sh", "init_datasets.sh")
    ),
    Trap(
        "no type of the system",
        system(system_type=...),
        "pass",
        "pass",
        (f"SYS305 note rules {FILE}",),
    ),
    Trap(
        "no setup.sh",
        without_file("setup.sh", "flux1"),
        "pass",
        "pass",
        of_61("CODE105 warning rules"),
        round="6.1",
        benchmark="flux1",
    ),
    Trap(
        "no type of the system",
        system(system_type=...),
        "pass",
        "pass",
        (f"SYS305 warning rules {FILE}",),
        round="6.1",
        benchmark="flux1",
    ),
    Trap(
        "no type of the system before it was asked for",
        system(system_type=...),
        "pass",
        "pass",
        round="0.7",
    ),
    Trap(
        "an available system with logs of a preview",
        field("submission_status", "preview"),
        "pass",
        "pass",
        of_all("SET140 warning rules"),
    ),
    Trap(
        "a system on premise with logs of a cloud",
        field("submission_status", "cloud"),
        "pass",
        "pass",
        of_all("SET140 warning rules"),
    ),
    Trap(
        "an available system with one log of research",
        field("submission_status", "research", 2),
        "pass",
        "pass",
        (f"SET140 warning rules {SET}/result_2.txt",),
    ),
    Trap(
        "a preview with logs on premise",
        system(status="preview"),
        "pass",
        "pass",
        of_all("SET140 note advice"),
    ),
    Trap(
        "a system in a cloud with logs on premise",
        system(status="Available Cloud"),
        "pass",
        "pass",
        of_all("SET140 note advice"),
    ),
    Trap(
        "an available system",
        lambda r: (system(status="available")(r), field("submission_status", "cloud", 1)(r)),
        "pass",
        "pass",
    ),
    Trap(
        "the platform of another system",
        other_platform("bow-pod64"),
        "pass",
        "pass",
        ("TREE120 note advice systems/bow-pod64.json", *of_all("SET141 warning rules")),
    ),
    Trap(
        "the name of another system",
        other_platform("4x Bow Pod64"),
        "pass",
        "pass",
        ("TREE120 note advice systems/bow-pod64.json", *of_all("SET141 warning rules")),
    ),
    Trap(
        "a part of the name of another system",
        other_platform("pod64"),
        "pass",
        "pass",
        ("TREE120 note advice systems/bow-pod64.json", *of_all("SET141 note advice")),
    ),
    Trap(
        "a part of the names of both systems",
        other_platform("Graphcore Bow"),
        "pass",
        "pass",
        ("TREE120 note advice systems/bow-pod64.json",),
    ),
    Trap(
        "a part of the name of another system with as many nodes",
        other_platform("1x pod64"),
        "pass",
        "pass",
        ("TREE120 note advice systems/bow-pod64.json", *of_all("SET141 note advice")),
    ),
    Trap(
        "a part of the name of another system with fewer nodes",
        other_platform("2x pod64"),
        "pass",
        "pass",
        ("TREE120 note advice systems/bow-pod64.json",),
    ),
    Trap(
        "other nodes, and a part of its name that is the name of another system",
        other_platform("2x Bow-Pod", "Bow Pod"),
        "pass",
        "pass",
        ("TREE120 note advice systems/bow-pod.json", *of_all("SET141 note advice")),
    ),
    Trap(
        "its nodes, and a part of its name that is the name of another system",
        other_platform("1x Bow-Pod", "Bow Pod"),
        "pass",
        "pass",
        ("TREE120 note advice systems/bow-pod.json",),
    ),
    Trap(
        "the platform by the system's name",
        other_platform("1xBow-Pod16"),
        "pass",
        "pass",
        ("TREE120 note advice systems/bow-pod64.json",),
    ),
    Trap(
        "no code at all",
        lambda r: remove(r / "benchmarks"),
        "pass",
        "pass",
        ("CODE100 warning rules .",),
    ),
    Trap(
        "power every other second",
        measured(step=2),
        "pass",
        "fail",
        of_all_power("POW201 error rules"),
        round="4.0",
    ),
    Trap(
        "power with a sample missing",
        measured(missing=70),
        "pass",
        "pass",
        of_all_power("POW201 warning rules"),
        round="4.0",
    ),
    Trap(
        "power of a part of the run",
        measured(seconds=100),
        "pass",
        "fail",
        of_all_power("POW203 error rules"),
        round="4.0",
    ),
    Trap(
        "power of less than a minute",
        measured(seconds=50),
        "pass",
        "fail",
        of_all_power("POW202 note advice") + of_all_power("POW203 error rules"),
        round="4.0",
    ),
    Trap(
        "a negative power",
        measured(watts=-1.0),
        "pass",
        "fail",
        of_all_power("POW206 error rules"),
        round="4.0",
    ),
    Trap(
        "an efficiency above 1",
        measured(efficiency=1.1),
        "pass",
        "fail",
        of_all_power("POW206 error rules"),
        round="4.0",
    ),
    Trap(
        "power of one node of two",
        of_nodes("2", 1),
        "pass",
        "fail",
        of_all_power("POW205 error rules", ""),
        round="4.0",
    ),
    Trap(
        "power of two nodes without a switch",
        of_nodes("2", 2, switches=0),
        "pass",
        "fail",
        of_all_power("POW207 error rules", ""),
        round="4.0",
    ),
    Trap(
        "power of two nodes of one",
        of_nodes("1", 2),
        "pass",
        "pass",
        of_all_power("POW205 warning rules", ""),
        round="4.0",
    ),
    Trap("power of two nodes", of_nodes("2", 2), "pass", "pass", round="4.0"),
    Trap(
        "a field missing in round 0.7",
        system(framework=...),
        "pass",
        "fail",
        (f"SYS101 error rules {FILE}:1",),
        round="0.7",
    ),
    Trap(
        "numbers in round 0.7",
        system(accelerators_per_node=4),
        "pass",
        "pass",
        (f"SYS102 warning official {FILE}:20",),
        round="0.7",
    ),
    Trap("* in a system's name", bracketed("pod*"), "pass", "pass"),
    Trap("[ without its ]", bracketed("pod[1"), "pass", "pass"),
]

INVENTED = [
    Trap(
        "a relative link",
        lambda r: (r / "benchmarks/resnet/notes.txt").symlink_to("config.sh"),
        "fail",
        "pass",
        ("REPO104 error official benchmarks/resnet/notes.txt",),
        "contains broken symbolic links",
    ),
    Trap(
        "records in another order",
        change(FLUX, late_batch_size, 0, 1),
        "fail",
        "pass",
        (
            f"SET103 error official results/{SYSTEM}/flux1",
            *of_all(
                "FLUX102 error official", "@evaluation_frequency", f"results/{SYSTEM}/flux1", 2
            ),
        ),
        "2 files do not comply",
        round="6.1",
        benchmark="flux1",
    ),
    Trap(
        "a number in a description",
        system(accelerators_per_node=4),
        "fail",
        "pass",
        (f"SYS102 error official {FILE}:20",),
        "crash",
    ),
    Trap(
        "no topology in round 2.0, which does not ask for it",
        system(host_networking_topology=...),
        "fail",
        "pass",
        (f"SYS101 error official {FILE}:1",),
        "host_networking_topology",
    ),
    Trap(
        "an availability as the rules write it",
        system(status="Available in the cloud"),
        "fail",
        "pass",
        (f"SYS103 error official {FILE}:4",),
        "Available in the cloud",
        round="5.1",
        benchmark="llama31_8b",
    ),
    Trap(
        "no count of virtual processors",
        system(host_processor_vcpu_count=...),
        "fail",
        "pass",
        (f"SYS101 error official {FILE}:1",),
        "host_processor_vcpu_count",
    ),
    Trap(
        "a preview without counts of processors",
        system(status="Preview", host_processor_core_count=..., host_processor_vcpu_count=...),
        "fail",
        "pass",
        (
            *(f"SYS101 error official {FILE}:1",) * 2,
            f"SET164 note advice results/{SYSTEM}/llama31_8b",
        ),
        "host_processor_core_count",
        round="5.1",
        benchmark="llama31_8b",
    ),
    Trap(
        "[ in a system's name",
        bracketed("pod[1]"),
        "fail",
        "pass",
        ("SET116 error official results/pod[1]/resnet",),
        "found 0, expected 5",
    ),
    Trap(
        "[ in an open system's name",
        bracketed("pod[1]"),
        "fail",
        "pass",
        ("SET116 error official results/pod[1]/resnet",),
        "found 0, expected 5",
        division="open",
    ),
    Trap(
        "[ in a submitter's name",
        nothing,
        "fail",
        "pass",
        (f"SET116 error official {SET}", f"SYS205 note advice {FILE}:2"),
        "found 0, expected 5",
        submitter="Graphcore[1]",
    ),
    Trap(
        "[ in a name that matches another",
        beside_its_match,
        "pass",
        "fail",
        (
            "SET116 warning official results/pod[1]/resnet",
            "SET101 error rules results/pod[1]/resnet",
            "RCP101 warning official results/pod[1]/resnet",
            "RUN105 error rules results/pod[1]/resnet/result_0.txt",
            "SET115 note advice results/pod[1]/resnet",
        ),
    ),
    Trap(
        "* in a name that matches another",
        lambda r: (
            bracketed("pod*")(r),
            write_system(r / "systems", "pods"),
            write_set(r / "results/pods/resnet", simulated(seed=8)),
        ),
        "fail",
        "pass",
        ("SET116 error official results/pod*/resnet",),
        "found 10, expected 5",
    ),
    Trap(
        "a missing description",
        lambda r: remove(r / FILE),
        "fail",
        "fail",
        (f"SET110 error both {SET}",),
        "crash",
    ),
    Trap(
        "dlrm",
        nothing,
        "fail",
        "pass",
        (f"RCP103 error official results/{SYSTEM}/dlrm",),
        "crash",
        benchmark="dlrm",
        round="1.0",
    ),
    Trap(
        "dlrm",
        nothing,
        "fail",
        "pass",
        (f"RCP103 error official results/{SYSTEM}/dlrm",),
        "crash",
        benchmark="dlrm",
        round="2.1",
    ),
]

REJECTED = [
    Trap(
        "mixed batch sizes, closed",
        field("global_batch_size", 999, 0),
        "fail",
        "fail",
        (f"RCP103 error official {SET}", f"SET108 error rules {SET}"),
        "crash",
    ),
    Trap(
        "no division in round 0.7",
        system(division=...),
        "fail",
        "fail",
        (f"SYS101 error both {FILE}:1",),
        "crash",
        round="0.7",
    ),
    Trap(
        "no JSON in round 0.7",
        lambda r: (r / FILE).write_text("{"),
        "fail",
        "fail",
        (f"SYS001 error both {FILE}:1", f"SET110 error both {SET}"),
        "crash",
        round="0.7",
    ),
    Trap(
        "a division that is a path",
        foreign,
        "fail",
        "fail",
        (
            *of_all("SET104 error official"),
            f"SET103 error official {SET}",
            *of_all("RUN103 error both", "@submission_division"),
        ),
        "/x_common.yaml",
    ),
]


# ---- the runs of a result set together ----------------------------------------------------


def both(*changes: Change) -> Change:
    return lambda root: [change(root) for change in changes]


def file_with(path: str, text: str) -> Change:
    return lambda root: (root / path).write_text(text)


def factor(number: Any) -> Change:
    return file_with(f"{SET}/scaling.json", json.dumps({"scaling_factor": number}))


def killed_early(text: bytes) -> bytes:
    """The log ends before ``run_start``."""
    fields = records(text)
    return joined(fields[: [record["key"] for record in fields].index("run_start")])


def placeholder(_: bytes) -> bytes:
    return b"placeholder\n"


def ends_early(text: bytes) -> bytes:
    """The evaluations end before they start."""
    return edited(text, "eval_stop", time_ms=records(text)[0]["time_ms"])


def another_seed(text: bytes, more: int = 10**6) -> bytes:
    """One more seed, by the same source line."""
    fields = records(text)
    first = [record["key"] for record in fields].index("seed")
    extra = {**fields[first], "value": fields[first]["value"] + more}
    return joined([*fields[: first + 1], extra, *fields[first + 1 :]])


def earlier(samples: int) -> Callable[[bytes], bytes]:
    """All evaluations are earlier by this number of samples."""

    def moved(record: dict[str, Any]) -> dict[str, Any]:
        count = record["metadata"].get("samples_count") if record["metadata"] else None
        if record["key"] != "eval_accuracy" or count is None:
            return record
        return {**record, "metadata": {**record["metadata"], "samples_count": count - samples}}

    return lambda text: joined([moved(record) for record in records(text)])


def fewer_checkpoints(*counts: int, unit: str = "samples_count") -> Callable[[bytes], bytes]:
    """The checkpoints at these ``counts`` of images, or of steps, were not evaluated."""

    def is_kept(record: dict[str, Any]) -> bool:
        metadata = record["metadata"] or {}
        return record["key"] != "eval_accuracy" or metadata[unit] not in counts

    return lambda text: joined(list(filter(is_kept, records(text))))


BYPASS, OVERLAP = "rcp-bypass", f"SET113 note advice {SET}"
CLOSED, OPEN = system(division="Closed"), system(division="Open")
MORE_RATE = value("lars_opt_base_learning_rate", 11.0)

OF_SETS = [
    Trap(
        "a diverged run",
        change(SET, diverged(101), 1),
        "pass",
        "pass",
        (
            f"RN103 warning official {SET}/result_1.txt:339",
            f"RUN130 note rules {SET}/result_1.txt:342",
            OVERLAP,
        ),
        OLYMPIC,
    ),
    Trap(
        "two diverged runs",
        both(change(SET, diverged(101), 1), change(SET, diverged(102), 2)),
        "fail",
        "fail",
        (
            f"RCP101 error official {SET}",
            f"RN103 error official {SET}/result_1.txt:339",
            f"RN103 error official {SET}/result_2.txt:339",
            f"RUN130 warning rules {SET}/result_1.txt:342",
            f"RUN130 warning rules {SET}/result_2.txt:342",
            f"SET102 error both {SET}",
            f"SET103 error official {SET}",
            OVERLAP,
        ),
    ),
    Trap(
        "two runs without cache_clear",
        change(SET, lambda text: without(text, "cache_clear"), 1, 2),
        "fail",
        "fail",
        (
            f"RUN105 error both {SET}/result_1.txt",
            f"RUN105 error both {SET}/result_2.txt",
            f"SET103 error official {SET}",
        ),
    ),
    Trap(
        "a run too few", lambda r: remove(log(r, 4)), "fail", "fail", (f"SET101 error both {SET}",)
    ),
    Trap(
        "a run too many",
        lambda r: log(r, 5).write_bytes(other_log(seed=9)),
        "fail",
        "pass",
        (f"SET101 error official {SET}", OVERLAP),
    ),
    Trap(
        "an entry moved to open that misses the target",
        both(system(division="open"), change(SET, diverged(101), 1), change(SET, diverged(102), 2)),
        "fail",
        "pass",
        (
            *(f"RN103 error official {SET}/result_{i}.txt:339" for i in (1, 2)),
            *(f"RUN130 note rules {SET}/result_{i}.txt:342" for i in (1, 2)),
            f"SET103 error official {SET}",
            f"SET111 note advice {SET}",
            OVERLAP,
        ),
    ),
    Trap(
        "an entry moved to open with other hyperparameters",
        both(system(division="open"), field("lars_epsilon", 1.0)),
        "fail",
        "pass",
        (
            *(f"RN115 error official {SET}/result_{i}.txt:17" for i in range(5)),
            f"SET103 error official {SET}",
            f"SET111 note advice {SET}",
        ),
    ),
    Trap(
        "an entry moved to open without a batch size",
        both(system(division="open"), field("global_batch_size", "big")),
        "fail",
        "pass",
        (
            *(f"RN101 error official {SET}/result_{i}.txt:7" for i in range(5)),
            f"SET103 error official {SET}",
            f"SET111 note advice {SET}",
        ),
    ),
    Trap(
        "the same seed",
        field("seed", 5, 0, 1),
        "fail",
        "pass",
        (f"SEED102 error official {SET}/result_1.txt:21",),
    ),
    Trap(
        "no seed",
        change(SET, lambda text: without(text, "seed"), 0),
        "fail",
        "pass",
        (f"SEED101 error official {RUN}",),
    ),
    Trap(
        "a seed that is text",
        field("seed", "x", 0),
        "fail",
        "pass",
        (f"SEED103 error official {RUN}",),
    ),
    Trap(
        "a batch size above all points",
        field("global_batch_size", 10**7),
        "fail",
        "pass",
        (f"RCP101 error official {SET}",),
    ),
    Trap(
        "a log of another benchmark",
        change(SET, lambda _: other_log("bert"), 0),
        "fail",
        "fail",
        (f"RCP103 error official {SET}", f"SET107 error rules {RUN}", f"SET108 error rules {SET}"),
    ),
    Trap(
        "a description that is not JSON",
        file_with(FILE, "{"),
        "fail",
        "fail",
        (f"SET110 error both {SET}", f"SYS001 error both {FILE}:1"),
        "crash",
    ),
    Trap(
        "a killed run",
        change(SET, killed, 0),
        "pass",
        "pass",
        (f"RUN130 warning rules {RUN}",),
        OLYMPIC,
    ),
    Trap(
        "a killed run of another platform",
        both(change(SET, killed, 0), field("submission_platform", "another", 0)),
        "pass",
        "pass",
        (f"RUN130 warning rules {RUN}",),
        OLYMPIC,
    ),
    Trap(
        "a killed run without power",
        both(measured(), change(SET, killed, 0), lambda r: remove(r / SET / "power/result_0")),
        "pass",
        "pass",
        (f"POW101 warning official {SET}/power", f"RUN130 warning rules {RUN}"),
        OLYMPIC,
    ),
    Trap(
        "a run without power",
        both(measured(), lambda r: remove(r / SET / "power/result_0")),
        "pass",
        "fail",
        (f"POW101 error rules {SET}/power", f"POW105 warning official {SET}/power"),
        OLYMPIC,
    ),
    Trap(
        "a run killed early",
        change(SET, killed_early, 0),
        "pass",
        "pass",
        (f"RUN130 note rules {RUN}",),
        OLYMPIC,
    ),
    Trap(
        "a run killed while it writes",
        change(SET, partial(killed, end=b':::MLLOG {"key": "blo'), 0),
        "fail",
        "pass",
        (
            f"LOG101 warning official {RUN}:197",
            f"RUN130 warning rules {RUN}",
            f"SEED103 error official {RUN}",
        ),
    ),
    Trap(
        "a placeholder of a run",
        change(SET, placeholder, 0),
        "fail",
        "pass",
        (
            f"LOG110 note official {RUN}",
            f"RCP103 error official {SET}",
            f"SEED101 error official {RUN}",
        ),
    ),
    Trap(
        "a placeholder of a run, open",
        change(SET, placeholder, 0),
        "pass",
        "pass",
        (f"LOG110 note official {RUN}",),
        division="open",
    ),
    Trap(
        "two killed runs",
        change(SET, killed, 0, 1),
        "fail",
        "fail",
        (
            f"RCP101 error official {SET}",
            f"RN103 error official {RUN}:196",
            f"RN103 error official {SET}/result_1.txt:196",
            f"RUN109 error official {RUN}",
            f"RUN109 error official {SET}/result_1.txt",
            f"RUN115 error official {RUN}",
            f"RUN115 error official {SET}/result_1.txt",
            f"RUN130 warning rules {RUN}",
            f"RUN130 warning rules {SET}/result_1.txt",
            f"SET102 error both {SET}",
            f"SET103 error official {SET}",
        ),
    ),
    Trap(
        "Closed with one seed, 2.0",
        both(CLOSED, change(SET, value("seed", 5), 0, 1)),
        "pass",
        "pass",
        (f"SYS201 note advice {FILE}:3",),
    ),
    Trap(
        "Closed with one seed",
        both(CLOSED, change(LORA, value("seed", 5), 0, 1)),
        "pass",
        "fail",
        (f"SEED102 error rules {LORA}/result_1.txt:17", f"SYS201 note advice {FILE}:3"),
        round="4.1",
        benchmark="llama2_70b_lora",
    ),
    Trap(
        "an evaluation that ends early",
        change(SET, ends_early, 0),
        "pass",
        "fail",
        (f"RUN165 error rules {RUN}:197",),
    ),
    Trap(
        "a seed of two processes",
        change(LORA, partial(another_seed, more=0), 0),
        "fail",
        "pass",
        (f"SEED102 error official {LORA}/result_0.txt:18",),
        round="4.1",
        benchmark="llama2_70b_lora",
    ),
    Trap(
        "a batch size as a double in one run",
        field("global_batch_size", 3264.0, 0),
        "pass",
        "pass",
        (),
    ),
    Trap(
        "a rate as text in one run",
        change(SET, value("lars_opt_base_learning_rate", "10.2840"), 0),
        "pass",
        "pass",
        (),
    ),
    Trap(
        "much too early for the batch size",
        field("global_batch_size", 65536),
        "fail",
        "fail",
        (f"RCP101 error official {SET}", f"RCP107 error rules {SET}"),
    ),
    Trap(
        "another organisation in one run beside a placeholder",
        both(
            field("submission_org", "Others", 3),
            field("submission_org", "SUBMISSION_ORG_PLACEHOLDER", 4),
        ),
        "pass",
        "pass",
        (f"SET114 note advice {SET}", f"SET115 warning rules {SET}"),
    ),
    Trap(
        "much too early, to be reviewed",
        both(field("global_batch_size", 65536), file_with(f"{SET}/package_checker_params", BYPASS)),
        "pass",
        "pass",
        (f"RCP102 warning rules {SET}",),
    ),
    Trap(
        "two seeds in a run",
        change(LORA, another_seed, 0),
        "pass",
        "pass",
        (f"SEED105 warning rules {LORA}/result_0.txt:18",),
        round="4.1",
        benchmark="llama2_70b_lora",
    ),
    Trap(
        "two seeds in a run",
        change(LORA, another_seed, 0),
        "pass",
        "pass",
        (),
        round="4.0",
        benchmark="llama2_70b_lora",
    ),
    Trap(
        "two seeds in a run",
        change(LORA, another_seed, 0),
        "pass",
        "pass",
        (),
        round="5.0",
        benchmark="llama2_70b_lora",
        division="open",
    ),
    Trap(
        "no seed",
        change(LORA, lambda text: without(text, "seed"), 0),
        "fail",
        "fail",
        (f"SEED101 error both {LORA}/result_0.txt",),
        round="4.1",
        benchmark="llama2_70b_lora",
    ),
    Trap(
        "no seed",
        change(LORA, lambda text: without(text, "seed"), 0),
        "pass",
        "pass",
        (),
        round="5.0",
        benchmark="llama2_70b_lora",
        division="open",
    ),
    Trap(
        "Closed and too early",
        both(CLOSED, change(LORA, earlier(1152))),
        "pass",
        "fail",
        (f"RCP101 error rules {LORA}", f"SYS201 note advice {FILE}:3"),
        round="4.1",
        benchmark="llama2_70b_lora",
    ),
    Trap("Open for open", OPEN, "pass", "pass", (f"SYS201 note advice {FILE}:3",), division="open"),
    Trap(
        "Closed for open logs",
        CLOSED,
        "pass",
        "fail",
        (f"SET111 error rules {SET}", f"SYS201 note advice {FILE}:3"),
        division="open",
    ),
    Trap(
        "too early",
        change(LORA, earlier(1152)),
        "fail",
        "fail",
        (f"RCP101 error both {LORA}",),
        round="4.1",
        benchmark="llama2_70b_lora",
    ),
    Trap(
        "too early, to be reviewed",
        both(change(LORA, earlier(1152)), file_with(f"{LORA}/package_checker_params", BYPASS)),
        "pass",
        "pass",
        (f"RCP102 warning rules {LORA}",),
        round="4.1",
        benchmark="llama2_70b_lora",
    ),
    Trap(
        "405b one evaluation early",
        change(LLAMA, earlier(36_864)),
        "pass",
        "pass",
        (),
        round="5.0",
        benchmark="llama31_405b",
    ),
    Trap(
        "405b one evaluation early",
        change(LLAMA, earlier(36_864)),
        "pass",
        "fail",
        (f"RCP105 error rules {LLAMA}",),
        round="5.1",
        benchmark="llama31_405b",
    ),
    Trap(
        "405b one evaluation early",
        change(LLAMA, earlier(36_864)),
        "pass",
        "fail",
        (f"RCP105 error rules {LLAMA}",),
        round="6.0",
        benchmark="llama31_405b",
    ),
    Trap(
        "a factor below 1", factor(0.9), "pass", "fail", (f"SET118 error rules {SET}/scaling.json",)
    ),
    Trap("a factor of 0", factor(0), "pass", "fail", (f"SET118 error rules {SET}/scaling.json",)),
    Trap(
        "a factor that is text",
        factor("1.02"),
        "pass",
        "fail",
        (f"SET119 error rules {SET}/scaling.json",),
    ),
    Trap(
        "a factor that is not finite",
        factor(float("nan")),
        "pass",
        "fail",
        (f"SET119 error rules {SET}/scaling.json",),
    ),
    Trap(
        "no JSON for a factor",
        file_with(f"{SET}/scaling.json", "{"),
        "pass",
        "fail",
        (f"SET119 error rules {SET}/scaling.json:1",),
    ),
    Trap("a factor of 1", factor(1.0), "pass", "pass", ()),
    Trap(
        "a factor by review",
        factor(1.5),
        "pass",
        "pass",
        (f"SET120 note advice {SET}/scaling.json",),
    ),
    Trap(
        "a factor of an open set",
        factor(0.5),
        "pass",
        "fail",
        (f"SET118 error rules {SET}/scaling.json",),
        division="open",
    ),
    Trap(
        "another platform",
        field("submission_platform", "another", 0),
        "pass",
        "fail",
        (f"SET121 error rules {SET}",),
    ),
    Trap(
        "a platform in capitals",
        field("submission_platform", SYSTEM.upper(), 0),
        "pass",
        "pass",
        (),
    ),
    Trap(
        "another learning rate",
        change(SET, MORE_RATE, 0),
        "pass",
        "fail",
        (f"SET122 error rules {SET}",),
    ),
    Trap(
        "another learning rate",
        change(SET, MORE_RATE, 0),
        "pass",
        "fail",
        (f"SET122 error rules {SET}",),
        division="open",
    ),
    Trap(
        "another accumulation",
        field("gradient_accumulation_steps", 2, 0),
        "pass",
        "fail",
        (f"SET122 error rules {SET}",),
    ),
    Trap(
        "another warm-up",
        change(RNNT.replace("rnnt", "maskrcnn"), value("opt_learning_rate_warmup_steps", 127), 0),
        "pass",
        "pass",
        (f"SET122 note advice {RNNT.replace('rnnt', 'maskrcnn')}",),
        benchmark="maskrcnn",
    ),
    Trap("all checkpoints", nothing, "pass", "pass", (), round="5.0", benchmark="stable_diffusion"),
    Trap(
        "the last two checkpoints",
        change(SD, fewer_checkpoints(512_000, 1_024_000), *range(9)),
        "pass",
        "pass",
        (),
        round="5.0",
        benchmark="stable_diffusion",
    ),
    Trap(
        "only the last two checkpoints",
        change(SD, fewer_checkpoints(512_000, 1_024_000)),
        "pass",
        "pass",
        (f"SET124 note advice {SD}",),
        round="5.0",
        benchmark="stable_diffusion",
    ),
    Trap(
        "only the last checkpoint",
        change(SD, fewer_checkpoints(1_536_000), 0),
        "pass",
        "fail",
        (f"SET123 error rules {SD}/result_0.txt",),
        round="5.0",
        benchmark="stable_diffusion",
    ),
    Trap(
        "only the last checkpoint, in steps",
        change(SD, fewer_checkpoints(1750, unit="step_num"), 0),
        "pass",
        "fail",
        (f"SET123 error rules {SD}/result_0.txt",),
        round="3.1",
        benchmark="stable_diffusion",
    ),
    Trap(
        "another end rate",
        change(OSS, value("opt_base_learning_rate", 3e-4)),
        "pass",
        "pass",
        (),
        round="6.0",
        benchmark="gpt_oss_20b",
    ),
    Trap(
        "another end rate, too early",
        both(
            change(OSS, value("opt_base_learning_rate", 3e-4)),
            change(OSS, earlier(36_864)),
            file_with(f"{OSS}/package_checker_params", BYPASS),
        ),
        "pass",
        "fail",
        (f"RCP102 warning rules {OSS}", f"RCP106 error rules {OSS}"),
        round="6.0",
        benchmark="gpt_oss_20b",
    ),
]


# ---- sentences of the written rules about runs, of which tests/run/test_written_rules.py has more

IN_BERT: dict[str, Any] = {"round": "5.0", "benchmark": "bert"}
IN_FLUX: dict[str, Any] = {"round": "6.0", "benchmark": "flux1"}
IN_LORA: dict[str, Any] = {"round": "6.0", "benchmark": "llama2_70b_lora"}
IN_LLAMA: dict[str, Any] = {"round": "6.0", "benchmark": "llama31_405b"}


def first(finding: str, folder: str = BERT, key: str = "") -> tuple[str, ...]:
    """The finding of the first run."""
    return of_all(finding, key, folder, 1)


OF_RUNS = [
    # the clock
    Trap(
        "30 minutes",
        change(BERT, initialised(30), 0),
        "pass",
        "pass",
        first("RUN121 warning official", key="@init_stop"),
        OLYMPIC,
        **IN_BERT,
    ),
    Trap(
        "31 minutes",
        change(BERT, initialised(31), 0),
        "pass",
        "fail",
        first("RUN121 error rules", key="@init_stop"),
        OLYMPIC,
        **IN_BERT,
    ),
    Trap(
        "30 minutes in all runs",
        change(BERT, initialised(30)),
        "fail",
        "pass",
        (f"SET103 error official {BERT}", *of_all("RUN121 error official", "@init_stop", BERT, 10)),
        **IN_BERT,
    ),
    Trap(
        "start after data",
        change(BERT, later("run_start", 30), 0),
        "pass",
        "fail",
        first("RUN156 error rules", key="@run_start"),
        **IN_BERT,
    ),
    # formats, rates and other hyperparameters
    Trap(
        "no such format",
        change(FLUX, logged("lowest_numerical_precision_in_linear", "fp6")),
        "fail",
        "fail",
        (
            f"SET103 error official {FLUX}",
            *of_all("RUN131 error both", "@lowest_numerical_precision_in_linear", FLUX, 10),
        ),
        **IN_FLUX,
    ),
    Trap(
        "no such format",
        change(FLUX, logged("lowest_numerical_precision_in_linear", "fp6")),
        "fail",
        "pass",
        (
            f"SET103 error official {FLUX}",
            *of_all("RUN131 error official", "@lowest_numerical_precision_in_linear", FLUX, 10),
        ),
        division="open",
        **IN_FLUX,
    ),
    Trap(
        "dropout logged by two runs",
        change(LORA, logged("lora_dropout", 0.1), 1, 2),
        "pass",
        "pass",
        **IN_LORA,
    ),
    Trap(
        "another end rate",
        change(OSS, value("opt_end_learning_rate", 5e-5)),
        "pass",
        "pass",
        of_all("OSS125 warning rules", "@opt_end_learning_rate", OSS, 10),
        round="6.0",
        benchmark="gpt_oss_20b",
    ),
    Trap(
        "another end rate",
        change(LLAMA, value("opt_end_learning_rate", 8e-6)),
        "pass",
        "pass",
        of_all("LLAMAL125 warning rules", "@opt_end_learning_rate", LLAMA, 3),
        **IN_LLAMA,
    ),
    Trap(
        "another bucket of data",
        change(RNNT, value("data_train_max_duration", 14.0), 0),
        "pass",
        "fail",
        (f"SET122 error rules {RNNT}",),
        round="3.1",
        benchmark="rnnt",
    ),
    # plausibility
    Trap(
        "a late initialisation",
        rewritten(late_initialisation),
        "pass",
        "pass",
        (f"RUN181 warning advice {SET}/result_0.txt@init_start",),
    ),
    Trap(
        "a batch size of fewer accelerators",
        rewritten(of_eight_devices),
        "pass",
        "pass",
        (f"SET170 warning advice {SET}/result_0.txt",),
    ),
    Trap(
        "spliced evaluations",
        spliced,
        "pass",
        "pass",
        (f"SET171 warning advice {SET}/result_3.txt",),
    ),
    # descriptions
    Trap(
        "a preview without processors",
        system(status="Preview", host_processor_core_count="", host_processor_vcpu_count=""),
        "pass",
        "pass",
        (f"SET164 note advice results/{SYSTEM}/bert",),
        **IN_BERT,
    ),
]

ALL = (*PASSED, *INVENTED, *REJECTED, *OF_SETS, *OF_RUNS)
