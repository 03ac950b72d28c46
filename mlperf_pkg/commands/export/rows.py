"""The rows of the tables: their order, and those of a check and of published results."""

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import chain
from pathlib import PurePosixPath
from typing import Any, TypeAlias, get_type_hints

from msgspec.structs import asdict, astuple, replace

from mlperf_pkg.checker.check import evaluations_of
from mlperf_pkg.checker.values import Checked, scores
from mlperf_pkg.checks.context import SetContext
from mlperf_pkg.checks.descriptions import SystemFile, batch_size_of, category, whole_number
from mlperf_pkg.commands.export import schema
from mlperf_pkg.commands.export.schema import LONGEST, MOST_ROWS, MOST_TEXT, TABLES, ExportTable
from mlperf_pkg.errors import UserError
from mlperf_pkg.findings import Finding, Verdicts
from mlperf_pkg.infra.json_values import to_finite
from mlperf_pkg.infra.text import did_you_mean, unused, visible
from mlperf_pkg.published.model import PublishedSet, Setting, known_division
from mlperf_pkg.published.results import PublishedResults
from mlperf_pkg.results.report import ResultSetRow, RunRow, as_json
from mlperf_pkg.rulebook.model import DIVISIONS, is_round_name, version_of
from mlperf_pkg.run.model import Run
from mlperf_pkg.submission.membership import set_id
from mlperf_pkg.submission.model import set_name

Row: TypeAlias = tuple[Any, ...]
Rows: TypeAlias = Mapping[str, Sequence[Row]]
"""The rows of some tables by name, each with a value for every column."""

_AnyRound: TypeAlias = tuple[str | None, str | None]
"""A usage and a round, where they are known."""

_SetKey: TypeAlias = tuple[str, str, str]
"""The usage, the round and the id of a result set, which is unique in that round."""

_LARGEST = 2**63  # integers of a database are smaller


# ---- all rows -----------------------------------------------------------------------------


def in_order(tables: Mapping[str, Iterable[Row]]) -> Rows:
    """Return rows sorted by usage and round, with values that all formats support.

    Training comes before HPC, and older rounds come first.

    Raises:
        UserError: a table has more rows or text than an export may have.
    """

    def order(row: Row) -> tuple[str, tuple[int, ...]]:
        usage, round_ = round_of(row)
        return ("" if usage == "training" else usage or "~", version_of(round_) if round_ else ())

    return {
        name: sorted(_rows_with(_plain, TABLES[name], rows), key=order)
        for name, rows in tables.items()
    }


def round_of(row: Row) -> Row:
    """Return the usage and round of a row: the first two columns of all tables."""
    return row[:2]


def accepted(table: ExportTable, rows: Iterable[Row]) -> list[Row]:
    """Return rows that were read from a file, if they are such as ``in_order`` returns.

    Raises:
        ValueError: a value or a round is another one.
        UserError: there are more rows, or there is more text, than an export may have.
    """
    read = _rows_with(_same, table, rows)
    for name in {row[1] for row in read}:
        if name is not None and not is_round_name(name):
            raise ValueError(f"{name!r:.80} is not the name of a round")
    return read


def _rows_with(
    value_of: Callable[[type, Any], Any], table: ExportTable, rows: Iterable[Row]
) -> list[Row]:
    """Return rows of other values; equal strings are one object."""
    made: list[Row] = []
    texts: dict[str, str] = {}
    room = MOST_TEXT
    for row in rows:
        cells = []
        for value, column in zip(row, table.columns, strict=True):
            cell = texts.get(value) if column.type is str else None
            if cell is None and value is not None:
                cell = value_of(column.type, value)
                if column.type is str:
                    texts[value] = cell
                    room -= len(cell)
            if cell is None and not column.nullable:
                raise ValueError(f"{table.name}.{column.name} has no value")
            cells.append(cell)
        made.append(tuple(cells))
        if len(made) > MOST_ROWS or room < 0:
            limits = f"{MOST_ROWS:,} rows and {MOST_TEXT:,} characters"
            raise UserError(f"{table.name} is larger than a table of an export: {limits}")
    return made


def _plain(type_: type, value: Any) -> Any:
    """Return a value in a type that all formats support, None if it is not such a value."""
    return _PLAIN[type_](value)


def _same(type_: type, value: Any) -> Any:
    if type(value) is not type_ or _plain(type_, value) != value:
        raise ValueError(f"{ascii(value)[:80]} is not a value of an export")
    return value


