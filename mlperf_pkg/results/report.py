"""The outcome of a check as typed rows: the JSON contract ``mlperf-pkg/report/3``."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from datetime import datetime
from itertools import chain, takewhile
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from mlperf_pkg.errors import UserError
from mlperf_pkg.findings import Basis, Finding, Severity, Verdict, Verdicts
from mlperf_pkg.infra.source import words_of_lines
from mlperf_pkg.submission.submitters import SubmitterNames, companies

if TYPE_CHECKING:
    import pandas as pd

FORMAT = "mlperf-pkg/report/3"
NOT_COUNTED = ("RAW101", "RAW102", "TREE111", "TREE114", "TREE115")
"""The codes of findings on raw logs of no run or of one that another log counts for, and on files
that are not read, in which there may be logs."""

MAX_DEPTH = 50  # nested lists and objects; the report itself has four levels


class SystemRow(Struct, frozen=True):
    """A system description."""

    id: str
    path: str
    submitter: str | None
    division: str | None
    status: str | None
    accelerators: int | None
    verdict: Verdicts


class RcpRow(Struct, frozen=True):
    """The RCP test of a result set; ``official_pass`` is the test itself, without any bypass.

    ``margin_percent`` is the RCP margin: by how much ``mean`` exceeds ``minimum``, the smallest
    acceptable mean; negative for a set that converges too fast. It is None where nothing was
    compared, and where ``no_limit_reason`` says why ``minimum`` limits nothing.
    """

    official_pass: bool
    message: str
    normalization: float
    bypassed: bool
    batch_size: float
    mean: float | None
    minimum: float | None
    explanation: str
    margin_percent: float | None = None
    no_limit_reason: str | None = None


class SeedsRow(Struct, frozen=True):
    """The seed test of a result set, without any bypass."""

    official_pass: bool


class ResultSetRow(Struct, frozen=True, kw_only=True):
    """A result set and its scores, in minutes; ``id`` is its identity, unique in a report.

    ``official_minutes`` is what the official summarizer prints after the package checker.
    ``score_minutes`` is ``unscaled_minutes``, the olympic mean by the rules, times
    ``scaling_factor``: that with which the set was published or, if it was not, that of its RCP
    test, where the rules normalise scores. ``score_note`` says why there is no score, or that the
    set does not have the required number of runs. ``energy_joules`` is the official mean energy of
    the runs that count; ``energy_note`` says why there is none although power was measured.

    ``companies`` are those that submit it: several of a joint entry, none where it has no
    ``submitter``. ``system_by`` is the evidence by which the system of raw logs was found. A set
    that is not ``judged`` has the verdicts of its logs alone. ``scaling`` is "strong" or "weak"
    (HPC). A weak set trains ``number_of_models`` at once, each on ``instance_scale`` accelerators.
    Its ``score_minutes`` is the time until all are trained, its ``official_minutes`` still the
    olympic mean of the single models.
    """

    id: str
    path: str
    submitter: str | None
    system: str | None
    benchmark: str
    division: str | None
    usage: str
    round: str
    verdict: Verdicts
    runs_found: int
    runs_required: int | None
    score_minutes: float | None = None
    unscaled_minutes: float | None = None
    scaling_factor: float = 1.0
    official_minutes: float | None = None
    score_note: str
    rcp: RcpRow | None = None
    seeds: SeedsRow
    energy_joules: float | None = None
    scaling: str | None = None
    number_of_models: int | None = None
    instance_scale: int | None = None
    system_by: str | None = None
    judged: bool = True
    energy_note: str | None = None
    companies: tuple[str, ...] = ()


class RunRow(Struct, frozen=True):
    """A run of the result set with the id ``set``, which is None outside result sets.

    ``lines`` are its first and last line in a file of several runs; None if the file is its log.
    ``dropped`` says why the mean of its set leaves it out; None where it counts. ``start`` is the
    time of ``run_start``, in UTC. ``submitter`` and ``system`` are those of its set.
    ``accelerators`` are those that the log names, or else those of the described system of its set.
    ``energy_joules`` is the official energy of a run that was measured. ``convergence_unit`` is
    what ``samples_to_converge`` counts.
    """

    path: str
    set: str | None
    verdict: Verdicts
    benchmark: str
    division: str
    round: str
    minutes: float | None
    official_minutes: float | None
    status: str | None
    records: int
    samples_to_converge: float | None
    dropped: str | None
    usage: str
    start: datetime | None
    submitter: str | None
    system: str | None
    lines: tuple[int, int] | None = None
    batch_size: int | None = None
    accelerators: int | None = None
    energy_joules: float | None = None
    convergence_unit: str | None = None

    @property
    def label(self) -> str:
        """The path, with the lines if there are any: no other run has the same."""
        return f"{self.path}{words_of_lines(self.lines)}"


class DriftRow(Struct, frozen=True):
    """How the installed mlperf-logging differs from the one that the rulebook was verified against.

    ``verified`` and ``installed`` are their names with versions, ``differs`` says in words what
    differs in each round. ``official`` is what the verified one says of all that was checked.
    """

    verified: str
    installed: str
    differs: tuple[str, ...]
    official: Verdict


class Report(Struct, frozen=True):
    """The outcome of a check; ``round`` is None where several rounds were checked.

    ``hidden`` is the number of findings that the user left out of ``findings``; the verdicts
    include them. ``configuration`` is a whole ``mlperf-pkg.yaml`` to complete; empty if
    raw logs leave nothing open. ``drift`` is None if the installed mlperf-logging gives the
    official verdict: its files equal the verified ones in all that was checked.
    """

    tool: dict[str, str]
    usage: str
    round: str | None
    round_reason: str
    verdict: Verdicts
    systems: tuple[SystemRow, ...] = ()
    result_sets: tuple[ResultSetRow, ...] = ()
    runs: tuple[RunRow, ...] = ()
    findings: tuple[Finding, ...] = ()
    hidden: int = 0
    configuration: str = ""
    drift: DriftRow | None = None

    def __repr__(self) -> str:
        """Return one line, for a prompt or a notebook; ``to_dict`` and ``to_pandas`` have all."""
        round_ = self.round or "of several rounds"
        verdicts = f"official {self.verdict.official}, rules {self.verdict.rules}"
        rows = f"result_sets {len(self.result_sets):,}, runs {len(self.runs):,}"
        others = f"systems {len(self.systems):,}, findings {len(self.findings):,}"
        return f"<Report: {self.usage} {round_}; {verdicts}; {rows}, {others}>"

    @property
    def submitter_names(self) -> dict[str, SubmitterNames]:
        """The names of the submitter of each result set that has one, by its id."""
        of_path = {system.path: system.submitter for system in self.systems}
        names = {}
        for row in self.result_sets:
            if row.submitter:
                described = of_path.get(description_path(row))
                names[row.id] = SubmitterNames(row.submitter, described or "")
        return names

    @property
    def with_companies(self) -> Report:
        """The report whose result sets name the companies that submit them."""
        names = self.submitter_names
        of_entry = companies(names.values())
        rows = []
        for row in self.result_sets:
            of_set = of_entry[names[row.id]] if row.id in names else ()
            rows.append(replace(row, companies=of_set))
        return replace(self, result_sets=tuple(rows))

    @property
    def submitters(self) -> list[str]:
        """The submitters with result sets: companies, each of which counts once."""
        return sorted(set(chain.from_iterable(row.companies for row in self.result_sets)))

    @property
    def has_errors(self) -> bool:
        """Whether any finding fails the check: an error that is not waived, or not officially."""
        return self.fails_on(Severity.ERROR)

    def fails_on(self, severity: Severity) -> bool:
        """Return whether there is a finding of this severity or above that is not waived.

        A waiver does not count where the official verdict fails because of its finding.
        """
        levels = tuple(Severity)
        failing = levels[: levels.index(severity) + 1]
        is_rejected = self.verdict.official is Verdict.FAIL
        severe = (f for f in self.findings if f.severity in failing)
        return any(not f.waiver or (is_rejected and f.fails(Basis.OFFICIAL)) for f in severe)

    def only(self, select: Sequence[str], ignore: Sequence[str]) -> Report:
        """Return the report with the findings whose codes start with one of ``select``.

        An empty ``select`` takes all codes; those that start with one of ``ignore`` are left out.
        What is left out is not the cause of any.
        """
        taken = [f for f in self.findings if f.code.startswith(tuple(select) or "")]
        kept = [f for f in taken if not f.code.startswith(tuple(ignore))]
        ids = {finding.id for finding in kept}
        findings: list[Finding] = []
        for finding in kept:
            cause = finding.cause if finding.cause in ids else None
            findings.append(replace(finding, cause=cause))
        hidden = len(self.findings) - len(findings)
        return replace(self, findings=tuple(findings), hidden=hidden)

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON report as Python values."""
        fields: dict[str, Any] = as_json(self)
        return fields

    def to_pandas(self, table: str = "result_sets") -> pd.DataFrame:
        """Return a table of the report: ``result_sets``, ``runs``, ``systems`` or ``findings``.

        Raises:
            UserError: there is no such table, or pandas is not installed.
        """
        return table_of(self, table)


