"""A raw log is what one run wrote: files of several runs, several files of one, and no runs."""

import bz2
import gzip
import json
import lzma
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mlperf_pkg.checker.check import check
from mlperf_pkg.checker.values import Checked, Options
from mlperf_pkg.findings import Verdict
from tests.helpers.archives import tree_zip
from tests.helpers.logs import joined, moved, records
from tests.helpers.program import call
from tests.helpers.workspaces import POD16, RESNET, bytes_below, lay, logs_of, numbered

Files = dict[str, bytes]

SEPARATE = numbered(RESNET, "logs/{}.log")
ALL = b"".join(RESNET)
BERT = logs_of("bow-pod16", "bert")
LENGTHS = [log.count(b"\n") for log in RESNET]
BANNER = b"srun: job 4711 starts\n"


def lines_of(*logs: bytes) -> list[str]:
    """The words for the lines of logs that follow each other in one file."""
    first = 1
    words = []
    for log in logs:
        last = first + log.count(b"\n") - 1
        words.append(f", lines {first} to {last}")
        first = last + 1
    return words


def of_file(name: str, *logs: bytes) -> list[str]:
    return [f"{name}{words}" for words in lines_of(*logs)]


def prefixed(log: bytes, prefix: bytes = b"0: ") -> bytes:
    return b"".join(prefix + line for line in log.splitlines(keepends=True))


def head(log: bytes, key: str) -> bytes:
    """The records before the first of a key."""
    fields = records(log)
    return joined(fields[: next(i for i, record in enumerate(fields) if record["key"] == key)])


