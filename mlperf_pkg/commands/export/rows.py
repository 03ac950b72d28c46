"""The rows of the tables: their order, and those of a check and of published results."""

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import chain
from pathlib import PurePosixPath
from typing import Any, TypeAlias, get_type_hints

from msgspec.structs import asdict, astuple, replace

from mlperf_pkg.checker.check import evaluations_of
from mlperf_pkg.checker.values import Checked, ScoredSet, scores
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
from mlperf_pkg.submission.submitters import SubmitterNames, companies

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

    ordered = {}
    for name, rows in tables.items():
        ordered[name] = sorted(_rows_with(_plain, TABLES[name], rows), key=_order)
    return ordered


def _order(row: Row) -> tuple[str, tuple[int, ...]]:
    usage, round_ = round_of(row)
    version = version_of(round_) if round_ else ()
    if usage == "training":
        return "", version
    return usage or "~", version


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
    both = {}
    for name in TABLES:
        kept = [row for row in old.get(name, ()) if round_of(row) not in replaced]
        both[name] = [*kept, *new.get(name, ())]
    return in_order(both)


def common_rounds(old: Rows, new: Rows) -> str:
    """Return the common rounds as text, which may be empty."""
    common = sorted(_rounds(old) & _rounds(new))
    return ", ".join(" ".join(map(str, usage_and_round)) for usage_and_round in common)


def _rounds(rows: Rows) -> set[Row]:
    rounds = set()
    for row in chain.from_iterable(rows.values()):
        usage, round_ = round_of(row)
        if round_ is not None:
            rounds.add((usage, round_))
    return rounds


def iso(time: datetime) -> str:
    """Return a time as ISO 8601 text, which SQLite's date functions can read."""
    return time.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _divisions(written: str | None) -> dict[str, str | None]:
    """Return a division as it is written, and as the rules spell it, None if they lack it."""
    division: str | None = known_division(written)
    if division not in DIVISIONS:
        division = None
    return {"division": written, "division_by_rules": division}


def _verdict(verdict: Verdicts) -> dict[str, str]:
    return {f"verdict_{basis}": value for basis, value in asdict(verdict).items()}


def number_of(value: str) -> float | None:
    """Return the number that a JSON text is, None if it is another value."""
    try:
        return to_finite(json.loads(value))
    except (ValueError, RecursionError):
        return None


# ---- the rows of a check ------------------------------------------------------------------


def rows_of(checked: Checked) -> Rows:
    """Return the rows of a check; ``evaluations`` requires its option ``curves``."""
    check = _CheckRows(checked)
    return in_order(
        {
            "systems": check.systems(),
            "result_sets": check.result_sets(),
            "runs": check.runs(),
            "evaluations": check.evaluations(),
            "settings": check.settings(),
            "findings": check.findings(),
        }
    )


