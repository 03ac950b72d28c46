"""The tables of an export: their columns, types, units and meanings.

Each class is a table, each field a column. Documents and files are generated from these classes,
so they always agree. Unprintable characters are escaped in all strings; numbers are finite. The
limits hold for what is written and for what is read, so that whatever is written can be read.
"""

import inspect
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any, TypeVar, get_args, get_origin, get_type_hints

from msgspec import Meta, Struct

VERSION = 2
LONGEST = 1 << 14  # characters of a string; a longer one ends with its digest
MOST_ROWS = 5_000_000  # of a table
MOST_TEXT = 1 << 28  # characters of all different strings of a table
LARGEST = 1 << 32  # bytes of a file


def _about(meaning: str, unit: str = "") -> Meta:
    return Meta(description=meaning, extra={"unit": unit})


_Usage = Annotated[str | None, _about("`training` or `hpc`; null if it cannot be inferred")]
_Round = Annotated[str | None, _about("the round, such as `5.1`; null if it cannot be inferred")]
_Submitter = Annotated[str | None, _about("the submitter; null for raw logs without a description")]
_System = Annotated[str | None, _about("the system: the name of its description")]
_Benchmark = Annotated[str, _about("the benchmark: the name of its folder")]
_RoundOfSet = Annotated[str, _about("the round, such as `5.1`")]
_UsageOfSet = Annotated[str, _about("`training` or `hpc`")]
_Division = Annotated[str | None, _about("`closed` or `open`; null if it is neither")]
_SetId = Annotated[str, _about("the `id` of the result set")]
_SetPath = Annotated[str, _about("the path of the result set")]
_RunPath = Annotated[str, _about("the path of the log")]
_Official = Annotated[
    str | None, _about("the official verdict: `pass`, `fail`, `not_checked`; null if published")
]
_Rules = Annotated[str | None, _about("the verdict by the written rules, with the same values")]


class SystemRecord(Struct, frozen=True):
    """One row for each system description."""

    usage: _Usage
    round: _Round
    submitter: _Submitter
    system: _System
    path: Annotated[str, _about("the path of the description")]
    division: _Division
    division_written: Annotated[str | None, _about("the division, as the description spells it")]
    status: Annotated[
        str | None,
        _about("the availability: `onprem`, `cloud`, `preview`, `research`; null if none of these"),
    ]
    status_written: Annotated[str | None, _about("the availability, as the description spells it")]
    system_name: Annotated[str | None, _about("the name of the system")]
    nodes: Annotated[int | None, _about("the number of nodes")]
    accelerators: Annotated[int | None, _about("the number of accelerators of all nodes")]
    accelerators_per_node: Annotated[int | None, _about("the number of accelerators of a node")]
    accelerator_model: Annotated[str | None, _about("the model of the accelerators")]
    host_processor: Annotated[str | None, _about("the model of the processors")]
    framework: Annotated[str | None, _about("the framework and its version")]
    official: _Official
    rules: _Rules


class ResultSetRecord(Struct, frozen=True):
    """One row for each result set: the runs of one system and benchmark."""

    usage: _UsageOfSet
    round: _RoundOfSet
    id: Annotated[
        str, _about("submitter, system, benchmark, division and (HPC) scaling; unique in its round")
    ]
    submitter: _Submitter
    system: _System
    benchmark: _Benchmark
    division: _Division
    division_written: Annotated[
        str | None,
        _about("the division, as the description spells it, or the logs if there is none"),
    ]
    path: Annotated[
        str, _about("the path of the result set; several sets of raw logs may have the same")
    ]
    system_path: Annotated[str | None, _about("the `path` of its system in `systems`")]
    runs: Annotated[int, _about("the number of runs")]
    runs_required: Annotated[int | None, _about("the number of runs that the rules require")]
    score_minutes: Annotated[
        float | None, _about("time-to-train: the olympic mean, normalised", "minutes")
    ]
    unscaled_minutes: Annotated[
        float | None, _about("the olympic mean before normalisation", "minutes")
    ]
    official_minutes: Annotated[
        float | None, _about("the score of the official summarizer", "minutes")
    ]
    scaling_factor: Annotated[
        float | None, _about("`score_minutes` divided by `unscaled_minutes`", "ratio")
    ]
    rcp_pass: Annotated[bool | None, _about("whether the official RCP test passes")]
    rcp_margin: Annotated[
        float | None,
        _about("by how much the mean to converge exceeds the smallest acceptable mean", "percent"),
    ]
    global_batch_size: Annotated[int | None, _about("the global batch size", "samples")]
    energy: Annotated[float | None, _about("the mean energy of the runs that count", "joules")]
    scaling: Annotated[str | None, _about("`strong` or `weak` (HPC)")]
    models: Annotated[int | None, _about("the number of models trained at once (weak scaling)")]
    official: _Official
    rules: _Rules


