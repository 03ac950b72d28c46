"""What the official checkers pass though it is wrong, and the errors that they invent.

Each row breaks a good submission in one way. Both official checkers judge a copy of it, live: their
verdict is our official one, and our findings are all that the row names.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from mlperf_logging import compliance_checker
from mlperf_logging.result_summarizer import result_summarizer

from mlperf_pkg.checker import Options, check
from mlperf_pkg.report import Report
from tests.checks.packages import official_verdict
from tests.checks.test_power import node
from tests.logs import edited, good_log, joined, line_of, records, without
from tests.parity.incumbent import rules_parsed_once
from tests.trees import SYSTEM, remove, simulated, write_set, write_system

SET = f"results/{SYSTEM}/resnet"
FILE = f"systems/{SYSTEM}.json"
Deed = Callable[[Path], object]
Finding = tuple[str, str, str, str]
"""Code, severity, basis, and where: a path below the submission, ``@key`` for the line of a key."""


@dataclass(frozen=True)
class Trap:
    """One way to break a submission of ``benchmarks``, each with its code, and what follows."""

    name: str
    deed: Deed
    official: str
    rules: str
    findings: tuple[Finding, ...] = ()
    said: str = ""
    round: str = "2.0"
    division: str = "closed"
    benchmark: str = "resnet"


@pytest.fixture(autouse=True)
def parsed_once() -> Iterator[None]:
    with rules_parsed_once():
        yield


def submission(root: Path, trap: Trap) -> Path:
    """A submission without any finding."""
    write_system(root / "systems", division=trap.division)
    logs = simulated(trap.benchmark, trap.division, trap.round)
    write_set(root / "results" / SYSTEM / trap.benchmark, logs)
    code(root, trap.benchmark)
    return root


def code(root: Path, benchmark: str) -> None:
    """Code for a benchmark, with the file that its logs name."""
    folder = root / "benchmarks" / benchmark
    folder.mkdir(parents=True)
    (folder / "run.sh").touch()


def log(root: Path, index: int) -> Path:
    return root / SET / f"result_{index}.txt"


def rewrite(root: Path, change: Callable[[bytes], bytes], *indexes: int) -> None:
    """Put changed logs in place of some, or of all."""
    for index in indexes or range(5):
        log(root, index).write_bytes(change(log(root, index).read_bytes()))


def field(key: str, value: Any, *indexes: int) -> Deed:
    """Another value in all records of a key."""
    return lambda root: rewrite(root, lambda text: edited(text, key, value=value), *indexes)


def status(said: str, *indexes: int) -> Deed:
    """Another ending of runs."""
    changed = {"status": said}
    return lambda root: rewrite(root, lambda text: edited(text, "run_stop", metadata=changed), *indexes)  # fmt: skip


def system(**changes: Any) -> Deed:
    return lambda root: write_system(root / "systems", **changes)


def rename(old: str, new: str) -> Deed:
    return lambda root: (root / old).rename(root / new)


# ---- the clock ----------------------------------------------------------------------------


def second_start(text: bytes) -> bytes:
    """Another ``run_start``, a second before ``run_stop``."""
    fields = records(text)
    (stop,) = (i for i, each in enumerate(fields) if each["key"] == "run_stop")
    (start,) = (each for each in fields if each["key"] == "run_start")
    late = {**start, "time_ms": fields[stop]["time_ms"] - 1000}
    return joined([*fields[:stop], late, *fields[stop:]])


def stop_first(text: bytes) -> bytes:
    """A ``run_stop`` a minute before ``run_start``."""
    (start,) = (each for each in records(text) if each["key"] == "run_start")
    return edited(text, "run_stop", time_ms=start["time_ms"] - 60_000)


# ---- identity -----------------------------------------------------------------------------


def shifted(text: bytes, by_ms: int) -> bytes:
    return joined([{**each, "time_ms": each["time_ms"] + by_ms} for each in records(text)])


def copied(seed: int, by_ms: int) -> Deed:
    """Run 3 becomes run 0, with another seed or at another time."""
    return lambda root: log(root, 3).write_bytes(
        shifted(edited(log(root, 0).read_bytes(), "seed", value=seed), by_ms)
    )


def at_once(root: Path) -> None:
    """Run 1 starts when run 0 does."""
    first, second = (records(log(root, index).read_bytes())[0]["time_ms"] for index in (0, 1))
    rewrite(root, lambda text: shifted(text, first - second), 1)


def other_line(root: Path) -> None:
    for index in (0, 1):
        place = {"file": "a.py", "lineno": index}
        rewrite(root, lambda text, p=place: edited(text, "seed", value=5, metadata=p), index)  # type: ignore[misc]


def word(text: bytes) -> bytes:
    """A last record whose key only holds the word that the RCP checker looks for."""
    fields = records(text)
    extra = {**fields[-1], "key": "eval_global_batch_size", "value": 128}
    return joined([*fields, extra])


# ---- the tree -----------------------------------------------------------------------------


def emptied(root: Path) -> None:
    remove(root / "results" / SYSTEM)


def of_bert(root: Path) -> None:
    for index, text in enumerate(simulated("bert", runs=5)):
        log(root, index).write_bytes(text)


def bracketed(name: str) -> Deed:
    """The only system has another name."""

    def deed(root: Path) -> None:
        (root / "results" / SYSTEM).rename(root / "results" / name)
        (root / FILE).rename(root / "systems" / f"{name}.json")

    return deed


def bracketed_beside_its_match(root: Path) -> None:
    """``pod[1]`` holds no run that passes, ``pod1`` five."""
    bracketed("pod1")(root)
    write_system(root / "systems", "pod[1]")
    write_set(root / "results" / "pod[1]" / "resnet", (without(good_log(), "cache_clear"),))


def linked(root: Path) -> None:
    (root / "benchmarks" / "resnet" / "notes.txt").symlink_to("run.sh")


FOREIGN = "- BEGIN:\n    CODE: open({!r}, 'w').close()\n"


def foreign(root: Path) -> None:
    """The division is the path of a rule file, which leaves a mark when it is run."""
    rules = root.parent / "x_common.yaml"
    rules.write_text(FOREIGN.format(str(root.parent / "executed")))
    up = "../" * (len(Path(compliance_checker.__path__[0]).parts) + 1)
    field("submission_division", f"{up}{root.parent.as_posix().strip('/')}/x")(root)


def measured(**changes: Any) -> Deed:
    """Power of all runs, from before their start to after their stop unless told otherwise."""

    def deed(root: Path) -> None:
        for index in range(5):
            times = {each["key"]: each["time_ms"] for each in records(log(root, index).read_bytes())}  # fmt: skip
            seconds = (times["run_stop"] - times["run_start"]) // 1000 + 10
            place = root / SET / "power" / f"result_{index}" / "node_0.txt"
            place.parent.mkdir(parents=True)
            given = {"start": times["run_start"] - 1000, "seconds": seconds, **changes}
            place.write_bytes(node(**given))

    return deed


def nothing(root: Path) -> None:
    """Leave it as it is."""


PASSED = [
    Trap("nothing is wrong", nothing, "pass", "pass"),
    Trap("Closed for closed", system(division="Closed"), "pass", "fail"),
    Trap("closed description, open logs", system(), "pass", "fail", division="open"),
    Trap("open description, closed logs", system(division="open"), "pass", "fail"),
    Trap("a second run_start", lambda r: rewrite(r, second_start, 0), "pass", "fail"),
    Trap("run_stop before run_start", lambda r: rewrite(r, stop_first, 0), "pass", "fail"),
    Trap("aborted", status("aborted", 0), "pass", "pass"),
    Trap("two aborted, open", status("aborted", 0, 1), "pass", "fail", division="open"),
    Trap("one run without cache_clear", lambda r: rewrite(r, lambda t: without(t, "cache_clear"), 0), "pass", "fail"),
    Trap("a copy with another seed", copied(4711, 0), "pass", "fail"),
    Trap("a copy on another day", copied(4711, 86_400_000), "pass", "fail"),
    Trap("overlapping runs", at_once, "pass", "pass"),
    Trap("the same seed by another line", other_line, "pass", "pass"),
    Trap("a misspelt benchmark", rename(SET, f"results/{SYSTEM}/resnet50"), "pass", "fail"),
    Trap("a level too deep", rename(f"results/{SYSTEM}", "results/x"), "pass", "fail"),
    Trap("runs of another benchmark", of_bert, "pass", "fail"),
    Trap("an empty package", emptied, "pass", "fail"),
    Trap("a system without results", lambda r: write_system(r / "systems", "idle"), "pass", "pass"),
    Trap("mixed batch sizes, open", field("global_batch_size", 999, 0), "pass", "fail", division="open"),
    Trap("a division that is a path", foreign, "fail", "fail"),
    Trap("another key with the word", lambda r: rewrite(r, word), "pass", "pass"),
    Trap("a placeholder for a platform", field("submission_platform", "SUBMISSION_PLATFORM_PLACEHOLDER"), "pass", "pass"),
    Trap("a placeholder for an organisation", field("submission_org", "SUBMISSION_ORG_PLACEHOLDER"), "pass", "pass"),
    Trap("another organisation", field("submission_org", "Others"), "pass", "pass"),
    Trap("a configuration file that is not there", nothing, "pass", "pass", round="6.1", benchmark="flux1"),
    Trap("no code of the benchmark", rename("benchmarks/resnet", "benchmarks/bert"), "pass", "pass"),
    Trap("no code at all", lambda r: remove(r / "benchmarks"), "pass", "pass"),
    Trap("power every other second", measured(step=2), "pass", "pass"),
    Trap("power of a part of the run", measured(seconds=100), "pass", "pass"),
]  # fmt: skip

INVENTED = [
    Trap("a relative link", linked, "fail", "pass"),
    Trap("a number in a description", system(accelerators_per_node=4), "fail", "pass"),
    Trap("[ in a system's name", bracketed("pod[1]"), "fail", "pass"),
    Trap("[ in an open system's name", bracketed("pod[1]"), "fail", "pass", division="open"),
    Trap("[ without its ]", bracketed("pod[1"), "pass", "pass"),
    Trap("[ beside what it matches", bracketed_beside_its_match, "pass", "fail"),
    Trap("* in a system's name", bracketed("pod*"), "pass", "pass"),
    Trap("a missing description", lambda r: remove(r / FILE), "fail", "fail"),
    Trap("dlrm", nothing, "fail", "pass", benchmark="dlrm"),
    Trap("dlrm", nothing, "fail", "pass", benchmark="dlrm", round="2.1"),
]  # fmt: skip


def found(report: Report) -> list[tuple[str, str, str, str, int | None]]:
    return sorted((f.code, f.severity.value, f.basis.value, f.path, f.line) for f in report.findings)


@pytest.mark.parametrize("trap", [*PASSED, *INVENTED], ids=lambda t: t.name)
def test_traps(trap: Trap, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    root = submission(tmp_path / "Graphcore", trap)
    trap.deed(root)
    report = check([str(root)], Options(round=trap.round, jobs=1)).report
    official, said = official_verdict(root, tmp_path, caplog, ruleset=f"{trap.round}.0")
    print("@@", trap.name, official, said[:5].strip(), report.verdict.official.value, report.verdict.rules.value)
    for f in report.findings: print("   ", f.code, f.severity.value, f.basis.value, f.path, f.line, f.message)
    assert (official, report.verdict.official.value, report.verdict.rules.value)==(trap.official,trap.official, trap.rules)
