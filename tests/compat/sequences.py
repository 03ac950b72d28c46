"""Sequences of tools over a copy of a submission: ours and the official ones, in this process."""

import contextlib
import io
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

from mlperf_pkg.compat import package_checker, result_summarizer
from tests.helpers.official import run_package_checker, run_summarizer

Files = dict[str, bytes]
Tools = dict[str, Callable[[list[str], Path], int]]

CHECK, SUMMARIZE = "check", "summarize"


Outcome = tuple[list[int], list[Files], Files]
"""The exit status of each step, the tables after it, and all ``scaling.json`` at the end."""


def outcome(tree: Path, usage: str, ruleset: str, steps: Sequence[str], tools: Tools) -> Outcome:
    """Run steps such as ``check --rcp-bypass`` or ``summarize`` over a tree, which they change."""
    statuses, tables = [], []
    for number, step in enumerate(steps):
        tool, *options = step.split()
        written = tree.parent / f"written-{number}"
        written.mkdir()
        if tool == SUMMARIZE:
            options += ["--csv", str(written / "summary.csv")]
        silence = io.StringIO()
        with contextlib.redirect_stdout(silence), contextlib.redirect_stderr(silence):
            statuses.append(tools[tool]([str(tree), usage, ruleset, *options], written))
        tables.append({path.name: path.read_bytes() for path in written.glob("*.[cj]s*")})
    factors = {
        path.relative_to(tree).as_posix(): path.read_bytes()
        for path in sorted(tree.rglob("scaling.json"))
    }
    return statuses, tables, factors


OURS: Tools = {
    CHECK: lambda arguments, written: package_checker.main(
        [*arguments, "--log_output", str(written / "log")]
    ),
    SUMMARIZE: lambda arguments, _: result_summarizer.main(arguments),
}
THEIRS: Tools = {
    CHECK: lambda arguments, _: run_package_checker(*arguments)[0],
    SUMMARIZE: lambda arguments, _: run_summarizer(*arguments),
}


def both(
    tree: Path, usage: str, ruleset: str, steps: Sequence[str], scratch: Path
) -> list[Outcome]:
    """The outcomes of our tools and of the official ones, each over a copy of a tree."""
    copies = [shutil.copytree(tree, scratch / name / tree.name) for name in ("ours", "theirs")]
    pairs = zip(copies, (OURS, THEIRS), strict=True)
    return [outcome(copy, usage, ruleset, steps, tools) for copy, tools in pairs]


def written(text: str) -> Callable[[Path], None]:
    """Return what writes a string into all files of factors."""

    def write(tree: Path) -> None:
        for folder in {path.parent for path in tree.rglob("result_*.txt")}:
            (folder / "scaling.json").write_text(text)

    return write


def deleted(tree: Path) -> None:
    """Remove the factors, as MLCommons does before it checks a round."""
    for path in tree.rglob("scaling.json"):
        path.unlink()


STATES: dict[str, Callable[[Path], None]] = {
    "fresh": lambda _: None,
    "deleted": deleted,
    "stale": written('{"scaling_factor": 1.25}'),
    "unreadable": written("{"),
}
