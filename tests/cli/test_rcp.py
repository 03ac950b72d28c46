"""The output of ``mlperf-pkg rcp show``, ``check`` and ``diff``."""

import errno
import json
import os
import re
from collections.abc import Iterator
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from mlperf_logging.rcp_checker import rcp_checker as official

from mlperf_pkg.commands.charts import drawing
from mlperf_pkg.infra import files
from mlperf_pkg.infra.resources import official_folder
from tests.helpers import program
from tests.helpers.trees import SYSTEM, simulated, write_set, write_submission
from tests.helpers.upstream import RUNS, point
from tests.parity.incumbent import quickened

whole = partial(point, Hyperparams={})
BIG = {"hp": whole(RUNS), "b": whole(RUNS, BS=128)}


@pytest.fixture(autouse=True, scope="module")
def _quickened() -> Iterator[None]:
    with quickened():
        yield


def streams(*arguments: str | Path) -> tuple[int, str, str]:
    result = program.call("rcp", *arguments)
    return result.exit_code, result.stdout, result.stderr


def call(*arguments: str | Path) -> tuple[int, str]:
    status, text, errors = streams(*arguments)
    return status, text or errors


def shown(*arguments: str | Path) -> str:
    status, text = call(*arguments)
    assert status == 0, text
    return text


def data(*arguments: str | Path) -> Any:
    return json.loads(program.call("rcp", *arguments, "--format", "json").stdout)


def custom(folder: Path, points: Any = BIG) -> Path:
    path = folder / "points.json"
    path.write_text(points if isinstance(points, str) else json.dumps(points), "utf-8")
    return path


# ---- show ---------------------------------------------------------------------------------


def test_show_a_benchmark() -> None:
    _, _, text = shown("show", "gpt3", "--round", "v4.1").split("\n", 2)
    assert text.splitlines()[1:5] == [
        "Batch size  Runs           Mean      Deviation          Limit",
        "     1,536     6  1,195,376,640     45,174,037  1,076,517,411  pruned",
        "     2,048     7  1,177,760,563     24,907,706  1,119,593,070",
        "     3,072     7  1,218,025,882  4,400,200,850           none",
    ]
    assert re.findall(r"^(\w+): ", text, re.M) == ["limit", "pruned", "none"]


def test_show_batch_sizes() -> None:
    sizes = [option for size in (64, 500, 100_000) for option in ("--batch-size", f"{size}")]
    lines = shown("show", "bert", "--round", "5.0", *sizes).splitlines()
    assert lines[3:7] == [
        "Batch size  Runs       Mean  Deviation      Limit",
        "        64    23  2,414,421    197,392  2,274,732  below all",
        "       500        2,419,217    196,562  2,278,968  448 to 4,608",
        "   100,000                -          -          -  missing",
    ]
    assert lines[-2:] == [
        "missing: the batch size is larger than that of every point, so new reference",
        "runs are needed",
    ]


def test_show_all_benchmarks_of_a_round() -> None:
    lines = shown("show", "--round", "5.1").splitlines()
    assert lines[0] == "Reference convergence points of training 5.1"
    assert lines[3] == "  bert             samples  10      13     7  256 to 16,384"
    assert lines[-2:] == [
        "Round 5.1 does not have the benchmark bert, so the points of bert are not used.",
        "8 benchmarks; 'mlperf-pkg rcp show BENCHMARK' shows the points of a benchmark",
    ]


@pytest.mark.parametrize(
    ("options", "sizes"),
    [
        ([], [64, 128]),
        (["--merge"], [64, 128, 1536, 2048, 3072, 4096, 6144, 8192]),
    ],
)
def test_show_a_custom_file(options: list[str], sizes: list[int], tmp_path: Path) -> None:
    [reference] = data("show", "gpt3", "--custom", custom(tmp_path), *options)["references"]
    assert [point["batch_size"] for point in reference["points"]] == sizes


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("show brt", "there is no benchmark 'brt'; did you mean bert?"),
        ("show ../x", "there is no benchmark '../x'"),
        (
            "show bert --round 6.1",
            "no reference points of bert in training 6.1; rounds with points: 1.0",
        ),
        ("show --round 0.7", "has no reference points of training 0.7"),
        (
            "show --batch-size 5",
            "--batch-size, --interpolate, --chart and --custom need a BENCHMARK",
        ),
        ("show bert --merge", "--merge needs --custom FILE"),
        ("show bert -o a -o b", "this command writes one file: give -o once"),
    ],
)
def test_refusals(line: str, message: str) -> None:
    status, text = call(*line.split())
    assert (status, message in text) == (2, True), line