class RunRecord(Struct, frozen=True):
    """One row for each run of a result set."""

    usage: _UsageOfSet
    round: _RoundOfSet
    set_id: _SetId
    set_path: _SetPath
    path: _RunPath
    benchmark: _Benchmark
    division: _Division
    division_written: Annotated[str, _about("the division, as the log spells it")]
    start: Annotated[
        datetime | None, _about("the time of `run_start`; ISO 8601 in SQLite and CSV", "UTC")
    ]
    minutes: Annotated[float | None, _about("time-to-train by the rules", "minutes")]
    official_minutes: Annotated[
        float | None, _about("time-to-train of the official summarizer", "minutes")
    ]
    status: Annotated[str | None, _about("the status of `run_stop`")]
    to_converge: Annotated[
        float | None, _about("the amount of training to the target", "unit of the benchmark's RCPs")
    ]
    records: Annotated[int, _about("the number of records of the log")]
    dropped: Annotated[
        str | None, _about("the reason why the score omits the run; null if it counts")
    ]
    official: _Official
    rules: _Rules


class EvaluationRecord(Struct, frozen=True):
    """One row for each metric of an evaluation of a run."""

    usage: _UsageOfSet
    round: _RoundOfSet
    run_path: _RunPath
    line: Annotated[int, _about("the line of the log, from 1")]
    minutes: Annotated[float | None, _about("the time since `run_start`", "minutes")]
    position: Annotated[float, _about("the amount of training up to the evaluation", "`unit`")]
    unit: Annotated[str, _about("`samples`, `epochs` or `steps`")]
    metric: Annotated[str, _about("the metric; empty if the benchmark has only one")]
    value: Annotated[float, _about("the value of the metric")]


class SettingRecord(Struct, frozen=True):
    """One row for each hyperparameter of a result set and each value that its runs have."""

    usage: _UsageOfSet
    round: _RoundOfSet
    set_id: _SetId
    set_path: _SetPath
    benchmark: _Benchmark
    key: Annotated[str, _about("the hyperparameter, as it is logged")]
    value: Annotated[str, _about("its first value in a log, as JSON")]
    number: Annotated[float | None, _about("the value as a number; null if it is not a number")]
    runs: Annotated[int, _about("the number of runs with this value")]


class FindingRecord(Struct, frozen=True):
    """One row for each finding."""

    usage: _Usage
    round: _Round
    code: Annotated[str, _about("the code, such as `BERT111`")]
    severity: Annotated[str, _about("`error`, `warning` or `note`")]
    basis: Annotated[str, _about("`both`, `official`, `rules` or `advice`")]
    set_id: Annotated[
        str | None, _about("the `id` of the result set; null if the finding is not about one")
    ]
    subject: Annotated[
        str,
        _about("the path of the result set (raw logs: its `id`), description, submission or file"),
    ]
    path: Annotated[str, _about("the first file with the finding")]
    line: Annotated[int | None, _about("the line of the file, from 1")]
    count: Annotated[int, _about("the number of occurrences")]
    message: Annotated[str, _about("the values found and expected, in words")]
    found: Annotated[str | None, _about("the first value found, as JSON")]
    expected: Annotated[str | None, _about("the first value expected, as JSON")]
    source: Annotated[str | None, _about("the document and section of the rule")]
    waived: Annotated[bool, _about("whether the finding is waived")]


_Record = TypeVar("_Record", bound=Struct)


def record(kind: type[_Record], source: object, **others: Any) -> _Record:
    """Return a record: ``others``, and the values that ``source`` has under the same names.

    Fields that neither has are null.
    """
    names = (name for name in kind.__struct_fields__ if name not in others)
    return kind(**{name: getattr(source, name, None) for name in names}, **others)


class Column(Struct, frozen=True):
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


class Table(Struct, frozen=True):
    """A table; ``meaning`` describes its rows.

    ``keys`` has constraints, and ``indexes`` the columns of other indexes, both as SQL.
    """

    name: str
    meaning: str
    columns: tuple[Column, ...]
    keys: tuple[str, ...]
    indexes: tuple[str, ...]

    @property
    def create_indexes(self) -> list[str]:
        """The statements that create the indexes."""
        return [
            f"CREATE INDEX {self.name}_by_{columns.split()[-1]} ON {self.name} ({columns})"
            for columns in self.indexes
        ]


def _table(name: str, record: type[Struct], keys: Sequence[str], *indexes: str) -> Table:
    hints = get_type_hints(record, include_extras=True)
    columns = tuple(_column(field, hints[field]) for field in record.__struct_fields__)
    return Table(name, inspect.cleandoc(record.__doc__ or ""), columns, tuple(keys), indexes)


def _column(name: str, hint: Any) -> Column:
    if get_origin(hint) is not Annotated:
        raise TypeError(f"column {name} has no description")
    of_values, meta = get_args(hint)
    types = get_args(of_values) or (of_values,)
    return Column(name, types[0], len(types) > 1, meta.extra["unit"], meta.description)


_OF_SET = "FOREIGN KEY (usage, round, set_id) REFERENCES result_sets (usage, round, id)"

TABLES: Mapping[str, Table] = {
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
        _table(
            "runs", RunRecord, ["PRIMARY KEY (usage, round, path)", _OF_SET], "usage, round, set_id"
        ),
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
            ["PRIMARY KEY (usage, round, set_id, key, value)", _OF_SET],
            "benchmark, key",
        ),
        _table("findings", FindingRecord, [_OF_SET], "usage, round, set_id", "code"),
    )
}
"""The tables by name, in order; ``evaluations`` is written only on request."""
