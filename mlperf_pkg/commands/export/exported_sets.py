"""The result sets of an export, as if they were published."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mlperf_pkg.commands.export.rows import Row, Rows
from mlperf_pkg.commands.export.schema import TABLES
from mlperf_pkg.published.model import PublishedSet
from mlperf_pkg.submission.model import set_name


def exported_sets(rows: Rows) -> Iterator[PublishedSet]:
    """Yield the result sets of an export that have a round, with their systems."""
    systems = {
        (fields["usage"], fields["round"], fields["path"]): fields
        for fields in map(_named("systems"), rows["systems"])
    }
    for fields in map(_named("result_sets"), rows["result_sets"]):
        if fields["usage"] and fields["round"]:
            key = (fields["usage"], fields["round"], fields["system_path"])
            yield _published(fields, systems.get(key, {}))


def _named(table: str) -> Any:
    names = [column.name for column in TABLES[table].columns]

    def named(row: Row) -> dict[str, Any]:
        return dict(zip(names, row, strict=True))

    return named


def _published(fields: dict[str, Any], system: dict[str, Any]) -> PublishedSet:
    return PublishedSet(
        usage=fields["usage"],
        round=fields["round"],
        submitter=fields["submitter"] or "",
        system=fields["system"] or "",
        benchmark=fields["benchmark"],
        division=fields["division_written"] or "",
        path=fields["path"] if set_name(fields["path"]) else fields["id"],  # of raw logs
        status=system.get("status_written") or "",
        system_name=system.get("system_name") or "",
        accelerators=system.get("accelerators"),
        accelerator_model=system.get("accelerator_model") or "",
        accelerators_per_node=system.get("accelerators_per_node"),
        nodes=system.get("nodes"),
        host_processor=system.get("host_processor") or "",
        framework=system.get("framework") or "",
        global_batch_size=fields["global_batch_size"],
        runs=fields["runs"],
        score_minutes=fields["score_minutes"],
        unscaled_minutes=fields["unscaled_minutes"],
        official_minutes=fields["official_minutes"],
        energy_joules=fields["energy"],
    )
