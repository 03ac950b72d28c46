"""The three steps of each submission, and how they are shown."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from mlperf_pkg.checker.values import Checked
from mlperf_pkg.findings import Basis, Finding, Unchecked, Verdict
from mlperf_pkg.render.log_lines import in_line
from mlperf_pkg.render.terminal import PLAIN, Column, Group, Terminal
from mlperf_pkg.render.view import View
from mlperf_pkg.submission.model import Submission

_REPOSITORY = "REPO"
_MOST_SHOWN = 20  # findings

_COLUMNS = (
    Column("Submission", whole=True),
    Column("Package", 11),
    Column("Repository", 10),
    Column("Scores", 10),
)


class Steps(Struct, frozen=True):
    """The outcome of the steps for a submission, and the findings that fail one of them."""

    name: str
    package: str
    repository: str
    scores: str
    failing: tuple[Finding, ...]

    @property
    def passed(self) -> bool:
        """Whether both checkers find no errors."""
        return self.package == self.repository == "pass"


def steps_of(checked: Checked) -> list[Steps]:
    """Return the steps of all submissions of a check."""
    submissions = (item for input_ in checked.inputs for item in input_.submissions)
    return [_steps(submission, checked) for submission in submissions]


def _steps(submission: Submission, checked: Checked) -> Steps:
    label = submission.place.label
    findings = [f for f in checked.report.findings if _is_about(f.about, label)]
    failing = tuple(f for f in findings if f.fails(Basis.OFFICIAL))
    of_repository = [f for f in failing if f.code.startswith(_REPOSITORY)]
    rows = [row for row in checked.report.result_sets if _is_about(row.path, label)]
    unchecked = any(isinstance(finding, Unchecked) for finding in findings) or all(
        row.verdict.official is Verdict.NOT_CHECKED for row in rows
    )
    scored = sum(row.official_minutes is not None for row in rows)
    return Steps(
        name=label or submission.name,
        package=_word(len(failing) > len(of_repository), unchecked=unchecked),
        repository=_word(bool(of_repository)),
        scores=f"{scored} of {len(rows)}",
        failing=failing,
    )


def _is_about(path: str, label: str) -> bool:
    return not label or path == label or path.startswith(f"{label}/")


def _word(failed: bool, *, unchecked: bool = False) -> str:
    return "FAIL" if failed else "not checked" if unchecked else "pass"


def text(steps: Sequence[Steps], view: View) -> str:
    """Render a line per submission, then the errors of the official checkers."""
    terminal = Terminal(view)
    rows = [(s.name, s.package, s.repository, s.scores) for s in steps]
    terminal.table(_COLUMNS, [Group("", [[(cell, PLAIN) for cell in row] for row in rows])])
    failing = [finding for item in steps for finding in item.failing]
    for finding in failing if view.verbose else failing[:_MOST_SHOWN]:
        terminal.line((in_line(finding), PLAIN))
    if len(failing) > _MOST_SHOWN and not view.verbose:
        terminal.line((f"and {len(failing) - _MOST_SHOWN} more: --verbose shows all", PLAIN))
    passed = sum(item.passed for item in steps)
    terminal.line((f"{passed} of {len(steps)} submissions pass both official checkers", PLAIN))
    return terminal.text()
