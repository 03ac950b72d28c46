"""Hostile submissions: each case changes a valid one."""

import json
import os
import shutil
import socket
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.helpers.logs import edited
from tests.helpers.trees import SYSTEM, write_system

Case = Callable[[Path], object]
RESULTS = f"results/{SYSTEM}/resnet"
HUGE = 10**400
DEEP = 500


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


def log(edit: Callable[[bytes], bytes], pattern: str = "result_0.txt") -> Case:
    """Change the first log, or others."""

    def case(top: Path) -> None:
        for path in (top / RESULTS).glob(pattern):
            path.write_bytes(edit(path.read_bytes()))

    return case


def value(key: str, new: Any) -> Case:
    return log(lambda text: edited(text, key, value=new))


def metadata(key: str, **fields: Any) -> Case:
    return log(lambda text: edited(text, key, metadata=fields))


def every_log(key: str, **changes: Any) -> Case:
    return log(lambda text: edited(text, key, **changes), "result_*.txt")


def file(path: str, content: bytes) -> Case:
    def case(top: Path) -> None:
        (top / path).parent.mkdir(parents=True, exist_ok=True)
        (top / path).write_bytes(content)

    return case


def instead(path: str, make: Callable[[Path], object]) -> Case:
    """Replace a file or a folder by something else."""

    def case(top: Path) -> None:
        target = top / path
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(target) if target.is_dir() else target.unlink(missing_ok=True)
        make(target)

    return case


def pipe(path: str) -> Case:
    return instead(path, os.mkfifo)


def listening(path: Path) -> None:
    here = Path.cwd()
    os.chdir(path.parent)  # the path of a socket is short
    try:
        with socket.socket(socket.AF_UNIX) as end:
            end.bind(path.name)
    finally:
        os.chdir(here)


def renamed(name: bytes) -> Case:
    """Another name for the system, in all places."""

    def case(top: Path) -> None:
        new = os.fsdecode(name)
        (top / "results" / SYSTEM).rename(top / "results" / new)
        (top / "systems" / f"{SYSTEM}.json").rename(top / "systems" / f"{new}.json")

    return case


def deep_folders(below: str) -> Case:
    def case(top: Path) -> None:
        here = os.open(top / below, os.O_RDONLY)
        for _ in range(1500):
            os.mkdir("deep", dir_fd=here)
            inner = os.open("deep", os.O_RDONLY, dir_fd=here)
            os.close(here)
            here = inner
        os.close(here)

    return case


def many(number: int, path: str) -> Case:
    """Add empty folders, or empty files if the path has a suffix; ``{}`` is the number of each."""

    def case(top: Path) -> None:
        for index in range(number):
            entry = top / path.format(index)
            entry.parent.mkdir(parents=True, exist_ok=True)
            entry.touch() if entry.suffix else entry.mkdir(exist_ok=True)

    return case


def unreadable(path: str) -> Case:
    return lambda top: (top / path).chmod(0)


def system(**fields: Any) -> Case:
    return lambda top: write_system(top / "systems", division="closed", **fields)


def system_text(content: bytes) -> Case:
    return file(f"systems/{SYSTEM}.json", content)


def record(key: str, text: bytes) -> bytes:
    """A line whose value is any text."""
    fields = {"key": key, "value": "@", "time_ms": 1, "metadata": {}}
    return b":::MLLOG " + json.dumps(fields).encode().replace(b'"@"', text) + b"\n"


def added(line: bytes) -> Case:
    return log(lambda text: text + line)


def remove(tree: Path) -> None:
    """Remove a tree that may be too deep for Python, and have folders that cannot be read."""
    if subprocess.run(["rm", "-rf", str(tree)], check=False, capture_output=True).returncode:
        subprocess.run(["chmod", "-R", "u+rwX", str(tree)], check=False)
        subprocess.run(["rm", "-rf", str(tree)], check=True)


SUBMITTED = ("submission_platform", "submission_benchmark", "submission_division")
NUMBERS = ("global_batch_size", "seed", "eval_accuracy", "train_samples")
ESCAPES = b"a\x1b[31m\x07\xef\xbf\xbe\xff\xe2\x80\xae"

