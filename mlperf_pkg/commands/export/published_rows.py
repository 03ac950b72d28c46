"""The rows of the tables from the published results."""

from __future__ import annotations

from collections.abc import Sequence

from mlperf_pkg.checks.described import category
from mlperf_pkg.commands.export import schema
from mlperf_pkg.commands.export.rows import Rows, division_of, in_order, number_of
from mlperf_pkg.errors import UserError
from mlperf_pkg.infra.text import did_you_mean
from mlperf_pkg.published.model import PublishedSet, Setting
from mlperf_pkg.published.results import PublishedResults
from mlperf_pkg.submission.membership import set_id

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
    return schema.SystemRecord(
        usage=of_system.usage,
        round=of_system.round,
        submitter=of_system.submitter,
        system=of_system.system,
        path=_system_path(of_system),
        division=division_of(of_system.division),
        division_written=of_system.division or None,
        status=category(of_system.status),
        status_written=of_system.status or None,
        system_name=of_system.system_name or None,
        nodes=of_system.nodes,
        accelerators=of_system.accelerators,
        accelerators_per_node=of_system.accelerators_per_node,
        accelerator_model=of_system.accelerator_model or None,
        host_processor=of_system.host_processor or None,
        framework=of_system.framework or None,
        official=None,
        rules=None,
    )


def _id(of: PublishedSet) -> str:
    return set_id(of.submitter, of.system, of.benchmark, of.division, of.scaling)


def _published_set(published: PublishedSet) -> schema.ResultSetRecord:
    return schema.ResultSetRecord(
        usage=published.usage,
        round=published.round,
        id=_id(published),
        submitter=published.submitter,
        system=published.system,
        benchmark=published.benchmark,
        division=division_of(published.division),
        division_written=published.division or None,
        path=published.path,
        system_path=_system_path(published),
        runs=published.runs,
        runs_required=None,
        score_minutes=published.score_minutes,
        unscaled_minutes=published.unscaled_minutes,
        official_minutes=published.official_minutes,
        scaling_factor=_ratio(published.score_minutes, published.unscaled_minutes),
        rcp_pass=None,
        rcp_margin=None,
        global_batch_size=published.global_batch_size,
        energy=published.energy_joules,
        scaling=published.scaling,
        models=None,
        official=None,
        rules=None,
    )


def _ratio(scaled: float | None, unscaled: float | None) -> float | None:
    return scaled / unscaled if scaled is not None and unscaled else None


def _published_setting(setting: Setting, of_set: PublishedSet) -> schema.SettingRecord:
    return schema.SettingRecord(
        of_set.usage,
        of_set.round,
        _id(of_set),
        of_set.path,
        of_set.benchmark,
        setting.key,
        setting.value,
        number_of(setting.value),
        setting.runs,
    )
