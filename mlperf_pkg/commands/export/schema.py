"""The tables of an export: their columns, types, units and meanings.

Each class is a table, each field a column, whose annotation has its meaning and its unit, if any.
Documents and files are generated from these classes, so they always agree. Unprintable characters
are escaped in all strings; numbers are finite. The limits hold for what is written and for what is
read, so that whatever is written can be read.
"""

import inspect
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any, get_args, get_type_hints

from msgspec import Struct
from msgspec.structs import astuple

VERSION = 3
LONGEST = 1 << 14  # characters of a string; a longer one ends with its digest
MOST_ROWS = 5_000_000  # of a table
MOST_TEXT = 1 << 28  # characters of all different strings of a table
LARGEST = 1 << 32  # bytes of a file


_Usage = Annotated[str | None, "`training` or `hpc`; null if it cannot be inferred"]
_Round = Annotated[str | None, "the round, such as `5.1`; null if it cannot be inferred"]
_Submitter = Annotated[str | None, "the submitter; null for raw logs without a description"]
_System = Annotated[str | None, "the system: the name of its description"]
_Benchmark = Annotated[str, "the benchmark: the name of its folder"]
_RoundOfSet = Annotated[str, "the round, such as `5.1`"]
_UsageOfSet = Annotated[str, "`training` or `hpc`"]
_Division = Annotated[str | None, "the division, as the description spells it"]
_DivisionByRules = Annotated[str | None, "`closed` or `open`; null if it is neither"]
_Set = Annotated[str, "the `id` of the result set"]
_SetPath = Annotated[str, "the path of the result set"]
_RunPath = Annotated[str, "the path of the log"]
_Official = Annotated[
    str | None, "the official verdict: `pass`, `fail`, `not_checked`; null if published"
]
_Rules = Annotated[str | None, "the verdict by the written rules, with the same values"]


class SystemRecord(Struct, frozen=True):
    """One row for each system description."""

    usage: _Usage
    round: _Round
    submitter: _Submitter
    id: Annotated[str, "the system: the name of its description"]
    path: Annotated[str, "the path of the description"]
    division: _Division
    division_by_rules: _DivisionByRules
    status: Annotated[str | None, "the availability, as the description spells it"]
    status_by_rules: Annotated[
        str | None,
        "the availability: `onprem`, `cloud`, `preview`, `research`; null if none of these",
    ]
    system_name: Annotated[str | None, "the name of the system"]
    nodes: Annotated[int | None, "the number of nodes"]
    accelerators: Annotated[int | None, "the number of accelerators of all nodes"]
    accelerators_per_node: Annotated[int | None, "the number of accelerators of a node"]
    accelerator_model: Annotated[str | None, "the model of the accelerators"]
    host_processor: Annotated[str | None, "the model of the processors"]
    framework: Annotated[str | None, "the framework and its version"]
    verdict_official: _Official
    verdict_rules: _Rules


class ResultSetRecord(Struct, frozen=True):
    """One row for each result set: the runs of one system and benchmark."""

    usage: _UsageOfSet
    round: _RoundOfSet
    id: Annotated[
        str, "submitter, system, benchmark, division and (HPC) scaling; unique in its round"
    ]
    submitter: _Submitter
    companies: Annotated[
        str | None,
        "the companies that submit the set, `A+B` for a joint entry; null if no submitter is named",
    ]
    system: _System
    benchmark: _Benchmark
    division: Annotated[
        str | None,
        "the division, as the description spells it; as the logs spell it if there is"
        " no description",
    ]
    division_by_rules: _DivisionByRules
    path: Annotated[
        str, "the path of the result set; several sets of raw logs may have the same path"
    ]
    system_path: Annotated[str | None, "the `path` of its system in `systems`"]
    runs_found: Annotated[int, "the number of runs"]
    runs_required: Annotated[int | None, "the number of runs that the rules require"]
    score_minutes: Annotated[
        float | None,
        "time-to-train: as published, otherwise normalised where the rules say so",
        "minutes",
    ]
    unscaled_minutes: Annotated[
        float | None,
        "the olympic mean before normalisation; of weak scaling, the time of all models",
        "minutes",
    ]
    official_minutes: Annotated[
        float | None,
        "the score of the official summarizer; of weak scaling, the olympic mean of the models",
        "minutes",
    ]
    scaling_factor: Annotated[
        float | None, "`score_minutes` divided by `unscaled_minutes`", "ratio"
    ]
    rcp_official_pass: Annotated[bool | None, "whether the official RCP test passes"]
    rcp_margin_percent: Annotated[
        float | None,
        "by how much the mean to converge exceeds the smallest acceptable mean",
        "percent",
    ]
    global_batch_size: Annotated[int | None, "the global batch size", "samples"]
    energy_joules: Annotated[float | None, "the mean energy of the runs that count", "joules"]
    scaling: Annotated[str | None, "`strong` or `weak` (HPC)"]
    number_of_models: Annotated[int | None, "the number of models trained at once (weak scaling)"]
    verdict_official: _Official
    verdict_rules: _Rules