def _shortened(value: str) -> str:
    text = visible(value)
    if len(text) <= LONGEST:
        return text
    digest = hashlib.sha256(text.encode()).hexdigest()[:16]  # strings may be keys
    return f"{text[: LONGEST - 20]}... {digest}"


_PLAIN: Mapping[type, Callable[[Any], Any]] = {
    str: _shortened,
    int: lambda value: None if abs(value) >= _LARGEST else value,
    float: to_finite,
    bool: lambda value: value,
    datetime: lambda value: value if value.utcoffset() == timedelta(0) else None,
}


def merged(old: Rows, new: Rows) -> Rows:
    """Return the sorted rows of both; rounds of ``new`` replace those of ``old``."""
    replaced = _rounds(new)
    kept = {
        name: [row for row in old.get(name, ()) if round_of(row) not in replaced] for name in TABLES
    }
    return in_order({name: [*rows, *new.get(name, ())] for name, rows in kept.items()})


def common_rounds(old: Rows, new: Rows) -> str:
    """Return the common rounds as text, which may be empty."""
    return ", ".join(" ".join(map(str, key)) for key in sorted(_rounds(old) & _rounds(new)))


def _rounds(rows: Rows) -> set[Row]:
    return {round_of(row) for row in chain.from_iterable(rows.values()) if row[1] is not None}


def iso(time: datetime) -> str:
    """Return a time as ISO 8601 text, which SQLite's date functions can read."""
    return time.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _divisions(written: str | None) -> dict[str, str | None]:
    """Return a division as the rules spell it, None if they lack it; and as it is written."""
    division = known_division(written)
    return {"division": division if division in DIVISIONS else None, "division_written": written}


def number_of(value: str) -> float | None:
    """Return the number that a JSON text is, None if it is another value."""
    try:
        return to_finite(json.loads(value))
    except (ValueError, RecursionError):
        return None


# ---- the rows of a check ------------------------------------------------------------------


def rows_of(checked: Checked) -> Rows:
    """Return the rows of a check; ``evaluations`` requires its option ``curves``."""
    rounds = _Rounds(checked)
    keys = _keys(checked.contexts)
    runs = {run.path: run for run in checked.runs}
    paths = _texts(chain(runs, (system.path for system in checked.systems)))
    in_sets = [
        (row, runs[row.path], (*keys[scored.row.id], scored.row.path, paths[row.path]))
        for scored in scores(checked).sets
        for row in scored.runs
    ]
    systems = {  # a description may be read twice: for a submission and for its raw logs
        (*rounds.of_system(system), paths[system.path]): _system(
            system, row.verdict, rounds, paths[system.path]
        )
        for system, row in zip(checked.systems, checked.report.systems, strict=True)
    }
    return in_order(
        {
            "systems": systems.values(),
            "result_sets": [
                _result_set(row, keys[row.id], context, paths)
                for row, context in zip(checked.report.result_sets, checked.contexts, strict=True)
            ],
            "runs": [_run(*in_set) for in_set in in_sets],
            "evaluations": chain.from_iterable(
                _evaluations(run, (*round_of(first), first[-1])) for _, run, first in in_sets
            ),
            "settings": chain.from_iterable(_settings(c, keys[c.id]) for c in checked.contexts),
            "findings": [_finding(finding, rounds, keys) for finding in checked.report.findings],
        }
    )


def _keys(contexts: Sequence[SetContext]) -> dict[str, _SetKey]:
    """Return the key of each result set by its id in the report.

    That id may end with ``@<round>``; the key has the round as its own part.
    """
    names = ((c.round.usage, c.round.name, name) for c in contexts for name in {c.identity, c.id})
    times = Counter(names)
    keys = {}
    for context in contexts:
        usage = context.round.usage
        round_ = context.round.name
        key = (usage, round_, context.identity)
        keys[context.id] = key if times[key] == 1 else (usage, round_, context.id)
    return keys


def _texts(paths: Iterable[str]) -> dict[str, str]:
    """Return the escaped text of each path, numbered if another path has the same text."""
    by_text: dict[str, str] = {}
    for path in sorted(set(paths)):
        by_text[unused(visible(path), by_text, "@")] = path
    return {path: text for text, path in by_text.items()}


