"""Rounds under review, without files."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from mlperf_pkg.checker.values import Checked
from mlperf_pkg.commands.review.round import Choices, ReviewedRound
from mlperf_pkg.findings import Finding
from mlperf_pkg.render.table import Table
from mlperf_pkg.results.report import ResultSetRow, SystemRow
from mlperf_pkg.submission.model import Input, Place, Submission
from tests.helpers.reports import report, result_set, system
from tests.helpers.trees import write_submission, write_system


def cells(table: Table) -> list[tuple[Any, ...]]:
    """The rows of a table as they are written as data."""
    return [tuple(table.values(row)) for row in table.rows]


def titles(table: Table) -> list[str]:
    return [column.heading for column in table.columns]


def a_set(
    submitter: str, benchmark: str = "bert", name: str = "dgx", **changes: Any
) -> ResultSetRow:
    path = f"{submitter}/results/{name}/{benchmark}"
    return result_set(path=path, submitter=submitter, system=name, benchmark=benchmark, **changes)


def a_system(submitter: str, name: str = "dgx", **changes: Any) -> SystemRow:
    path = f"{submitter}/systems/{name}.json"
    return system(**{"id": name, "path": path, "submitter": submitter, **changes})


def a_round(
    names: Iterable[str],
    rows: Iterable[ResultSetRow] = (),
    systems: Iterable[SystemRow] = (),
    findings: Iterable[Finding] = (),
    **choices: Any,
) -> ReviewedRound:
    """A round of submitters by name, and its rows."""
    parts = {"result_sets": tuple(rows), "systems": tuple(systems), "findings": tuple(findings)}
    made = report(runs=(), **parts)
    submissions = tuple(Submission(Place(name, name), name, (), ()) for name in names)
    checked = Checked(made, (Input(submissions=submissions),), (), (), (), ())
    return ReviewedRound(checked, Choices(**choices))


def of_sizes(results: Mapping[str, int], **choices: Any) -> ReviewedRound:
    """A round of submitters and their numbers of results, on systems of 8 accelerators."""
    pairs = ((name, number) for name, count in results.items() for number in range(count))
    rows = [a_set(name, f"benchmark{number}") for name, number in pairs]
    systems = [a_system(name, accelerators=8) for name in results]
    return a_round(results, rows, systems, **choices)


def write_round(root: Path, *names: str) -> Path:
    """A round of valid submissions, with runs of their own."""
    for seed, name in enumerate(names):
        write_submission(root / name, seed=seed)
        write_system(root / name / "systems", submitter=name)
    return root
