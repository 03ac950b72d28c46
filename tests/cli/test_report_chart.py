"""``mlperf-pkg report --draw``."""

from __future__ import annotations

import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from mlperf_pkg.commands import charts
from tests.helpers.charts import DEFECT, fail
from tests.helpers.logs import edited, without
from tests.helpers.program import call
from tests.helpers.trees import SYSTEM, simulated, write_set, write_submission, write_system


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_file_of_each_chart(tmp_path: Path) -> None:
    tree, out = write_submission(tmp_path / "training_results_v2.0" / "A&B"), tmp_path / "out"
    result = call("report", tree, "-o", out, "--draw", "all")
    assert (result.exit_code, result.stderr) == (0, "")
    assert names(out) == [
        "resnet.scoreboard.svg",
        "results-bow-pod16-resnet.curves.svg",
        "results-bow-pod16-resnet.rcp.svg",
        "results-bow-pod16-resnet.timeline.svg",
        "results-bow-pod16-resnet.times.svg",
    ]
    assert sorted(result.stdout.splitlines()) == [str(out / name) for name in names(out)]
    for file in out.iterdir():
        assert ElementTree.parse(file).getroot().tag.endswith("svg")


@pytest.mark.parametrize("part", ["", "results/my_system/resnet", "results/my_system", "results"])
def test_a_folder_inside_a_submission_has_the_system_names_of_its_tree(
    tmp_path: Path, part: str
) -> None:
    tree, out = write_submission(tmp_path / "v2.0" / "ACME"), tmp_path / "out"
    (tree / "results" / SYSTEM).rename(tree / "results" / "my_system")
    write_system(tree / "systems", "my_system")
    result = call("report", tree / part, "-o", out, "--draw", "times")
    assert (result.exit_code, names(out)) == (0, ["results-my_system-resnet.times.svg"])
    text = (out / names(out)[0]).read_text("utf-8")
    assert ">ACME, my_system, resnet (closed, round 2.0)<" in text


def test_parts_of_one_submission_are_drawn_once(tmp_path: Path) -> None:
    tree, out = write_submission(tmp_path / "v2.0" / "ACME"), tmp_path / "out"
    write_set(tree / "results" / SYSTEM / "bert", simulated("bert"))
    folders = [tree / "results" / SYSTEM / name for name in ("resnet", "bert", "bert")]
    assert call("report", *folders, "-o", out, "--draw", "times").exit_code == 0
    assert len(names(out)) == 2
    assert call("report", tree, *folders, "-o", out, "--draw", "times", "--force").exit_code == 0
    assert len({name.rpartition("results-")[2] for name in names(out)}) == 2


def test_one_chart_as_pixels(tmp_path: Path) -> None:
    logs, out = write_set(tmp_path / "logs", simulated()), tmp_path / "out"
    assert call("report", logs, "-o", out, "--draw", "times", "--format", "png").exit_code == 0
    (file,) = out.iterdir()
    assert file.name == "Graphcore-bow-pod16-resnet-closed.times.png"
    assert file.read_bytes().startswith(b"\x89PNG")


def test_the_former_name(tmp_path: Path) -> None:
    logs, out = write_set(tmp_path / "logs", simulated()), tmp_path / "out"
    assert call("plot", logs, "-o", out, "--draw", "times").exit_code == 0
    assert names(out) == ["Graphcore-bow-pod16-resnet-closed.times.svg"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--draw", "all", "--history"), "--draw and --history cannot be used together"),
        (("--format", "png"), "--format needs --draw"),
        (("--draw", "time"), "did you mean times?"),
    ],
)
def test_mistyped(options: tuple[str, ...], message: str) -> None:
    result = call("report", "logs", *options)
    assert (result.exit_code, message in result.stderr) == (2, True)


def test_the_same_input_is_the_same_picture(tmp_path: Path) -> None:
    logs = write_set(tmp_path / "logs", simulated())
    for name in ("one", "two"):
        assert call("report", logs, "-o", tmp_path / name, "--draw", "curves").exit_code == 0
    (one,), (two,) = (tmp_path / "one").iterdir(), (tmp_path / "two").iterdir()
    assert one.read_bytes() == two.read_bytes()


def test_names_of_files_are_plain_and_differ(tmp_path: Path) -> None:
    for number, name in enumerate(("a ß", "a é", "..")):
        of_system = (edited(log, "submission_platform", value=name) for log in simulated())
        write_set(tmp_path / "logs" / str(number), tuple(of_system))
    call("report", tmp_path / "logs", "-o", tmp_path / "out", "--draw", "times")
    assert names(tmp_path / "out") == [
        "Graphcore-..-resnet-closed.times.svg",
        "Graphcore-a-resnet-closed.times-2.svg",
        "Graphcore-a-resnet-closed.times.svg",
    ]


def test_nothing_is_overwritten_but_by_force(tmp_path: Path) -> None:
    logs, out = write_set(tmp_path / "logs", simulated()), tmp_path / "out"
    arguments = ("report", logs, "-o", out, "--draw", "times")
    assert [call(*arguments).exit_code, call(*arguments).exit_code] == [0, 2]
    assert call(*arguments, "--force").exit_code == 0


def test_a_chart_that_cannot_be_prepared_is_named_and_the_others_are_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(charts, "rcp", fail)
    logs, out = write_set(tmp_path / "logs", simulated()), tmp_path / "out"
    result = call("report", logs, "-o", out, "--draw", "all")
    name = "Graphcore-bow-pod16-resnet-closed"
    assert result.exit_code == 1
    assert result.stderr == f"mlperf-pkg: {name}.rcp: cannot be drawn: {DEFECT}\n"
    assert names(out) == [
        f"{name}.curves.svg",
        f"{name}.timeline.svg",
        f"{name}.times.svg",
        "resnet.scoreboard.svg",
    ]


def test_nothing_to_draw(tmp_path: Path) -> None:
    logs = write_set(tmp_path / "logs", (without(simulated()[0], "run_start"),))
    result = call("report", logs, "-o", tmp_path / "out", "--draw", "times")
    assert (result.exit_code, result.stderr) == (1, "mlperf-pkg: nothing to draw\n")
    assert not (tmp_path / "out").exists()


def test_charts_without_the_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    result = call(
        "report",
        write_set(tmp_path / "logs", simulated()),
        "-o",
        tmp_path / "out",
        "--draw",
        "all",
    )
    assert result.exit_code == 2
    assert "a chart needs the package vl_convert: pip install 'mlperf-pkg[report]'" in result.stderr
