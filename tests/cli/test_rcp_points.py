"""The output of ``mlperf-pkg rcp show``, ``diff`` and ``lint``."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from mlperf_pkg.infra.resources import official_folder
from tests.helpers import program
from tests.helpers.reference_points import RUNS, point

GPT3 = "rcp_checker/training_4.1.0/rcps_gpt3.json"
BIG = {"hp": point(RUNS, Hyperparams={}), "b": point(RUNS, BS=128, Hyperparams={})}


def call(*arguments: str | Path) -> tuple[int, str]:
    result = program.call("rcp", *arguments)
    return result.exit_code, result.stdout or result.stderr


def shown(*arguments: str | Path) -> str:
    status, text = call(*arguments)
    assert status == 0, text
    return text


def custom(folder: Path, points: Any = BIG) -> Path:
    path = folder / "points.json"
    path.write_text(points if isinstance(points, str) else json.dumps(points), "utf-8")
    return path


# ---- show ---------------------------------------------------------------------------------


def test_show_a_benchmark() -> None:
    assert shown("show", "gpt3", "--round", "v4.1").split("\n", 2)[2] == (
        "\n"
        "Batch size  Runs           Mean      Deviation          Limit\n"
        "      1536     6  1,195,376,640     45,174,037  1,076,517,411  pruned\n"
        "      2048     7  1,177,760,563     24,907,706  1,119,593,070\n"
        "      3072     7  1,218,025,882  4,400,200,850           none\n"
        "      4096     6  1,258,291,200     18,757,498  1,208,937,592\n"
        "      6144     6  1,409,286,144              0  1,409,286,144\n"
        "      8192     6  1,623,195,648     23,726,566  1,560,767,723\n"
        "\n"
        "limit: the smallest acceptable mean of 3 runs without the fastest and the\n"
        "slowest (t-test, p = 0.05)\n"
        "pruned: not used by the test, as neighbouring points converge as fast\n"
        "none: no lower limit, as the reference runs differ too much\n"
    )


def test_show_batch_sizes() -> None:
    sizes = [option for size in (64, 500, 100_000) for option in ("--batch-size", f"{size}")]
    lines = shown("show", "bert", "--round", "5.0", *sizes).splitlines()
    assert lines[3:7] == [
        "Batch size  Runs       Mean  Deviation      Limit",
        "        64    23  2,414,421    197,392  2,274,732  below all",
        "       500        2,419,217    196,562  2,278,968  448 to 4608",
        "    100000                -          -          -  missing",
    ]
    assert lines[-1] == "missing: larger than all points; new reference runs are required"


def test_show_every_batch_size() -> None:
    text = shown("show", "llama31_8b", "--round", "5.1", "--interpolate", "--format", "csv")
    assert [line.split(",")[3] for line in text.splitlines()[1:]] == list(map(str, range(16, 129)))


def test_show_chooses_the_newest_round_that_has_the_benchmark() -> None:
    assert shown("show", "BERT").startswith("bert, training 5.0: samples to converge\n")
    assert shown("show", "openfold").startswith("openfold, hpc 3.0: samples to converge\n")


def test_show_all_benchmarks_of_a_round() -> None:
    lines = shown("show", "--round", "5.1").splitlines()
    assert lines[0] == "Reference convergence points of training 5.1"
    assert lines[3] == "  bert             samples  10      13     7  256 to 16384"
    assert lines[-2:] == [
        "Round 5.1 does not have bert: its points are not used.",
        "8 benchmarks; 'mlperf-pkg rcp show BENCHMARK' shows the points of one",
    ]


def test_show_all_numbers_of_a_round_as_csv_and_json() -> None:
    rows = shown("show", "--round", "5.1", "--format", "csv").splitlines()
    references = json.loads(shown("show", "--round", "5.1", "--format", "json"))["references"]
    points = [item for part in references for item in part["points"]]
    assert len(rows) - 1 == len(points) == 49
    assert {item["state"] for item in points} == {"used", "pruned"}


def test_show_the_reference_runs() -> None:
    assert "gpt3_ref_6144 (6144): 1409286144 1409286144 " in shown("show", "gpt3", "-v")


@pytest.mark.parametrize(
    ("options", "sizes"),
    [
        ((), ["64", "128"]),
        (("--merge",), ["64", "128", "1536", "2048", "3072", "4096", "6144", "8192"]),
    ],
)
def test_show_a_custom_file(options: tuple[str, ...], sizes: list[str], tmp_path: Path) -> None:
    file = custom(tmp_path)
    text = shown("show", "gpt3", "--custom", file, *options, "--format", "csv")
    assert [line.split(",")[3].removesuffix(".0") for line in text.splitlines()[1:]] == sizes


def test_a_custom_point_replaces_that_of_its_batch_size(tmp_path: Path) -> None:
    file = custom(tmp_path, {"x": point(RUNS, BS=2048, Hyperparams={})})
    options = ("--custom", file, "--merge", "--format", "json")
    [reference] = json.loads(shown("show", "gpt3", *options))["references"]
    names = {p["batch_size"]: p["points"] for p in reference["points"]}
    assert (len(names), names[2048]) == (6, ["x"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("brt",), "there is no benchmark 'brt'; did you mean bert?"),
        (("../x",), "there is no benchmark '../x'"),
        (
            ("bert", "--round", "6.1"),
            "no reference points of bert in training 6.1; rounds with points: 1.0",
        ),
        (("--round", "9.9"), "the rulebook has no round '9.9'"),
        (("--round", "0.7"), "has no reference points of training 0.7"),
        (("bert", "--usage", "hpc"), "the rulebook has no benchmark 'bert' of hpc"),
        (
            ("--batch-size", "5"),
            "--batch-size, --interpolate, --chart and --custom need a BENCHMARK",
        ),
        (("bert", "--batch-size", "0"), "not in the range"),
        (("bert", "--batch-size", "nan"), "not a valid integer"),
        (("bert", "--merge"), "--merge needs --custom FILE"),
        (("bert", "--custom", "nowhere.json"), "does not exist"),
    ],
)
def test_show_refuses(arguments: tuple[str, ...], message: str) -> None:
    status, text = call("show", *arguments)
    assert status == 2
    assert message in text


# ---- hostile files ------------------------------------------------------------------------

HOSTILE: dict[str, tuple[Any, str]] = {
    "empty": ("", "Expecting value"),
    "a list": ([], "Expected `object`"),
    "no point": ({}, "no reference point"),
    "lists in a list": ("[" * 100_000, "nested too deeply"),
    "a nested run": ({"a": point([[1]])}, "got `array`"),
    "NaN": ({"a": point([float("nan")] * 9)}, "NaN is not a number of JSON"),
    "infinite": ('{"a": {"Benchmark": "gpt3", "BS": 1, "Epochs to converge": [1e999]}}', "finite"),
    "larger than a double": ({"a": point([10**400])}, "out of range"),
    "an endless search": ({"a": point([1e300, 2e300] * 5, Hyperparams={})}, "outside of 0 to 100"),
    "a negative run": ({"a": point([-1.0] * 9, Hyperparams={})}, "outside of 0 to 100"),
    "a huge batch size": ({"a": point(RUNS, BS=1e9, Hyperparams={})}, "expected less than 1,000"),
    "no hyperparameters": ({"a": point(RUNS)}, 'a has no "Hyperparams"'),
    "another unit": (
        {"a": {"Benchmark": "gpt3", "BS": 1, "samples to converge": RUNS, "Hyperparams": {}}},
        'a has no "Epochs to converge"',
    ),
    "too few runs": ({"a": point([1.0, 2.0], Hyperparams={})}, "a has 2 runs, of which 2 are"),
    "a batch size twice": (
        {"a": point(RUNS, Hyperparams={}), "b": point(RUNS, Hyperparams={})},
        "b and a both have batch size 64",
    ),
    "escapes": ({"\x1b[2J": point([1.0], Hyperparams={})}, "\\x1b[2J has 1 runs"),
    "too large": (" " * (1 << 20) + "{}", "larger than 1 MiB"),
}


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("command", ["show", "lint"])
def test_a_hostile_file(name: str, command: str, tmp_path: Path) -> None:
    content, reason = HOSTILE[name]
    file = custom(tmp_path, content)
    options = ("gpt3", "--custom", file) if command == "show" else (file, "--benchmark", "gpt3")
    status, text = call(command, *options)
    assert status == 2
    assert text.startswith(f"mlperf-pkg: error: {file}: ")
    assert reason in text
    assert text.rstrip("\n").isprintable()


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for arguments in (("show", "bert", "--custom", pipe), ("lint", pipe)):
        status, text = call(*arguments)
        assert (status, text) == (2, f"mlperf-pkg: error: {pipe}: not a file\n")


# ---- chart --------------------------------------------------------------------------------


@pytest.mark.parametrize(("ending", "start"), [("svg", b"<svg"), ("png", b"\x89PNG")])
def test_chart(ending: str, start: bytes, tmp_path: Path) -> None:
    file = tmp_path / f"bert.{ending}"
    assert shown("show", "bert", "--chart", file) == shown("show", "bert")
    assert file.read_bytes().startswith(start)
    status, text = call("show", "bert", "--chart", file)
    assert (status, text) == (
        2,
        f"mlperf-pkg: error: {file}: exists already; --force overwrites it\n",
    )


def test_chart_of_a_hostile_file_in_a_page(tmp_path: Path) -> None:
    points = {"<script>": point(RUNS, Hyperparams={}), "\x00": point(RUNS, BS=8, Hyperparams={})}
    page = tmp_path / "page.html"
    shown("show", "gpt3", "--custom", custom(tmp_path, points), "--chart", page)
    text = page.read_text("utf-8")
    assert "<script" not in text
    assert "default-src 'none'; img-src data:" in text


def test_chart_refuses_another_format(tmp_path: Path) -> None:
    status, text = call("show", "bert", "--chart", tmp_path / "x.pdf")
    assert (status, "expected .svg, .png or .html" in text) == (2, True)


# ---- diff ---------------------------------------------------------------------------------


def test_diff() -> None:
    text = shown("diff", "5.0", "5.1")
    assert (
        "dlrm_dcnv2, epochs to converge; 4 points unchanged\n"
        "  ~ 135168: the same runs, now pruned\n"
        "  + 160000: 20 runs, mean 0.9583, limit 0.9319\n"
    ) in text
    assert "  ~ 1152: runs 6, mean 322,560 -> 313,344, limit 322,560 -> 285,344\n" in text
    assert "  - 9216: 6 runs, mean 691,200, limit 592,206\n" in text
    assert "\nbert (removed), samples to converge\n  - 256: " in text
    assert text.endswith("\nUnchanged: llama2_70b_lora, retinanet, rgat\n")


def test_diff_as_data() -> None:
    [item] = json.loads(shown("diff", "4.0", "4.1", "gpt3", "--format", "json"))["benchmarks"]
    kinds = {point["batch_size"]: point["kind"] for point in item["points"]}
    assert kinds == {2048: "changed", 3072: "changed", 6144: "added"}
    assert item["points"][1]["new"]["minimum"] is None
    rows = shown("diff", "4.0", "4.1", "gpt3", "--format", "csv").splitlines()
    assert len(rows) == 4


def test_diff_of_a_new_name_and_of_no_change() -> None:
    text = shown("diff", "4.1", "5.0")
    assert "Unchanged: bert, dlrm_dcnv2, llama2_70b_lora, retinanet, rgat" in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("0.7", "1.0"), "has no reference points of training 0.7"),
        (("5.0", "9"), "the rulebook has no round '9'"),
        (("5.0", "5.1", "xx"), "neither round 5.0 nor 5.1 has a benchmark 'xx'"),
    ],
)
def test_diff_refuses(arguments: tuple[str, ...], message: str) -> None:
    status, text = call("diff", *arguments)
    assert (status, message in text) == (2, True)


# ---- lint ---------------------------------------------------------------------------------


def test_lint_of_the_package() -> None:
    text = shown("lint")
    for heading in (
        "outlier: 1 point; ",
        "few_runs: 13 points; ",
        "equal_runs: 53 points; ",
        "misnamed: 3 points; ",
        "unused: 13 points; ",
    ):
        assert f"\n{heading}" in text
    assert text.endswith("\n83 mistakes, all known and accepted; --verbose shows each point\n")
    assert max(map(len, text.splitlines())) <= 80


def test_lint_of_a_round_and_benchmark() -> None:
    rows = json.loads(shown("lint", "--round", "4.1", "--format", "json"))["mistakes"]
    assert len(rows) == 10
    assert all(row["known_because"] for row in rows)
    text = shown("lint", "--benchmark", "gpt3", "-v")
    assert "  gpt3_ref_3072 (training 4.1, 3072): 13,790,871,552, 11.4 times the median" in text


def test_lint_of_a_file() -> None:
    status, text = call("lint", official_folder() / GPT3, "--round", "4.1")
    assert (status, text.splitlines()[-1]) == (1, "2 mistakes")


def test_lint_of_a_file_without_mistakes(tmp_path: Path) -> None:
    assert shown("lint", custom(tmp_path)).splitlines()[-1] == "The points have no mistakes."


def test_lint_of_points_of_several_benchmarks(tmp_path: Path) -> None:
    points = {"a": point(RUNS), "b": point(RUNS, Benchmark="x", BS=1)}
    status, text = call("lint", custom(tmp_path, points))
    assert (status, "points of gpt3, x; expected points of one benchmark" in text) == (2, True)