def encodable(value: Any) -> Any:
    """Return a report as a dictionary for msgspec to encode; return other values as they are.

    Unlike ``as_json`` it leaves numbers, strings and the depth as they are.
    """
    if not isinstance(value, Report):
        return value
    fields = {name: getattr(value, name) for name in Report.__struct_fields__}
    findings = [replace(f, message=f.text, places=f.occurrences) for f in value.findings]
    return {"format": FORMAT, **fields, "findings": findings}


def as_json(value: Any, depth: int = MAX_DEPTH) -> Any:
    """Convert a report, or any part of it, to valid JSON values.

    NaN and infinities become None. Halves of surrogate pairs, which strict readers of JSON reject,
    are escaped as in Python source. Values deeper than ``depth``, as in a hostile log, become
    "...".
    """
    if depth == 0:
        return "..."
    if type(value) is int:  # as most values of charts
        return value
    if isinstance(value, Struct):
        names = (Report if isinstance(value, Report) else value).__struct_fields__
        fields = {name: as_json(getattr(value, name), depth - 1) for name in names}
        if isinstance(value, Finding):
            fields["message"] = as_json(value.text)
            fields["places"] = as_json(value.occurrences, depth - 1)
        if isinstance(value, Report):
            fields = {"format": FORMAT, **fields}
        return fields
    if isinstance(value, dict):
        return {_scalar(str(name)): as_json(item, depth - 1) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [as_json(item, depth - 1) for item in value]
    return _scalar(value)


def table_of(values: Struct, name: str) -> pd.DataFrame:
    """Return a field that holds rows as a pandas data frame; see ``data_frame``.

    Raises:
        UserError: there is no such field, or pandas is not installed.
    """
    from mlperf_pkg.results.data_frame import data_frame, row_types

    types = row_types(Report if isinstance(values, Report) else type(values))
    if name not in types:
        raise UserError(f"the table is {name!r}; expected {', '.join(types)}")
    return data_frame(as_json(getattr(values, name)), types[name])


def _scalar(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode("utf-8")
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, datetime):
        return msgspec.to_builtins(value)
    return value


def folder(path: str) -> str:
    """Return the folder of a path, empty if it has none."""
    return path.rpartition("/")[0]


def common_folder(paths: Iterable[str]) -> str:
    """Return the folder that holds all files; empty if it is that of the report."""
    folders = [path.split("/")[:-1] for path in paths]
    same = takewhile(lambda parts: len(set(parts)) == 1, zip(*folders, strict=False))
    return "/".join(parts[0] for parts in same)


def name(path: str) -> str:
    """Return the last part of a path."""
    return path.rpartition("/")[2]


def names(paths: Sequence[str]) -> list[str]:
    """Return the last parts of paths, with the folders where two would be alike."""
    last_parts = list(map(name, paths))
    if len(set(last_parts)) == len(last_parts):
        return last_parts
    above = common_folder(paths)
    return [path.removeprefix(f"{above}/") for path in paths]


def description_path(row: ResultSetRow) -> str:
    """Return the path of the description of a set's system, in the same submission."""
    return f"{row.path.rpartition(f'results/{row.system}/')[0]}systems/{row.system}.json"