# ---- hostile files ------------------------------------------------------------------------

HOSTILE: dict[str, Any] = {
    "no reference point": {},
    "outside the range of 0 to 100": {"an endless search": whole([1e300, 2e300] * 5)},
    "expected less than 1,000": {"a huge batch size": whole(RUNS, BS=1e9)},
    'a has no "Hyperparams"': {"a": point(RUNS)},
    'a has no "Epochs to converge"': {
        "a": {"Benchmark": "gpt3", "BS": 1, "samples to converge": RUNS, "Hyperparams": {}}
    },
    "b and a both have batch size 64": {"a": whole(RUNS), "b": whole(RUNS)},
    "\\x1b[2J has 1 runs": {"\x1b[2J": whole([1.0])},
    "larger than 1 MiB": " " * (1 << 20) + "{}",
}


@pytest.mark.parametrize(("reason", "content"), list(HOSTILE.items()), ids=list(HOSTILE))
def test_a_hostile_file(reason: str, content: Any, tmp_path: Path) -> None:
    file = custom(tmp_path, content)
    status, text = call("show", "gpt3", "--custom", file)
    assert (status, text.startswith(f"mlperf-pkg: error: {file}: ")) == (2, True)
    assert reason in text
    assert text.rstrip("\n").isprintable()


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(pipe := tmp_path / "pipe")
    assert call("show", "bert", "--custom", pipe) == (2, f"mlperf-pkg: error: {pipe}: not a file\n")


# ---- chart --------------------------------------------------------------------------------


def test_chart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(drawing.PICTURES, "svg", lambda chart: b"<svg/>")  # which takes a second
    file = tmp_path / "bert.svg"
    assert shown("show", "bert", "--chart", file) == shown("show", "bert")
    assert file.read_bytes().startswith(b"<svg")
    shown("show", "bert", "--all", "--chart", page := tmp_path / "bert.html")
    assert "default-src 'none'; img-src data:" in page.read_text("utf-8")
    refusal = f"mlperf-pkg: error: {file} exists already; --force overwrites it\n"
    assert call("show", "bert", "--chart", file) == (2, refusal)


