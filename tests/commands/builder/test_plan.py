"""What becomes of runs and systems, and why a submission cannot be planned."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from mlperf_pkg.checks.descriptions import SystemFile, check_system
from mlperf_pkg.commands.builder.plan import BuildPlan, judge, make_plan, reasons, systems_of
from mlperf_pkg.commands.builder.prepare import Prepared
from mlperf_pkg.config import Config, Price, SystemConfig
from mlperf_pkg.infra.source import Source
from mlperf_pkg.results.scoring import select
from mlperf_pkg.rulebook.load import load_benchmark
from mlperf_pkg.run.model import LogFile, Run
from mlperf_pkg.run.reading import read_run
from tests.helpers.workspaces import (
    logs_of,
    prepared,
    resnet_workspace,
    run,
    system,
    with_failures,
    with_one_seed,
    workspace,
)

BOX = system("box")
BOX_OPEN = system("box-open", "open")
HERE = run("logs/box/a.log")
OPEN = run("logs/box-open/b.log", division="open")
CODE = Config(code={"resnet": {"": "code"}, "bert": {"": "code"}})


def planned(
    *runs: Run, systems: tuple[SystemFile, ...] = (BOX,), config: Config = CODE, **more: Any
) -> BuildPlan:
    return make_plan(workspace(runs, systems, config), **more)


def test_sets_and_targets_in_order_of_start() -> None:
    starts = {"x": 30.0, "y": 10.0, "c": None, "b": None}
    resnet = [run(f"logs/box/{name}.log", start) for name, start in starts.items()]
    bert = run("logs/box/w.log", 5.0, benchmark="bert")
    plan = planned(*resnet, bert, OPEN, systems=(BOX_OPEN, BOX, system("idle")))
    copied = {
        target: r.path
        for planned_set in plan.sets
        for target, r in zip(planned_set.targets, planned_set.runs, strict=True)
    }
    assert list(copied.items()) == [
        ("results/box/bert/result_0.txt", "logs/box/w.log"),
        ("results/box/resnet/result_0.txt", "logs/box/y.log"),
        ("results/box/resnet/result_1.txt", "logs/box/x.log"),
        ("results/box/resnet/result_2.txt", "logs/box/b.log"),
        ("results/box/resnet/result_3.txt", "logs/box/c.log"),
        ("results/box-open/resnet/result_0.txt", "logs/box-open/b.log"),
    ]
    assert [system_file.id for system_file in systems_of(plan.sets)] == ["box", "box-open"]
    assert (plan.submitter, plan.problems) == ("Graphcore", ())
    assert plan.notes == (
        "these system descriptions are not copied, as their systems have no results:"
        " systems/idle.json",
    )


@pytest.mark.parametrize(
    ("staying", "names"),
    [
        ([], ["box-open/resnet"]),
        (["results/box/resnet"], ["box/resnet", "box-open/resnet"]),
        (["results/box/bert", "results/gone/bert"], ["box-open/resnet"]),
    ],
)
def test_one_division_and_sets_that_stay(staying: list[str], names: list[str]) -> None:
    plan = planned(HERE, OPEN, systems=(BOX, BOX_OPEN), division="open", staying=staying)
    assert ([planned_set.name for planned_set in plan.sets], plan.problems) == (names, ())
    note = "these logs are left out, as they are of the closed division: 1 log (logs/box/a.log)"
    assert plan.notes == (() if "box/resnet" in names else (note,))


@pytest.mark.parametrize("staying", [[], ["results/box/resnet"]])
def test_no_runs_of_the_division(staying: list[str]) -> None:
    """Sets that stay are not of the division."""
    plan = planned(HERE, division="open", staying=staying)
    assert plan.problems == ("no runs of the open division are left",)


@pytest.mark.parametrize("origin", ["option", "configuration"])
def test_leave_out(origin: str) -> None:
    other = run("logs/box/b.log", benchmark="bert")
    names = ("box/resnet", "box/brt")
    config = Config(code=CODE.code, leave_out=names if origin == "configuration" else ())
    plan = planned(HERE, other, config=config, leave_out=names if origin == "option" else ())
    assert [planned_set.name for planned_set in plan.sets] == ["box/bert"]
    left = "box/resnet is left out as you asked (1 run)"
    unknown = (
        "box/brt was to be left out, but there is no result set of this name;"
        " did you mean box/bert?"
    )
    # The configuration may be about both divisions, a command line is about what it builds.
    expected = ((left,), (unknown,)) if origin == "option" else ((left, unknown), ())
    assert (plan.notes, plan.problems) == expected


def test_leave_out_of_the_other_division() -> None:
    plan = planned(HERE, division="open", leave_out=["box/resnet"])
    assert plan.problems == (
        "box/resnet was to be left out, but is of the closed division; only the open division is"
        " built",
    )


def test_notes_and_prices_of_unknown_names() -> None:
    price = Price(149000, "the vendor")
    notes = {"box/resnet": "fast", "box/resnt": "fast"}
    config = Config(code=CODE.code, notes=notes, prices={"box": price, "bxo": price})
    assert planned(HERE, config=config).notes == (
        "box/resnt has a note, but there is no result set of this name; did you mean box/resnet?",
        "bxo has a price, but there is no system description of this name; did you mean box?",
    )


@pytest.mark.parametrize(
    ("submitters", "org", "config", "expected"),
    [
        (["A", "A"], "Z", Config(), "A"),
        (["A", ""], "Z", Config(), "A"),
        (["", ""], "Z", Config(), "Z"),
        (["A", "B"], "Z", Config(submitter="C"), "C"),
    ],
)
def test_submitter(submitters: list[str], org: str, config: Config, expected: str) -> None:
    systems = tuple(system(f"s{n}", submitter=name) for n, name in enumerate(submitters))
    runs = [run(f"logs/{system_file.id}/a.log", org=org) for system_file in systems]
    plan = planned(*runs, systems=systems, config=config)
    problems = [text for text in plan.problems if "SET115" not in text]  # of another organisation
    assert (plan.submitter, problems) == (expected, [])


BROKEN = check_system("systems/broken.json", b"{\n,", "training", "2.0")


TWO_UNREAD = [HERE, run("logs/x.log", benchmark=None), run("logs/y.log", division="Closed")]


@pytest.mark.parametrize(
    ("runs", "systems", "config", "problem"),
    [
        ([], (BOX,), CODE, "no runs are left"),
        (
            TWO_UNREAD,
            (BOX,),
            CODE,
            (
                "2 logs (logs/x.log, logs/y.log): submission_benchmark is missing, or"
                " submission_division is not closed or open; complete the log, or take it out of"
                " ws"
            ),
        ),
        (
            [HERE],
            (BOX,),
            Config(systems={"bix": SystemConfig()}),
            (
                'mlperf-pkg.yaml: under "systems:", the key "bix" is not the name of a system'
                " description"
            ),
        ),
        ([HERE], (BOX, BROKEN), CODE, "systems/broken.json:2: found ','; expected a field name"),
        (
            [run(division="open", platform="box")],
            (BOX,),
            CODE,
            (
                "Graphcore/box/resnet/open: SET111: the division is open in the logs"
                " (submission_division), but closed in systems/box.json"
            ),
        ),
        (
            [run(division="open", platform="b")],
            (BOX,),
            CODE,
            "Graphcore/b/resnet/open: SET110: submission_division is open, which is not",
        ),
        (
            [HERE],
            (system("box", submitter="ACME Inc."),),
            CODE,
            (
                "the submitter 'ACME Inc.' cannot name a folder in git. Name the submitter in"
                " mlperf-pkg.yaml:\n  submitter: ACME-Inc"
            ),
        ),
        (
            [HERE, run("logs/other/a.log")],
            (BOX, system("other", submitter="ACME")),
            CODE,
            "the logs and system descriptions name several submitters: ACME, Graphcore. If these",
        ),
        (
            [run("logs/box/a.log", org="")],
            (system("box", submitter=""),),
            CODE,
            (
                "neither a system description nor a log names a submitter. Name the submitter"
                " in mlperf-pkg.yaml"
            ),
        ),
        (
            [run("logs/x\ny/a.log")],
            (system("x\ny"),),
            CODE,
            "systems/x\\ny.json: 'x\\ny' cannot name a folder in git; rename the file",
        ),
        (
            [run("logs/my box/a.log")],
            (system("my box"),),
            CODE,
            "systems/my box.json: 'my box' cannot name a folder in git; rename the file",
        ),
        (
            [run("logs/box/a.log", benchmark="../../../etc")],
            (BOX,),
            CODE,
            "1 log (logs/box/a.log): '../../../etc' is not a valid name of a benchmark",
        ),
    ],
)
def test_problems(
    runs: list[Run],
    systems: tuple[SystemFile] | tuple[SystemFile, SystemFile],
    config: Config,
    problem: str,
) -> None:
    (message,) = planned(*runs, systems=systems, config=config).problems
    assert message.startswith(problem)


def test_patterns_that_match_nothing_and_missing_code_are_noted() -> None:
    config = Config(systems={"box": SystemConfig(logs=("logs/box/*", "log/*"))})
    (pattern, code) = planned(HERE, config=config).notes
    assert pattern == "mlperf-pkg.yaml: the pattern 'log/*' for the logs of box matches no log"
    assert re.match(r"the code of resnet is missing .*\n  code:\n    resnet: <folder>$", code)


# ---- more runs than required ---------------------------------------------------------------

SEVEN = logs_of("bow-pod16", runs=7)


def chosen_from(root: Path, logs: tuple[bytes, ...], *, chosen: bool = True) -> Prepared:
    return prepared(resnet_workspace(root, logs), choose_runs=chosen)


def paths(made: Prepared) -> list[str]:
    return [run.path for planned in made.plan.sets for run in planned.runs]


def test_the_median_window_is_taken_of_more_than_are_required(tmp_path: Path) -> None:
    five = chosen_from(tmp_path, SEVEN[:5])
    assert (len(paths(five)), [note for note in five.notes if "median" in note]) == (5, [])
    every = chosen_from(tmp_path, SEVEN, chosen=False)
    assert len(paths(every)) == 7
    assert "SET101" in every.refusals[0]
    made = chosen_from(tmp_path, SEVEN)
    rules = load_benchmark("training", "2.0", "resnet")
    assert rules
    chosen = select(every.plan.sets[0].runs, rules.runs).chosen
    assert paths(made) == [run.path for run in chosen]
    assert (len(paths(made)), made.refusals) == (5, ())
    (note,) = [note for note in made.notes if "closest to the median" in note]
    assert all(path in note for path in set(paths(every)) - set(paths(made)))


def test_an_invalid_median_is_refused(tmp_path: Path) -> None:
    made = chosen_from(tmp_path, with_failures(SEVEN, 5))
    assert "bow-pod16/resnet: no runs can be chosen: the median is infinite" in made.refusals[0]


# ---- why planned result sets are not valid ------------------------------------------------

GOOD = logs_of("bow-pod16")


def reason_of(logs: Sequence[bytes], box: SystemFile) -> str:
    files = [LogFile(Source(f"logs/{n}.log", log), round="2.0") for n, log in enumerate(logs)]
    inputs = workspace(map(read_run, files), [box])
    (reason,) = reasons(judge(make_plan(inputs), inputs))
    return reason


def test_findings_of_a_kind_are_folded() -> None:
    reason = reason_of(with_one_seed(GOOD)[:4], system("box"))
    assert re.sub(r"seed \d+", "seed N", re.sub(r"log:\d+", "log:LINE", reason)).split("\n") == [
        "box/resnet is not valid:",
        "  results/box/resnet: SEED102: seed N is logged by the same source line in several runs;"
        " expected a different seed in each run (3 of 4 runs: logs/1.log:LINE, logs/2.log:LINE,"
        " logs/3.log:LINE) [official checker]",
        "    hint: --seed-checker-bypass builds the result set and asks reviewers to accept it",
        "  results/box/resnet: SET101: the number of runs (files result_*.txt) is 4; expected 5"
        " [rules and official checker]",
    ]


def test_systems_are_judged_too() -> None:
    reason = reason_of(GOOD, system("box", cooling=None, framework=7))
    assert reason.startswith("systems/box.json is not valid:\n  systems/box.json:")
    assert "SYS102" in reason
