"""Result sets to be drawn, of simulated logs."""

from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory

from mlperf_pkg.checker.check import check
from mlperf_pkg.checker.values import Options
from mlperf_pkg.commands.charts import drawing
from mlperf_pkg.commands.charts.chart import Chart
from mlperf_pkg.commands.charts.drawing import set_charts
from mlperf_pkg.commands.charts.sets import DrawnSet
from mlperf_pkg.commands.notice import shown_results
from tests.helpers.trees import simulated, write_set

DEFECT = (
    "internal error of mlperf-pkg (ZeroDivisionError: odd);"
    " please report this error with the output of 'mlperf-pkg --debug ...'"
)


def fail(*_: object, **__: object) -> None:
    """Take the place of what prepares a chart."""
    raise ZeroDivisionError("odd")


@lru_cache
def drawn(benchmark: str = "bert", round_: str = "2.0", runs: int | None = None) -> DrawnSet:
    with TemporaryDirectory() as folder:
        logs = write_set(Path(folder), simulated(benchmark, round_=round_, runs=runs))
        checked = check([str(logs)], Options(round=round_, curves=True))
        return next(drawing.drawn_sets(checked, shown_results(checked)))


def charts(one: DrawnSet) -> dict[str, Chart]:
    return {chart.name: chart for chart in set_charts(one)}
