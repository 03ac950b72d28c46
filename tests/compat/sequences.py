"""Sequences of tools over a copy of a submission: ours and the official ones, in this process."""

from __future__ import annotations

import contextlib
import io
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from unittest import mock

from mlperf_logging.compliance_checker import mlp_compliance
from mlperf_logging.result_summarizer import result_summarizer
from msgspec import Struct

from mlperf_pkg.compat import package_checker
from mlperf_pkg.compat import result_summarizer as summarizer
from tests.compat.official import package_checker_run
from tests.parity.incumbent import cached_rules

Files = dict[str, bytes]
Tools = dict[str, Callable[[list[str], Path], int]]

CHECK, SUMMARIZE = "check", "summarize"


class Outcome(Struct, frozen=True):
    """The exit status of each step, the tables after it, and all ``scaling.json`` at the end."""

    statuses: tuple[int, ...]
    tables: tuple[Files, ...]
    factors: Files


def outcome(tree: Path, steps: Sequence[str], run: Callable[[list[str], Path], int]) -> Outcome:
    """Run steps such as ``check --rcp-bypass`` or ``summarize`` over a tree, which they change."""
    statuses, tables = [], []
    for number, step in enumerate(steps):
        tool, *options = step.split()
        written = tree.parent / f"written-{number}"
        written.mkdir()
        statuses.append(run([tool, *options], written))
        tables.append({path.name: path.read_bytes() for path in written.glob("*.[cj]s*")})
    factors = {
        path.relative_to(tree).as_posix(): path.read_bytes()
        for path in sorted(tree.rglob("scaling.json"))
    }
    return Outcome(tuple(statuses), tuple(tables), factors)


def both(
    tree: Path, usage: str, ruleset: str, steps: Sequence[str], scratch: Path
) -> list[Outcome]:
    """The outcomes of our tools and of the official ones, each over a copy of a tree."""
    outcomes = []
    for name, tools in (("ours", OURS), ("theirs", THEIRS)):
        copy = shutil.copytree(tree, scratch / name / tree.name)

        def run(step: list[str], written: Path, tools: Tools = tools, copy: Path = copy) -> int:
            tool, *options = step
            arguments = [str(copy), usage, ruleset, *options]
            if tool == SUMMARIZE:
                arguments += ["--csv", str(written / "summary.csv")]
            with (
                contextlib.redirect_stdout(io.StringIO()),
                contextlib.redirect_stderr(io.StringIO()),
            ):
                return tools[tool](arguments, written)

        outcomes.append(outcome(copy, steps, run))
    return outcomes


def _our_check(arguments: list[str], written: Path) -> int:
    return package_checker.main([*arguments, "--log_output", str(written / "log")])


def _our_summary(arguments: list[str], _: Path) -> int:
    return summarizer.main(arguments)


def _their_check(arguments: list[str], _: Path) -> int:
    return package_checker_run(arguments)[0]


def _their_summary(arguments: list[str], _: Path) -> int:
    mlp_compliance.enqueued_configs.clear()
    try:
        with cached_rules(), mock.patch("sys.argv", ["x", *arguments]):
            result_summarizer.main()
    except Exception:  # noqa: BLE001 - whatever it raises
        return 1
    return 0


OURS: Tools = {CHECK: _our_check, SUMMARIZE: _our_summary}
THEIRS: Tools = {CHECK: _their_check, SUMMARIZE: _their_summary}


def deleted(tree: Path) -> None:
    """Remove the factors, as MLCommons does before it checks a round."""
    for path in tree.rglob("scaling.json"):
        path.unlink()


def written(text: str) -> Callable[[Path], None]:
    """Return what writes a string into all files of factors."""

    def write(tree: Path) -> None:
        for folder in {path.parent for path in tree.rglob("result_*.txt")}:
            (folder / "scaling.json").write_text(text)

    return write


def untouched(_: Path) -> None:
    """Leave the factors as they are."""


STATES: dict[str, Callable[[Path], None]] = {
    "fresh": untouched,
    "deleted": deleted,
    "stale": written('{"scaling_factor": 1.25}'),
    "unreadable": written("{"),
}
