"""The published results as rows of the tables, and rows as if they were published."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from mlperf_pkg.checks.descriptions import category
from mlperf_pkg.commands.export import schema
from mlperf_pkg.commands.export.rows import Rows, division_of, in_order, number_of
from mlperf_pkg.commands.export.schema import TABLES
from mlperf_pkg.errors import UserError
from mlperf_pkg.infra.text import did_you_mean
from mlperf_pkg.published.model import PublishedSet, Setting
from mlperf_pkg.published.results import PublishedResults
from mlperf_pkg.submission.membership import set_id
from mlperf_pkg.submission.model import set_name

_ALL = "all"


def rows_of_published(results: PublishedResults, names: Sequence[str] = (_ALL,)) -> Rows:
    """Return the rows of the published results: systems, result sets and settings.

    ``names`` are those of rounds; ``all`` means every round.

    Raises:
        UserError: there is no such round.
    """
    existing = list(dict.fromkeys(round_.name for round_ in results.provenance.rounds))
    if unknown := next((name for name in names if name not in (_ALL, *existing)), None):
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
            "systems": [_published_system(of_system) for of_system in systems.values()],
            "result_sets": [_published_set(published) for published in sets],
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


def _published_system(of_system: PublishedSet) -> schema.SystemRecord:
    return schema.record(
        schema.SystemRecord,
        of_system,
        path=_system_path(of_system),
        division=division_of(of_system.division),
        division_written=of_system.division or None,
        status=category(of_system.status),
        status_written=of_system.status or None,
        system_name=of_system.system_name or None,
        accelerator_model=of_system.accelerator_model or None,
        host_processor=of_system.host_processor or None,
        framework=of_system.framework or None,
    )


def _id(of: PublishedSet) -> str:
    return set_id(of.submitter, of.system, of.benchmark, of.division, of.scaling)


def _published_set(published: PublishedSet) -> schema.ResultSetRecord:
    scaled, unscaled = published.score_minutes, published.unscaled_minutes
    return schema.record(
        schema.ResultSetRecord,
        published,
        id=_id(published),
        division=division_of(published.division),
        division_written=published.division or None,
        system_path=_system_path(published),
        scaling_factor=scaled / unscaled if scaled is not None and unscaled else None,
        energy=published.energy_joules,
    )


def _published_setting(setting: Setting, of_set: PublishedSet) -> schema.SettingRecord:
    return schema.record(
        schema.SettingRecord,
        setting,
        usage=of_set.usage,
        round=of_set.round,
        set_id=_id(of_set),
        set_path=of_set.path,
        benchmark=of_set.benchmark,
        number=number_of(setting.value),
    )


# ---- an export as published sets ----------------------------------------------------------


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
    numbers = ("accelerators", "accelerators_per_node", "nodes")
    texts = ("system_name", "accelerator_model", "host_processor", "framework")
    same = ("usage", "round", "benchmark", "global_batch_size", "runs")
    scores = ("score_minutes", "unscaled_minutes", "official_minutes")
    values: dict[str, Any] = {name: fields[name] for name in (*same, *scores)}
    values |= {name: system.get(name) for name in numbers}
    values |= {name: system.get(name) or "" for name in texts}
    return PublishedSet(
        submitter=fields["submitter"] or "",
        system=fields["system"] or "",
        division=fields["division_written"] or "",
        path=fields["path"] if set_name(fields["path"]) else fields["id"],  # of raw logs
        status=system.get("status_written") or "",
        energy_joules=fields["energy"],
        **values,
    )