class _Rounds:
    """The rounds of files: those of the result sets in the nearest folder that has result sets.

    ``submitters`` are those of the result sets, by the path of their system description.
    """

    def __init__(self, checked: Checked) -> None:
        report = checked.report
        self._by_folder: dict[str, _AnyRound] = {r.path: (r.usage, r.round) for r in checked.runs}
        self._by_system: dict[int, _AnyRound] = {}
        self.submitters: dict[str, str | None] = {}
        for context in checked.contexts:
            round_ = (context.round.usage, context.round.name)
            system = context.system
            if system:
                self._by_folder[system.path] = round_
                self.submitters[system.path] = context.submitter
            self._by_system.update((id(system), round_) for system in context.systems)
            for folder in (context.path, *map(str, PurePosixPath(context.path).parents)):
                self._by_folder.setdefault(folder, round_)
        self._only = (report.usage, report.round) if report.round else (None, None)

    def of_system(self, system: SystemFile) -> _AnyRound:
        """Return the usage and round that a system was checked for, or those of its folder."""
        return self._by_system.get(id(system)) or self.of(system.path)

    def of(self, path: str) -> _AnyRound:
        """Return the usage and round of a file or folder, None where they are unknown."""
        folders = (path, *map(str, PurePosixPath(path).parents))
        return next((self._by_folder[f] for f in folders if f in self._by_folder), self._only)


def _system(system: SystemFile, verdict: Verdicts, rounds: _Rounds, text: str) -> Row:
    fields = system.contents or {}
    folder = system.path.rpartition("/systems/")[0].rpartition("/")[2]
    submitter = rounds.submitters.get(system.path) or folder or system.submitter
    return schema.row(
        schema.SystemRecord,
        system,
        *(*rounds.of_system(system), submitter, system.id, text),
        **_divisions(system.division),
        status=category(system.status or ""),
        status_written=system.status,
        accelerators_per_node=whole_number(fields.get("accelerators_per_node")),
        accelerator_model=_text(fields.get("accelerator_model_name")),
        host_processor=_text(fields.get("host_processor_model_name")),
        framework=_text(fields.get("framework")),
        **asdict(verdict),
    )


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _result_set(
    row: ResultSetRow, key: _SetKey, context: SetContext, paths: Mapping[str, str]
) -> Row:
    return schema.row(
        schema.ResultSetRecord,
        row,
        *key,
        **_divisions(row.division),
        system_path=paths[context.system.path] if context.system else None,
        runs=row.runs_found,
        rcp_pass=row.rcp.official_pass if row.rcp else None,
        rcp_margin=row.rcp.margin_percent if row.rcp else None,
        global_batch_size=batch_size_of(context.runs),
        energy=row.energy_joules,
        models=row.number_of_models,
        **asdict(row.verdict),
    )


def _run(row: RunRow, run: Run, first: Row) -> Row:
    return schema.row(
        schema.RunRecord,
        row,
        *first,
        **_divisions(row.division),
        start=_time(run.start_ms),
        to_converge=row.samples_to_converge,
        **asdict(row.verdict),
    )


