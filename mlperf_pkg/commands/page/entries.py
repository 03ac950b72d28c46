"""The result sets of a page: each with its system, its settings, its price and its standing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from itertools import islice
from math import isfinite

from msgspec import Struct, field

from mlperf_pkg.checker.scores import ScoredSet, Standing, scores
from mlperf_pkg.checker.values import Checked
from mlperf_pkg.checks.context import SetContext
from mlperf_pkg.checks.described import category
from mlperf_pkg.checks.systems import SystemFile
from mlperf_pkg.commands.charts import DrawnSet
from mlperf_pkg.commands.charts.drawing import drawn_sets
from mlperf_pkg.commands.charts.scaling import Point
from mlperf_pkg.commands.compare.prices import Prices, price_of
from mlperf_pkg.commands.score.standing import with_standings
from mlperf_pkg.config import Price
from mlperf_pkg.published.model import PublishedSet, known_division
from mlperf_pkg.published.results import PublishedResultsError, published_results
from mlperf_pkg.render.text import Submitters
from mlperf_pkg.results.report import ResultSetRow

MOST_SETTINGS = 60  # hyperparameters of a result set that are shown
_MOST_VALUES = 3  # of one hyperparameter
_DESCRIPTION = {  # fields of a system description, and their titles
    "system_name": "System name",
    "status": "Status",
    "number_of_nodes": "Nodes",
    "accelerators_per_node": "Accelerators per node",
    "accelerator_model_name": "Accelerator",
    "accelerator_memory_capacity": "Accelerator memory",
    "accelerator_interconnect": "Interconnect",
    "host_processor_model_name": "Host processor",
    "host_processors_per_node": "Processors per node",
    "host_memory_capacity": "Host memory",
    "host_networking": "Network",
    "framework": "Framework",
    "operating_system": "Operating system",
}


class Entry(Struct, frozen=True):
    """A result set of a page.

    ``settings`` are its batch size and hyperparameters in words; ``system`` is None if there is no
    description, ``standing`` where it is unknown.
    """

    drawn: DrawnSet
    system: SystemFile | None = None
    settings: Mapping[str, str] = field(default_factory=dict)
    price: Price | None = None
    standing: Standing | None = None

    @property
    def row(self) -> ResultSetRow:
        """Its row in the report."""
        return self.drawn.row

    @property
    def division(self) -> str:
        """The division as the rules spell it."""
        return known_division(self.row.division)

    @property
    def accelerators(self) -> int | None:
        """The number of accelerators in the whole system."""
        return self.system.accelerators if self.system else None

    @property
    def nodes(self) -> int | None:
        """The number of nodes."""
        return self.system.nodes if self.system else None

    @property
    def accelerator(self) -> str:
        """The model of the accelerator, empty if unknown."""
        return self._text("accelerator_model_name")

    @property
    def availability(self) -> str:
        """The availability: that of the rules for any spelling, else as described."""
        status = (self.system.status if self.system else None) or ""
        return category(status) or status

    @property
    def batch_size(self) -> str:
        """The global batch size, empty if the logs have none."""
        return self.settings.get("global_batch_size", "")

    @property
    def description(self) -> Iterator[tuple[str, str]]:
        """The facts of the system description by title."""
        for name, title in _DESCRIPTION.items():
            if text := self._text(name):
                yield title, text

    def point(self, element: str) -> Point | None:
        """Return the score for charts; None if it or the number of accelerators is missing."""
        row = self.row
        minutes = row.score_minutes
        if not minutes or not isfinite(minutes) or not self.accelerators or row.scaling == "weak":
            return None
        failed = [name for name in ("official", "rules") if getattr(row.verdict, name) == "fail"]
        return Point(
            round=row.round,
            submitter=row.submitter or "",
            system=row.system or "",
            accelerator=self.accelerator,
            accelerators=self.accelerators,
            minutes=minutes,
            availability=self.availability,
            element=element,
            fails=" and ".join(failed),
        )

    def _text(self, name: str) -> str:
        value = (self.system.contents or {}).get(name, "") if self.system else ""
        return str(value).strip() if isinstance(value, str | int) else ""


def entries(checked: Checked, prices: Prices) -> tuple[Entry, ...]:
    """Return the result sets of a check with ``curves``, in the order of its report.

    Those of one submitter have their standing in the published record.
    """
    drawn = drawn_sets(checked)
    scored = _scored(checked)
    return tuple(
        Entry(
            drawn=one,
            system=context.system,
            settings=_settings(context),
            price=_price(prices, one.row, context.system),
            standing=of_record.published,
        )
        for one, context, of_record in zip(drawn, checked.contexts, scored, strict=True)
    )


def published_sets() -> tuple[PublishedSet, ...]:
    """Return the published result sets, none if they cannot be read."""
    try:
        return published_results().sets
    except PublishedResultsError:
        return ()


def _scored(checked: Checked) -> tuple[ScoredSet, ...]:
    scored = scores(checked)
    if Submitters(checked.report).number <= 1:
        with suppress(PublishedResultsError):
            scored = with_standings(scored, checked)
    return scored.sets


def _price(prices: Prices, row: ResultSetRow, system: SystemFile | None) -> Price | None:
    return price_of(prices, row.system, system.system_name if system else None)


def _settings(context: SetContext) -> dict[str, str]:
    """Return the values of all runs by key: ``1e-05``, or ``1, 2 (of 3 values)``."""
    values: dict[str, dict[str, None]] = {}
    for run in context.runs:
        sizes = [("global_batch_size", size) for size in run.batch_sizes[:1]]
        for key, value in (*sizes, *islice(run.hyperparameters.items(), MOST_SETTINGS)):
            values.setdefault(key, {})[value] = None
    return {key: _in_words(list(texts)) for key, texts in islice(values.items(), MOST_SETTINGS)}


def _in_words(values: list[str]) -> str:
    text = ", ".join(values[:_MOST_VALUES])
    return text if len(values) <= _MOST_VALUES else f"{text} (of {len(values)} values)"