class RunRecord(Struct, frozen=True):
    """One row for each run of a result set."""

    usage: _UsageOfSet
    round: _RoundOfSet
    set: _Set
    set_path: _SetPath
    submitter: _Submitter
    system: _System
    path: _RunPath
    benchmark: _Benchmark
    division: Annotated[str, "the division, as the log spells it"]
    division_by_rules: _DivisionByRules
    start: Annotated[datetime | None, "the time of `run_start`; ISO 8601 in SQLite and CSV", "UTC"]
    minutes: Annotated[float | None, "time-to-train by the rules", "minutes"]
    official_minutes: Annotated[float | None, "time-to-train of the official summarizer", "minutes"]
    status: Annotated[str | None, "the status of `run_stop`"]
    samples_to_converge: Annotated[
        float | None,
        "the amount of training until the target was reached",
        "unit of the benchmark's RCPs",
    ]
    batch_size: Annotated[int | None, "the global batch size", "samples"]
    accelerators: Annotated[
        int | None, "the number of accelerators in the log, or else in the system description"
    ]
    energy_joules: Annotated[float | None, "the official energy of the run", "joules"]
    records: Annotated[int, "the number of records of the log"]
    dropped: Annotated[str | None, "the reason why the score omits the run; null if the run counts"]
    verdict_official: _Official
    verdict_rules: _Rules


class EvaluationRecord(Struct, frozen=True):
    """One row for each metric of an evaluation of a run."""

    usage: _UsageOfSet
    round: _RoundOfSet
    run_path: _RunPath
    line: Annotated[int, "the line of the log, from 1"]
    minutes: Annotated[float | None, "the time since `run_start`", "minutes"]
    position: Annotated[float, "the amount of training up to the evaluation", "`unit`"]
    unit: Annotated[str, "`samples`, `epochs` or `steps`"]
    metric: Annotated[str, "the metric; empty if the benchmark has only one"]
    value: Annotated[float, "the value of the metric"]


class SettingRecord(Struct, frozen=True):
    """One row for each hyperparameter of a result set and each value that its runs have."""

    usage: _UsageOfSet
    round: _RoundOfSet
    set: _Set
    set_path: _SetPath
    benchmark: _Benchmark
    key: Annotated[str, "the hyperparameter, as it is logged"]
    value: Annotated[str, "the first value of the hyperparameter in a log, as JSON"]
    number: Annotated[float | None, "the value as a number; null if it is not a number"]
    runs: Annotated[int, "the number of runs with this value"]


class FindingRecord(Struct, frozen=True):
    """One row for each finding."""

    usage: _Usage
    round: _Round
    code: Annotated[str, "the code, such as `BERT111`"]
    severity: Annotated[str, "`error`, `warning` or `note`"]
    basis: Annotated[str, "`both`, `official`, `rules` or `advice`"]
    set: Annotated[
        str | None, "the `id` of the result set; null if the finding is not about a result set"
    ]
    subject: Annotated[
        str | None,
        "the path of the result set, description or submission that the finding is about; for raw"
        " logs, the `id` of the set; null if the finding is about the file in `path`",
    ]
    path: Annotated[str, "the first file with the finding"]
    line: Annotated[int | None, "the line of the file, from 1"]
    count: Annotated[int, "the number of occurrences"]
    message: Annotated[str, "the values found and expected, in words"]
    found: Annotated[str | None, "the first value found, as JSON"]
    expected: Annotated[str | None, "the first value expected, as JSON"]
    source: Annotated[str | None, "the document and section of the rule"]
    waiver_reason: Annotated[str | None, "why the finding is waived; null if it is not waived"]
    waiver_approved_by: Annotated[str | None, "who approved the waiver"]
    waiver_until: Annotated[str | None, "the last day of the waiver"]
    id: Annotated[str, "the `id` of the finding in the report of this check, such as `LOG101-1`"]
    cause: Annotated[
        str | None, "the `id` of the finding that causes this finding; null if there is none"
    ]