def _time(milliseconds: float | None) -> datetime | None:
    """Return a time in milliseconds since the epoch; None outside of the calendar."""
    if milliseconds is None:
        return None
    try:
        time = datetime.fromtimestamp(milliseconds / 1000, UTC)
    except (ValueError, OverflowError, OSError):
        return None
    return time.replace(microsecond=time.microsecond // 1000 * 1000)


def _evaluations(run: Run, first: Row) -> Iterator[Row]:
    """Yield one row per line and metric; if names of metrics are equal, the last one counts."""
    records = {(item.line, visible(item.metric)): item for item in evaluations_of(run)}
    for (_, metric), evaluation in records.items():
        yield (*first, *astuple(replace(evaluation, metric=metric)))


def _settings(context: SetContext, key: _SetKey) -> Iterator[Row]:
    values = (pair for run in context.runs for pair in run.hyperparameters.items())
    counts = Counter((visible(name), value) for name, value in values)
    for (name, value), runs in sorted(counts.items()):
        of_set = (*key, context.path, context.files.benchmark)
        yield (*of_set, name, value, number_of(value), runs)


def _finding(finding: Finding, rounds: _Rounds, keys: Mapping[str, _SetKey]) -> Row:
    *round_, set_id = keys.get(finding.set or "") or (*rounds.of(finding.about), None)
    is_raw = finding.subject is not None and finding.subject == finding.set
    return schema.row(
        schema.FindingRecord,
        finding,
        *round_,
        set_id=set_id,
        subject=set_id if is_raw and set_id else finding.about,
        message=finding.text,
        found=_json(finding.found),
        expected=_json(finding.expected),
        waived=finding.waiver is not None,
    )


def _json(value: Any) -> str | None:
    return None if value is None else json.dumps(as_json(value), ensure_ascii=False)


# ---- published results as rows, and rows as if they were published ------------------------

_ALL = "all"


def rows_of_published(results: PublishedResults, names: Sequence[str] = (_ALL,)) -> Rows:
    """Return the rows of the published results: systems, result sets and settings.

    ``names`` are those of rounds; ``all`` means every round.

    Raises:
        UserError: there is no such round.
    """
    existing = list(dict.fromkeys(round_.name for round_ in results.provenance.rounds))
    unknown = next((name for name in names if name not in (_ALL, *existing)), None)
    if unknown:
        suggestion = did_you_mean(unknown, [*existing, _ALL])
        raise UserError(
            f"--published {unknown}: no such round{suggestion} (of {', '.join(existing)}, all)"
        )
    chosen = existing if _ALL in names else names
    sets = [published for published in results.sets if published.runs and published.round in chosen]
    systems = {(of.usage, of.round, _system_path(of)): of for of in sets}
    benchmarks = sorted({published.benchmark for published in sets})
    return in_order(
        {
            "systems": map(_published_system, systems.values()),
            "result_sets": map(_published_set, sets),
            "settings": [
                _published_setting(setting, results.sets[setting.set])
                for benchmark in benchmarks
                for setting in results.settings(benchmark)
                if results.sets[setting.set].round in chosen
            ],
        }
    )


def _system_path(published: PublishedSet) -> str:
    return f"{published.path.partition('/results/')[0]}/systems/{published.system}.json"


def _published_system(of_system: PublishedSet) -> Row:
    texts = ("system_name", "accelerator_model", "host_processor", "framework")
    return schema.row(
        schema.SystemRecord,
        of_system,
        path=_system_path(of_system),
        **_divisions(of_system.division or None),
        status=category(of_system.status),
        status_written=of_system.status or None,
        **{name: getattr(of_system, name) or None for name in texts},
    )


def _id(of: PublishedSet) -> str:
    return set_id(of.submitter, of.system, of.benchmark, of.division, of.scaling)


def _published_set(published: PublishedSet) -> Row:
    scaled = published.score_minutes
    unscaled = published.unscaled_minutes
    return schema.row(
        schema.ResultSetRecord,
        published,
        id=_id(published),
        **_divisions(published.division or None),
        system_path=_system_path(published),
        scaling_factor=scaled / unscaled if scaled is not None and unscaled else None,
        energy=published.energy_joules,
    )


def _published_setting(setting: Setting, of: PublishedSet) -> Row:
    of_set = (of.usage, of.round, _id(of), of.path, of.benchmark)
    return (*of_set, setting.key, setting.value, number_of(setting.value), setting.runs)


# ---- an export as published sets ----------------------------------------------------------

_LACKING = {n: "" if hint is str else None for n, hint in get_type_hints(PublishedSet).items()}
"""The fields of a published set, as they are if the description lacks them."""


def exported_sets(rows: Rows) -> Iterator[PublishedSet]:
    """Yield the result sets of an export that have a round, with their systems."""
    systems = {(s["usage"], s["round"], s["path"]): s for s in _named("systems", rows)}
    for fields in _named("result_sets", rows):
        if fields["usage"] and fields["round"]:
            key = (fields["usage"], fields["round"], fields["system_path"])
            yield _published(fields, systems.get(key, {}))


def _named(table: str, rows: Rows) -> Iterator[dict[str, Any]]:
    names = [column.name for column in TABLES[table].columns]
    return (dict(zip(names, row, strict=True)) for row in rows[table])


def _published(fields: dict[str, Any], system: dict[str, Any]) -> PublishedSet:
    values = {
        **system,
        **fields,
        "division": fields["division_written"],
        "path": fields["path"] if set_name(fields["path"]) else fields["id"],  # of raw logs
        "status": system.get("status_written"),
        "energy_joules": fields["energy"],
    }
    present = {name: value for name, value in values.items() if value is not None}
    return PublishedSet(*({**_LACKING, **present}[name] for name in _LACKING))
