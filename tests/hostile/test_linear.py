"""Every pass over a log is linear in its bytes, and over a tree in its entries."""

import re
import time
from collections.abc import Callable
from cProfile import Profile
from pathlib import Path
from typing import Any

import pytest

from mlperf_pkg.checker.check import check
from mlperf_pkg.checker.values import Options
from mlperf_pkg.infra.resources import data_folder
from mlperf_pkg.infra.source import Source
from mlperf_pkg.log import reader
from mlperf_pkg.log.block import HAS_SCAN
from mlperf_pkg.render import View
from mlperf_pkg.render.text import text
from mlperf_pkg.run.model import LogFile
from mlperf_pkg.run.reading import read_run
from tests.helpers.program import call
from tests.helpers.trees import SYSTEM, simulated, write_submission
from tests.helpers.workspaces import lay
from tests.hostile.cases import many

SMALL, LARGE = 30_000, 240_000  # bytes; a line of either is read
FACTOR = LARGE // SMALL
COUNTED = 16  # counting calls is exact but slow, so fewer bytes are used
HEAD = (
    b':::MLLOG {"key": "submission_benchmark", "value": "resnet", "time_ms": 1, "metadata": {}}\n'
)
LOSS = re.compile(rb'(?<="eval_accuracy", "value": )[0-9.]+')
RECORD = b':::MLLOG {"key": "%s", "value": %s, "time_ms": 1, "metadata": {}}'


def repeated(unit: bytes, before: bytes = b"", after: bytes = b"") -> Callable[[int], bytes]:
    return lambda size: before + unit * (size // len(unit)) + after


def valued(unit: bytes, before: bytes, after: bytes, key: bytes = b"opt_name") -> Any:
    """A record whose value repeats a unit."""
    start, end = (RECORD % (key, b"@")).split(b"@")
    return repeated(unit, start + before, after + end)


SHAPES: dict[str, Callable[[int], bytes]] = {
    "lookalikes on a line": repeated(b":::MLLx"),
    "long lookalike": repeated(b"x", b":::MLL"),
    "lookalikes on lines": repeated(b":::MLLx\n"),
    "tokens on a line": repeated(b":::MLLOG "),
    "tokens on lines": repeated(b":::MLLOG \n"),
    "records on a line": repeated(RECORD % (b"opt_name", b"1")),
    "broken records": repeated(b':::MLLOG {"key": \n'),
    "text after records": repeated(RECORD % (b"opt_name", b"1") + b" x\n"),
    "lists": valued(b"[", b"", b""),
    "closed lists": lambda size: valued(b"[", b"", b"]" * size)(size),
    "long list": valued(b"1,", b"[", b"1]"),
    "long object": valued(b'"a":1,', b"{", b'"a":1}'),
    "long text": valued(b"x", b'"', b'"'),
    "escapes": valued(b"\\u0041", b'"', b'"'),
    "backslashes": valued(b"\\\\", b'"', b'"'),
    "quotes": valued(b'\\"', b'"', b'"'),
    "digits": valued(b"9", b"", b""),
    "long numbers": valued(b"9" * 4000 + b",", b"[", b"1]"),
    "NaN": valued(b"NaN,", b"[", b"NaN]"),
    "words": valued(b"eval_accuracy ", b'"', b'"'),
    "line feeds": repeated(b"\n"),
    "carriage returns": repeated(b"\r"),
    "high bytes": repeated(b"\xff"),
    "seeds": valued(b"1,", b"[", b"1]", b"seed"),
    "wrong values": repeated(RECORD % (b"opt_name", b'"x"') + b"\n"),
}


def calls_of(action: Callable[[], object]) -> int:
    """Return the number of function calls of an action."""
    with Profile() as profile:
        action()
    return sum(entry.callcount for entry in profile.getstats())


def seconds_of(action: Callable[[], object]) -> float:
    begun = time.process_time()
    action()
    return time.process_time() - begun


def reading(log: bytes) -> Callable[[], object]:
    """A check of a log."""
    file = LogFile(Source("x.txt", HEAD + log), "training", "2.0")
    return lambda: read_run(file)


@pytest.mark.parametrize("careful", [False, True], ids=["scanner", "careful"])
@pytest.mark.parametrize("shape", SHAPES)
def test_costs_grow_with_the_size(
    shape: str, careful: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reader, "HAS_SCAN", HAS_SCAN and not careful)
    reading(b"")()  # the rules are loaded once
    few, many = (calls_of(reading(SHAPES[shape](n // COUNTED))) for n in (SMALL, LARGE))
    short, long = (seconds_of(reading(SHAPES[shape](n))) for n in (SMALL, LARGE))
    assert many < few * FACTOR * 1.5
    assert long < max(short, 0.02) * FACTOR * 4


TREES = {
    "benchmarks": "results/x/b{}",
    "systems": "results/x{}/resnet",
    "logs": "results/x/resnet/result_{}.txt",
    "other files": "results/x/resnet/{}.md",
    "descriptions": "systems/x{}.json",
    "power logs": "results/x/resnet/power/result_0/node_{}.txt",
}


@pytest.mark.parametrize("kind", TREES)
def test_costs_grow_with_the_number_of_entries(kind: str, tmp_path: Path) -> None:
    def cost(number: int) -> int:
        top = write_submission(tmp_path / str(number))
        many(number, TREES[kind])(top)
        options = Options(jobs=1)
        return calls_of(lambda: text(check([str(top)], options).report, View(80, verbose=True)))

    cost(1)  # the rules are loaded once
    least, few, more = cost(2), cost(26), cost(98)
    assert more - least < (few - least) * 4 * 1.5


# ---- sets that are left out -----------------------------------------------------------------


def workspace(folder: Path, number: int) -> Path:
    """A workspace with one valid result set, and a number of others that lack runs."""
    description = (data_folder("systems") / f"{SYSTEM}.json").read_bytes()
    files = {}
    for index in range(number + 1):
        files[f"systems/s{index}.json"] = description
        for run, log in enumerate(simulated()[: 1 if index else 5]):
            own = LOSS.sub(rb"\g<0>%d" % (1000 + index), log)
            files[f"logs/s{index}/run_{run}.log"] = own
    return lay(folder, files)


def packed(folder: Path, number: int) -> Path:
    """A submission with folders of sets without logs."""
    top = write_submission(folder / "ACME")
    for index in range(number):
        (top / "results" / SYSTEM / f"b{index}").mkdir()
    return top


@pytest.mark.parametrize(
    ("command", "tree"),
    [("build --round 2.0 -o {out}", workspace), ("pack -o {out}.tar.gz", packed)],
    ids=["build", "pack"],
)
def test_costs_grow_with_the_number_of_sets_that_are_left_out(
    command: str, tree: Callable[[Path, int], Path], tmp_path: Path
) -> None:
    def cost(number: int) -> int:
        name, *options = command.format(out=tmp_path / f"{number}-out").split()
        top = tree(tmp_path / str(number), number)
        results = []
        calls = calls_of(
            lambda: results.append(call(name, top, *options, "--invalid", "drop", "-j", "1"))
        )
        assert results[0].stderr.count("a result set is left out, because ") == number, results[
            0
        ].output
        return calls

    cost(1)  # the rules are loaded once
    least = cost(2)
    few = cost(5)
    more = cost(14)
    assert more - least < (few - least) * 4 * 1.5