def row(record: type[Struct], source: object, *first: Any, **others: Any) -> tuple[Any, ...]:
    """Return the cells of a record: the ``first`` ones, then ``others`` by the names of fields.

    The rest are the values that ``source`` has under the same names, else null.
    """
    names = (name for name in record.__struct_fields__[len(first) :] if name not in others)
    same = {name: getattr(source, name, None) for name in names}
    return astuple(record(*first, **same, **others))


class ExportColumn(Struct, frozen=True):
    """A column: its type is one of ``str``, ``int``, ``float``, ``bool`` and ``datetime``.

    Times are in UTC, in milliseconds.
    """

    name: str
    type: type
    nullable: bool
    unit: str
    meaning: str

    @property
    def described(self) -> str:
        """The meaning, with the unit if it has one."""
        return f"{self.meaning} [{self.unit}]" if self.unit else self.meaning


class ExportTable(Struct, frozen=True):
    """A table; ``meaning`` describes its rows.

    ``keys`` has constraints, and ``indexes`` the columns of other indexes, both as SQL.
    """

    name: str
    meaning: str
    columns: tuple[ExportColumn, ...]
    keys: tuple[str, ...]
    indexes: tuple[str, ...]

    @property
    def create_indexes(self) -> list[str]:
        """The statements that create the indexes."""
        statements = []
        for columns in self.indexes:
            last = columns.split()[-1].strip('"')
            statements.append(f"CREATE INDEX {self.name}_by_{last} ON {self.name} ({columns})")
        return statements


def _table(name: str, record: type[Struct], keys: Sequence[str], *indexes: str) -> ExportTable:
    hints = get_type_hints(record, include_extras=True)
    columns = tuple(_column(field, hints[field]) for field in record.__struct_fields__)
    return ExportTable(name, inspect.cleandoc(record.__doc__ or ""), columns, tuple(keys), indexes)


def _column(name: str, hint: Any) -> ExportColumn:
    of_values, meaning, *unit = get_args(hint)
    type_, *null = get_args(of_values) or (of_values,)
    return ExportColumn(name, type_, bool(null), "".join(unit), meaning)


_OF_SET = 'FOREIGN KEY (usage, round, "set") REFERENCES result_sets (usage, round, id)'
_INDEX_OF_SET = 'usage, round, "set"'

TABLES: Mapping[str, ExportTable] = {
    table.name: table
    for table in (
        _table("systems", SystemRecord, ["UNIQUE (usage, round, path)"], "submitter"),
        _table(
            "result_sets",
            ResultSetRecord,
            [
                "PRIMARY KEY (usage, round, id)",
                "FOREIGN KEY (usage, round, system_path) REFERENCES systems (usage, round, path)",
            ],
            "usage, round, system_path",
            "benchmark",
            "submitter",
        ),
        _table("runs", RunRecord, ["PRIMARY KEY (usage, round, path)", _OF_SET], _INDEX_OF_SET),
        _table(
            "evaluations",
            EvaluationRecord,
            [
                "PRIMARY KEY (usage, round, run_path, line, metric)",
                "FOREIGN KEY (usage, round, run_path) REFERENCES runs (usage, round, path)",
            ],
        ),
        _table(
            "settings",
            SettingRecord,
            ['PRIMARY KEY (usage, round, "set", key, value)', _OF_SET],
            "benchmark, key",
        ),
        _table("findings", FindingRecord, [_OF_SET], _INDEX_OF_SET, "code"),
    )
}
"""The tables by name, in order; ``evaluations`` is written only on request."""