CASES: dict[str, Case] = {
    # Deep values.
    **{f"deep {key}": value(key, nested(DEEP)) for key in (*SUBMITTED, "opt_name", *NUMBERS)},
    "deep status": metadata("run_stop", status=nested(DEEP)),
    "deep epoch": metadata("eval_accuracy", epoch_num=nested(DEEP)),
    "deep seed metadata": metadata("seed", file=nested(DEEP), lineno=1),
    "too deep record": added(record("opt_name", b"[" * 100_000)),
    "too deep closed record": added(record("opt_name", b"[" * 5000 + b"]" * 5000)),
    "too deep tensor": metadata("weights_initialization", tensor=nested(DEEP)),
    # Long lines.
    "tokens": added(b":::MLLOG " * 200_000 + b"\n"),
    "long list": added(record("opt_name", b"[" + b"1," * 1_000_000 + b"1]")),
    "long text": added(record("opt_name", b'"' + b"x" * 1_000_000 + b'"')),
    "long line": added(b"x" * 20_000_000),
    # Numbers.
    **{f"huge {key}": value(key, HUGE) for key in ("opt_base_learning_rate", *NUMBERS)},
    "huge batch in every log": every_log("global_batch_size", value=HUGE),
    "huge epochs": every_log("eval_accuracy", metadata={"epoch_num": HUGE}),
    "huge samples": every_log("eval_accuracy", metadata={"samples_count": HUGE}),
    "infinite time": every_log("run_stop", time_ms="9" * 400),
    "huge time": log(lambda text: edited(text, "run_stop", time_ms=HUGE)),
    "too many digits": added(record("opt_name", b"9" * 5000)),
    "huge nodes": system(number_of_nodes=HUGE, accelerators_per_node=HUGE),
    "a huge field": system(host_processor_model_name=HUGE),
    "huge nodes as text": system(number_of_nodes=str(HUGE), accelerators_per_node=str(HUGE)),
    "infinite factor": file(f"{RESULTS}/scaling.json", b'{"scaling_factor": 1e999}'),
    "too many digits in a factor": file(
        f"{RESULTS}/scaling.json", b'{"scaling_factor": ' + b"9" * 9999 + b"}"
    ),
    # JSON files.
    "deep factor": file(f"{RESULTS}/scaling.json", b"[" * 5000),
    "large factor": file(f"{RESULTS}/scaling.json", b" " * 3_000_000),
    "deep private id": file(f"results/{SYSTEM}/privateid.json", b"[" * 5000),
    "deep description": system_text(b"[" * 100_000),
    "deep field": system(framework=nested(150)),
    "large description": system_text(b'{"a": "' + b"x" * 5_000_000 + b'"}'),
    "many fields": system_text(b"[" + b"{}," * 300_000 + b"{}]"),
    "large flags": file("package_checker_params", b"rcp-bypass\n" * 500_000),
    # Devices, pipes and sockets.
    **{
        f"pipe {path}": pipe(path)
        for path in (
            *(f"{folder}/package_checker_params" for folder in (".", RESULTS)),
            *(f"{RESULTS}/{name}" for name in ("scaling.json", "result_0.txt")),
            f"{RESULTS}/power/result_0/node_0.txt",
            *(f"results/{SYSTEM}/privateid.json", f"systems/{SYSTEM}.json", "mlperf-pkg.yaml"),
        )
    },
    "socket": instead(f"{RESULTS}/package_checker_params", listening),
    "device": instead(
        f"{RESULTS}/package_checker_params", lambda path: path.symlink_to("/dev/zero")
    ),
    # Folders.
    "a file instead of results": instead("results", Path.touch),
    "a pipe instead of results": pipe("results"),
    "a link to itself": instead(RESULTS, lambda path: path.symlink_to(path.name)),
    "many benchmarks": many(200, f"results/{SYSTEM}/b{{}}"),
    "many logs": many(200, f"{RESULTS}/result_{{}}.txt"),
    "deep folders": deep_folders("."),
    "deep folders in a set": deep_folders(RESULTS),
    "unreadable set": unreadable(RESULTS),
    "unreadable submission": unreadable("."),
    "unreadable log": unreadable(f"{RESULTS}/result_0.txt"),
    "unreadable systems": unreadable("systems"),
    # Names.
    "escapes in a name": renamed(ESCAPES),
    "an unknown benchmark": lambda top: (top / RESULTS).rename(
        (top / RESULTS).with_name("a\x1b[31m\n")
    ),
    "surrogates in the platform": value("submission_platform", "\ud800\ufffe\x1b[2J"),
    "surrogates in a description": system(system_name="\ud800\ufffe\x1b[2J"),
}