class _CheckRows:
    """The rows of a check, and what they have in common: keys of sets, rounds, texts of paths."""

    def __init__(self, checked: Checked) -> None:
        self._checked = checked
        self._report = checked.report
        self._rounds = _Rounds(checked)
        self._set_keys = _set_keys(checked.contexts)
        self._scored_sets = scores(checked).sets
        run_paths = [run.path for run in checked.runs]
        system_paths = [system.path for system in checked.systems]
        self._texts = _texts([*run_paths, *system_paths])

    def systems(self) -> Iterable[Row]:
        """Return a row for each description, which may be read twice: for raw logs, too."""
        rows: dict[Row, Row] = {}
        for system, system_row in zip(self._checked.systems, self._report.systems, strict=True):
            text = self._texts[system.path]
            key = (*self._rounds.of_system(system), text)
            rows[key] = _system(system, system_row.verdict, self._rounds, text)
        return rows.values()

    def result_sets(self) -> Iterator[Row]:
        """Yield a row for each result set."""
        contexts = self._checked.contexts
        for set_row, context in zip(self._report.result_sets, contexts, strict=True):
            yield _result_set(set_row, self._set_keys[set_row.id], context, self._texts)

    def runs(self) -> Iterator[Row]:
        """Yield a row for each run of a result set."""
        for scored, run_row, run in self._runs_of_sets():
            key = self._set_keys[scored.row.id]
            yield _run(run_row, (*key, scored.row.path), self._texts[run.path])

    def evaluations(self) -> Iterator[Row]:
        """Yield a row for each evaluation of a run of a result set."""
        for scored, _, run in self._runs_of_sets():
            usage, round_, _ = self._set_keys[scored.row.id]
            yield from _evaluations(run, (usage, round_, self._texts[run.path]))

    def settings(self) -> Iterator[Row]:
        """Yield a row for each value of a hyperparameter of a result set."""
        for context in self._checked.contexts:
            yield from _settings(context, self._set_keys[context.id])

    def findings(self) -> Iterator[Row]:
        """Yield a row for each finding."""
        for finding in self._report.findings:
            yield _finding(finding, self._rounds, self._set_keys)

    def _runs_of_sets(self) -> Iterator[tuple[ScoredSet, RunRow, Run]]:
        runs = {run.path: run for run in self._checked.runs}
        for scored in self._scored_sets:
            for run_row in scored.runs:
                yield scored, run_row, runs[run_row.label]