def half(log: bytes) -> bytes:
    """A run that was killed after some of its evaluations."""
    fields = records(log)
    return joined(fields[: len(fields) * 3 // 4])


def later(log: bytes, milliseconds: int) -> bytes:
    return joined([{**r, "time_ms": r["time_ms"] + milliseconds} for r in records(log)])


def nameless(log: bytes) -> bytes:
    """The log of a worker: without a header."""
    return joined([r for r in records(log) if not r["key"].startswith("submission_")])


def resumed(log: bytes) -> bytes:
    """A run that went on from a checkpoint: it initialises and starts again."""
    fields = records(log)
    middle = len(fields) // 2
    again = [r for r in fields if r["key"] in ("init_start", "init_stop", "run_start")]
    stamp = fields[middle]["time_ms"]
    return joined([*fields[:middle], *({**r, "time_ms": stamp} for r in again), *fields[middle:]])


def interleaved(log: bytes, processes: int) -> bytes:
    """A log into which several processes write every record."""
    lines = []
    for line in log.splitlines(keepends=True):
        lines += [f"{rank}: ".encode() + line for rank in range(processes)]
    return b"".join(lines)


def of_processes(change: Callable[[bytes], bytes]) -> Files:
    """The logs of two processes of each run, in a folder for each run."""
    first = numbered(RESNET, "logs/run{}/rank_0.log")
    return first | numbered(map(change, RESNET), "logs/run{}/rank_1.log")


EACH = [f"{number}.log" for number in range(5)]
FIRST_RANKS = [f"run{number}/rank_0.log" for number in range(5)]

SHAPES: dict[str, tuple[Files, list[str], list[str]]] = {
    # the files, the runs that count, and the codes of what is said of other logs
    "a file for each run": (SEPARATE, EACH, []),
    "all in one file": ({"logs/slurm.out": ALL}, of_file("slurm.out", *RESNET), []),
    "gzip": ({"logs/all.log.gz": gzip.compress(ALL)}, of_file("all.log.gz", *RESNET), []),
    "bzip2": ({"logs/all.log.bz2": bz2.compress(ALL)}, of_file("all.log.bz2", *RESNET), []),
    "xz": ({"logs/all.log.xz": lzma.compress(ALL)}, of_file("all.log.xz", *RESNET), []),
    "in an archive": (
        {"logs/all.zip": tree_zip({"all.log": ALL})},
        of_file("all.zip/all.log", *RESNET),
        [],
    ),
    "two files": (
        {"logs/a.log": b"".join(RESNET[:2]), "logs/b.log": b"".join(RESNET[2:])},
        [*of_file("a.log", *RESNET[:2]), *of_file("b.log", *RESNET[2:])],
        [],
    ),
    "with the name of a result": (
        {"logs/result_0.txt": ALL},
        of_file("result_0.txt", *RESNET),
        [],
    ),
    "text of the launcher between runs": (
        {"logs/slurm.out": BANNER.join([*RESNET, b""])},
        of_file("slurm.out", *(log + BANNER for log in RESNET)),
        [],
    ),
    "with a prefix": (
        {"logs/slurm.out": prefixed(ALL)},
        of_file("slurm.out", *RESNET),
        [],
    ),
    "an aborted run, then others": (
        {"logs/slurm.out": half(logs_of("bow-pod16", seed=99)[0]) + ALL},
        of_file("slurm.out", half(logs_of("bow-pod16", seed=99)[0]), *RESNET),
        [],
    ),
    "a crash before the start, then runs": (
        {"logs/slurm.out": head(later(RESNET[0], -3_600_000), "run_start") + ALL},
        of_file("slurm.out", head(RESNET[0], "run_start"), *RESNET)[1:],
        ["RAW101"],
    ),
    "a crash before the start, alone": (
        SEPARATE | {"logs/crash.log": head(RESNET[0], "init_stop")},
        EACH,
        ["RAW101"],
    ),
    "a worker that logs only seeds": (
        SEPARATE
        | {"logs/worker.log": joined([r for r in records(RESNET[0]) if r["key"] == "seed"])},
        EACH,
        ["RAW101"],
    ),
    "two benchmarks in one file": (
        {"logs/slurm.out": ALL + b"".join(BERT)},
        of_file("slurm.out", *RESNET, *BERT),
        [],
    ),
    "standard output beside the logs": (
        SEPARATE | numbered(map(prefixed, RESNET), "logs/{}.out"),
        EACH,
        ["RAW102"],
    ),
    "standard output of all beside the logs": (
        SEPARATE | {"logs/slurm.out": prefixed(ALL)},
        EACH,
        ["RAW102"],
    ),
    "standard output of two processes beside the logs": (
        SEPARATE | {"logs/slurm.out": interleaved(ALL, 2)},
        EACH,
        ["RAW102"],
    ),
    "a file for each process": (of_processes(lambda log: log), FIRST_RANKS, ["RAW102"]),
    "processes a moment later": (
        of_processes(lambda log: later(log, 7)),
        FIRST_RANKS,
        ["RAW102"],
    ),
    "processes without a header": (of_processes(nameless), FIRST_RANKS, ["RAW102"]),
    "processes that were cut off": (of_processes(half), FIRST_RANKS, ["RAW102"]),
    "a process that the official checker rejects": (
        SEPARATE | {"logs/0-first.log": moved(RESNET[0], "init_start", "run_start")},
        EACH,
        ["RAW102"],
    ),
    "processes one after another in one file": (
        {"logs/slurm.out": RESNET[0] * 2} | numbered(RESNET[1:], "logs/{}.log"),
        [*EACH[:4], *of_file("slurm.out", RESNET[0])],
        ["RAW102"],
    ),
    "processes that write into one file": (
        {"logs/slurm.out": interleaved(RESNET[0], 8)},
        ["slurm.out"],
        [],
    ),
    "a run that was resumed": ({"logs/slurm.out": resumed(RESNET[0])}, ["slurm.out"], []),
}


def checked_shape(root: Path, files: Files) -> Checked:
    return check([str(lay(root, POD16, files) / "logs")], Options(jobs=1, round="2.0"))


@pytest.mark.parametrize(("files", "runs", "codes"), SHAPES.values(), ids=list(SHAPES))
def test_shapes(tmp_path: Path, files: Files, runs: list[str], codes: list[str]) -> None:
    report = checked_shape(tmp_path, files).report
    assert [run.label for run in report.runs] == runs
    assert [f.code for f in report.findings if f.code.startswith("RAW")] == codes


GOOD = [
    name
    for name, (_, _, codes) in SHAPES.items()
    if name not in ("processes that write into one file", "a run that was resumed")
    and "aborted" not in name
    and "benchmarks" not in name
    and codes is not None
]


@pytest.mark.parametrize("name", GOOD)
def test_each_run_is_built_once_byte_for_byte(tmp_path: Path, name: str) -> None:
    """What is built is what each of the five runs wrote, perhaps with other text around it."""
    files, _, _ = SHAPES[name]
    lay(tmp_path, POD16, files)
    result = call("build", tmp_path, "--division", "closed", "--round", "2.0")
    assert result.exit_code == 0, result.output
    built = bytes_below(tmp_path / "submissions/Graphcore/results/bow-pod16/resnet")
    texts = [text.replace(b"0: ", b"").replace(BANNER, b"") for text in built.values()]
    assert sorted(texts) == sorted(RESNET)


def outcome(root: Path, *arguments: str) -> Any:
    return json.loads(call(*arguments, root, "--round", "2.0", "--format", "json").stdout)


def test_select_takes_each_run_once(tmp_path: Path) -> None:
    shape = SHAPES["standard output of all beside the logs"]
    content = outcome(lay(tmp_path, POD16, shape[0]), "select")
    (only,) = content["result_sets"]
    assert [run["path"] for run in only["runs"]] == [f"logs/{name}" for name in EACH]


def test_the_file_and_the_lines_of_a_run(tmp_path: Path) -> None:
    content = outcome(lay(tmp_path, POD16, SHAPES["all in one file"][0]), "check")
    assert {run["path"] for run in content["runs"]} == {"logs/slurm.out"}
    assert [run["lines"] for run in content["runs"]][1] == [LENGTHS[0] + 1, sum(LENGTHS[:2])]
    assert content["verdict"] == {"official": "pass", "rules": "pass"}


def test_findings_are_at_lines_of_the_file(tmp_path: Path) -> None:
    wrong = RESNET[1].replace(b'"key": "run_stop", "value": null', b'"key": "run_stop"')
    log = RESNET[0] + wrong
    report = checked_shape(tmp_path, {"logs/slurm.out": log}).report
    (finding,) = [finding for finding in report.findings if finding.code == "LOG102"]
    assert (finding.path, finding.line) == ("slurm.out", log.count(b"\n"))


def test_a_file_that_is_named_alone_is_one_log_officially(tmp_path: Path) -> None:
    lay(tmp_path, POD16, {"logs/slurm.out": ALL})
    report = check([str(tmp_path / "logs/slurm.out")], Options(jobs=1, round="2.0")).report
    assert (report.verdict.official, report.verdict.rules) == (Verdict.FAIL, Verdict.PASS)
    assert len(report.runs) == 5
    assert "LOG111" in {finding.code for finding in report.findings}


def test_a_file_that_is_named_alone_is_a_run_even_if_its_clock_never_started(
    tmp_path: Path,
) -> None:
    lay(tmp_path, {"crash.log": head(RESNET[0], "init_stop")})
    report = check([str(tmp_path / "crash.log")], Options(jobs=1, round="2.0")).report
    assert (len(report.runs), report.verdict.official) == (1, Verdict.FAIL)


def test_a_crash_does_not_choose_the_round(tmp_path: Path) -> None:
    crash = head(later(RESNET[0], 200_000_000_000), "init_stop")
    lay(tmp_path, POD16, SEPARATE, {"logs/crash.log": crash})
    assert check([str(tmp_path)], Options(jobs=1)).report.round == "2.0"


def test_a_tree_is_read_as_it_is(tmp_path: Path) -> None:
    folder = "ACME/results/bow-pod16/resnet"
    lay(tmp_path, {f"{folder}/result_0.txt": ALL, f"{folder}/result_1.txt": RESNET[0]})
    (tmp_path / "ACME/systems").mkdir()
    report = check([str(tmp_path / "ACME")], Options(jobs=1, round="2.0")).report
    assert [run.lines for run in report.runs] == [None, None]