def test_a_chart_and_a_table_replace_others_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where one cannot be written, both files are as they were."""
    monkeypatch.setitem(drawing.PICTURES, "svg", lambda chart: b"<svg/>")
    chart = tmp_path / "bert.svg"
    table = tmp_path / "bert.json"
    arguments = ("show", "bert", "--chart", chart, "-o", table, "--force")
    for file in (chart, table):
        file.write_text("old")
    write = files._write

    def fail(path: Path, data: bytes) -> None:
        if path.name == table.name:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        write(path, data)

    with monkeypatch.context() as patch:
        patch.setattr(files, "_write", fail)
        message = f"mlperf-pkg: error: {table}: cannot be written: No space left on device\n"
        assert call(*arguments) == (2, message)
    assert (chart.read_text(), table.read_text()) == ("old", "old")
    assert call(*arguments) == (0, "")
    assert (chart.read_text(), table.read_text()[0]) == ("<svg/>", "{")
    status, message = call("show", "bert", "--chart", chart, "-o", chart, "--force")
    assert (status, "is named for two outputs" in message) == (2, True)


# ---- diff ---------------------------------------------------------------------------------


def test_diff() -> None:
    text = shown("diff", "5.0", "5.1")
    assert (
        "dlrm_dcnv2, epochs to converge; 4 points unchanged\n  ~ 135,168: the runs are the same,"
        " but the point is no longer used by the RCP\n      test\n"
        "  + 160,000: 20 runs, mean 0.9583, limit 0.9319\n"
    ) in text
    assert "  ~ 1,152: runs 6, mean 322,560 -> 313,344, limit 322,560 -> 285,344\n" in text
    assert "  - 9,216: 6 runs, mean 691,200, limit 592,206\n" in text
    assert "\nbert (removed), samples to converge\n  - 256: " in text
    assert text.endswith("\nUnchanged: llama2_70b_lora, retinanet, rgat\n")


def test_diff_as_data() -> None:
    [item] = data("diff", "4.0", "4.1", "gpt3")["benchmarks"]
    kinds = {point["batch_size"]: point["kind"] for point in item["points"]}
    assert kinds == {2048: "changed", 3072: "changed", 6144: "added"}
    assert item["points"][1]["new"]["minimum"] is None
    rows = shown("diff", "4.0", "4.1", "gpt3", "--format", "csv").splitlines()
    assert len(rows) == 4


FILE = official_folder() / "rcp_checker/training_2.0.0/rcps_resnet.json"


def theirs(logs: Path, points: Path | None, ruleset: str = "2.0.0") -> tuple[bool, str, float]:
    """The outcome of the official checker with --custom_rcps."""
    with points.open(encoding="utf-8") if points else nullcontext() as stream:
        passed, message, factor = official.check_directory(
            str(logs), "training", ruleset, False, False, rcp_file=stream, rcp_pass="pruned_rcps"
        )
    return bool(passed), message, float(factor)


def as_theirs(row: dict[str, Any]) -> tuple[bool, str, float]:
    test = row["rcp"]
    return test["official_pass"], test["message"], test["normalization"]


# ---- check --------------------------------------------------------------------------------


SIZE = 3264  # of the simulated logs


def points_at(size: int, first: int) -> dict[str, Any]:
    """A point whose ten runs converge after this number of epochs and more."""
    runs = [first + number for number in range(10)]
    return {f"new_{size}": whole(runs, Benchmark="resnet", BS=size)}


POINTS = {
    "slower": points_at(SIZE, 90),
    "larger only": points_at(SIZE * 2, 30),
    "both sides": {**points_at(SIZE // 2, 30), **points_at(SIZE * 2, 40)},
}


@pytest.mark.parametrize("merge", [False, True])
@pytest.mark.parametrize("name", POINTS)
def test_custom_points_as_the_official_checker(name: str, merge: bool, tmp_path: Path) -> None:
    logs, points = write_set(tmp_path / "logs", simulated()), POINTS[name]
    sizes = {point["BS"] for point in points.values()}
    package = json.loads(FILE.read_text("utf-8"))
    kept = {key: point for key, point in package.items() if point["BS"] not in sizes}
    merging = ["--merge"] if merge else []
    [row] = data("check", logs, "--custom", custom(tmp_path, points), *merging)["result_sets"]
    assert as_theirs(row) == theirs(logs, custom(tmp_path, {**kept, **points} if merge else points))
    assert row["custom"] is True
    assert row["before"]["official_pass"] is theirs(logs, None)[0]


def test_check_of_a_folder_without_logs(tmp_path: Path) -> None:
    root = write_submission(tmp_path / "ACME")
    (root / "results" / SYSTEM / "bert").mkdir()
    _, text, _ = streams("check", root)
    assert ": the set has no log" in text
    assert "could not be read" not in text


@pytest.mark.parametrize(
    ("benchmark", "runs", "points", "status", "words"),
    [
        ("resnet", 5, None, 0, "1 result set: 1 pass"),
        ("resnet", 4, None, 0, "has 4 of the 5 required runs"),
        (
            "minigo",
            None,
            None,
            2,
            "the official checker crashes, as it has no reference points for minigo",
        ),
        ("resnet", 5, "slower", 1, "1 result set: 1 FAIL"),
        ("resnet", 5, "slower", 1, "with the points of mlperf-logging: pass (RCP"),
    ],
)
def test_check(
    benchmark: str, runs: int | None, points: str | None, status: int, words: str, tmp_path: Path
) -> None:
    folder = write_set(tmp_path / "logs", simulated(benchmark, runs=runs))
    options: list[str | Path] = ["--custom", custom(tmp_path, POINTS[points])] if points else []
    actual, text, errors = streams("check", folder, *options)
    assert (actual, errors, words in " ".join(text.split())) == (status, "", True)
    assert max(map(len, text.splitlines()[1:])) <= 80