def _set_keys(contexts: Sequence[SetContext]) -> dict[str, _SetKey]:
    """Return the key of each result set by its id in the report.

    That id may end with ``@<round>``; the key has the round as its own part.
    """
    times = Counter[_SetKey]()
    for context in contexts:
        for name in {context.identity, context.id}:
            times[context.round.usage, context.round.name, name] += 1
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

    ``submitters`` are those of the result sets, else of the submission, by the path of the system
    description.
    """

    def __init__(self, checked: Checked) -> None:
        self._by_path: dict[str, _AnyRound] = {}
        self._by_system: dict[int, _AnyRound] = {}
        self.submitters: dict[str, str | None] = {}
        for system in checked.systems:
            submission = checked.submission_of(system.path)
            self.submitters[system.path] = submission.name if submission else None
        for run in checked.runs:
            self._by_path[run.path] = (run.usage, run.round)
        for context in checked.contexts:
            self._add(context)
        report = checked.report
        self._only: _AnyRound = (None, None)
        if report.round:
            self._only = (report.usage, report.round)

    def _add(self, context: SetContext) -> None:
        round_ = (context.round.usage, context.round.name)
        if context.system:
            self._by_path[context.system.path] = round_
            self.submitters[context.system.path] = context.submitter
        for system in context.systems.every:
            self._by_system[id(system)] = round_
        for folder in _with_parents(context.path):
            self._by_path.setdefault(folder, round_)

    def of_system(self, system: SystemFile) -> _AnyRound:
        """Return the usage and round that a system was checked for, or those of its folder."""
        return self._by_system.get(id(system)) or self.of(system.path)

    def of(self, path: str) -> _AnyRound:
        """Return the usage and round of a file or folder, None where they are unknown."""
        for place in _with_parents(path):
            if place in self._by_path:
                return self._by_path[place]
        return self._only


def _with_parents(path: str) -> list[str]:
    """Return a path and the folders that it is in, the nearest first."""
    return [path, *map(str, PurePosixPath(path).parents)]


def _system(system: SystemFile, verdict: Verdicts, rounds: _Rounds, path: str) -> Row:
    fields = system.contents or {}
    submitter = rounds.submitters[system.path] or system.submitter
    usage, round_ = rounds.of_system(system)
    return schema.row(
        schema.SystemRecord,
        system,
        usage=usage,
        round=round_,
        submitter=submitter,
        id=system.id,
        path=path,
        **_divisions(system.division),
        status=system.status,
        status_by_rules=category(system.status or ""),
        accelerators_per_node=whole_number(fields.get("accelerators_per_node")),
        accelerator_model=_text(fields.get("accelerator_model_name")),
        host_processor=_text(fields.get("host_processor_model_name")),
        framework=_text(fields.get("framework")),
        **_verdict(verdict),
    )


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _result_set(
    row: ResultSetRow, key: _SetKey, context: SetContext, texts: Mapping[str, str]
) -> Row:
    system = context.system
    rcp = row.rcp
    return schema.row(
        schema.ResultSetRecord,
        row,
        *key,
        **_divisions(row.division),
        companies="+".join(row.companies) or None,
        system_path=texts[system.path] if system else None,
        rcp_official_pass=rcp.official_pass if rcp else None,
        rcp_margin_percent=rcp.margin_percent if rcp else None,
        global_batch_size=batch_size_of(context.runs),
        **_verdict(row.verdict),
    )


def _run(row: RunRow, first: Row, path: str) -> Row:
    return schema.row(
        schema.RunRecord,
        row,
        *first,
        path=path,
        **_divisions(row.division),
        **_verdict(row.verdict),
    )


def _evaluations(run: Run, first: Row) -> Iterator[Row]:
    """Yield one row per line and metric; if names of metrics are equal, the last one counts."""
    by_line_and_metric = {}
    for evaluation in evaluations_of(run):
        metric = visible(evaluation.metric)
        by_line_and_metric[evaluation.line, metric] = replace(evaluation, metric=metric)
    for evaluation in by_line_and_metric.values():
        yield (*first, *astuple(evaluation))


def _settings(context: SetContext, key: _SetKey) -> Iterator[Row]:
    runs_with = Counter[tuple[str, str]]()
    for run in context.runs:
        for name, value in run.hyperparameters.items():
            runs_with[visible(name), value] += 1
    for (name, value), runs in sorted(runs_with.items()):
        of_set = (*key, context.path, context.files.benchmark)
        yield (*of_set, name, value, number_of(value), runs)


def _finding(finding: Finding, rounds: _Rounds, set_keys: Mapping[str, _SetKey]) -> Row:
    set_key = set_keys.get(finding.set or "")
    usage, round_ = set_key[:2] if set_key else rounds.of(finding.about)
    set_id = set_key[2] if set_key else None
    is_of_raw_set = finding.subject is not None and finding.subject == finding.set
    waiver = finding.waiver
    return schema.row(
        schema.FindingRecord,
        finding,
        usage=usage,
        round=round_,
        set=set_id,
        subject=set_id if is_of_raw_set and set_id else finding.subject,
        message=finding.text,
        found=_json(finding.found),
        expected=_json(finding.expected),
        waiver_reason=waiver.reason if waiver else None,
        waiver_approved_by=waiver.approved_by if waiver else None,
        waiver_until=waiver.until if waiver else None,
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
    _refuse_unknown(names, existing)
    chosen = existing if _ALL in names else names
    sets = [published for published in results.sets if published.runs and published.round in chosen]
    # One set for each system: the last one.
    by_system = {(row.usage, row.round, _system_path(row)): row for row in sets}
    return in_order(
        {
            "systems": map(_published_system, by_system.values()),
            "result_sets": map(_published_set, sets, published_companies(sets)),
            "settings": _published_settings(results, sets, chosen),
        }
    )


def _refuse_unknown(names: Sequence[str], existing: Sequence[str]) -> None:
    """Refuse a name that is not that of a round.

    Raises:
        UserError: it is one.
    """
    for name in names:
        if name not in (_ALL, *existing):
            suggestion = did_you_mean(name, [*existing, _ALL])
            rounds = ", ".join(existing)
            raise UserError(
                f"--published {name}: no such round{suggestion} (expected {rounds} or all)"
            )


def _system_path(published: PublishedSet) -> str:
    return f"{published.path.partition('/results/')[0]}/systems/{published.system}.json"


def _published_system(published: PublishedSet) -> Row:
    return schema.row(
        schema.SystemRecord,
        published,
        id=published.system,
        path=_system_path(published),
        **_divisions(published.division or None),
        status=published.status or None,
        status_by_rules=category(published.status),
        system_name=published.system_name or None,
        accelerator_model=published.accelerator_model or None,
        host_processor=published.host_processor or None,
        framework=published.framework or None,
    )


def _id(published: PublishedSet) -> str:
    return set_id(
        published.submitter,
        published.system,
        published.benchmark,
        published.division,
        published.scaling,
    )


def published_companies(sets: Sequence[PublishedSet]) -> list[str]:
    """Return the companies of each set, ``A+B`` of a joint one; the record knows the folders."""
    folders: dict[_AnyRound, set[SubmitterNames]] = {}
    for published in sets:
        names = folders.setdefault((published.usage, published.round), set())
        names.add(SubmitterNames(published.submitter))
    of_round = {round_: companies(names) for round_, names in folders.items()}
    of_sets = []
    for published in sets:
        of_folder = of_round[published.usage, published.round]
        of_sets.append("+".join(of_folder[SubmitterNames(published.submitter)]))
    return of_sets


def _published_set(published: PublishedSet, of_set: str) -> Row:
    scaled = published.score_minutes
    unscaled = published.unscaled_minutes
    return schema.row(
        schema.ResultSetRecord,
        published,
        id=_id(published),
        companies=of_set,
        **_divisions(published.division or None),
        system_path=_system_path(published),
        runs_found=published.runs,
        scaling_factor=scaled / unscaled if scaled is not None and unscaled else None,
    )


def _published_settings(
    results: PublishedResults, sets: Sequence[PublishedSet], rounds: Sequence[str]
) -> Iterator[Row]:
    """Yield the hyperparameters of the result sets of rounds, benchmark by benchmark."""
    for benchmark in sorted({published.benchmark for published in sets}):
        for setting in results.settings(benchmark):
            published = results.sets[setting.set]
            if published.round in rounds:
                yield _published_setting(setting, published)


def _published_setting(setting: Setting, published: PublishedSet) -> Row:
    of_set = (
        published.usage,
        published.round,
        _id(published),
        published.path,
        published.benchmark,
    )
    return (*of_set, setting.key, setting.value, number_of(setting.value), setting.runs)


# ---- an export as published sets ----------------------------------------------------------

_HINTS = get_type_hints(PublishedSet)
_LACKING = {name: "" if hint is str else None for name, hint in _HINTS.items()}
"""The fields of a published set, as they are if the description lacks them."""


def exported_sets(rows: Rows) -> Iterator[PublishedSet]:
    """Yield the result sets of an export that have a round, with their systems."""
    systems = {}
    for system in _records("systems", rows):
        systems[system["usage"], system["round"], system["path"]] = system
    for result_set in _records("result_sets", rows):
        usage = result_set["usage"]
        round_ = result_set["round"]
        if usage and round_:
            system = systems.get((usage, round_, result_set["system_path"]), {})
            yield _published(result_set, system)


def _records(table: str, rows: Rows) -> Iterator[dict[str, Any]]:
    """Yield the rows of a table as values by the names of its columns."""
    names = [column.name for column in TABLES[table].columns]
    for row in rows[table]:
        yield dict(zip(names, row, strict=True))


def _published(result_set: dict[str, Any], system: dict[str, Any]) -> PublishedSet:
    path = result_set["path"]
    is_of_raw_logs = not set_name(path)
    values = {
        **system,
        **result_set,
        "path": result_set["id"] if is_of_raw_logs else path,
        "runs": result_set["runs_found"],
    }
    fields: dict[str, Any] = dict(_LACKING)
    for name in _LACKING:
        value = values.get(name)
        if value is not None:
            fields[name] = value
    return PublishedSet(**fields)
