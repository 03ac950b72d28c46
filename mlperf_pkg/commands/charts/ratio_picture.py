"""The ratios of a comparison as a picture for a file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from mlperf_pkg.commands.charts import prepared
from mlperf_pkg.commands.charts.comparison import comparison
from mlperf_pkg.commands.charts.pictures import PICTURES, drawn, library
from mlperf_pkg.commands.compare.model import Row
from mlperf_pkg.errors import UserError
from mlperf_pkg.infra.parallel import WorkerLostError


def ratio_picture(file: Path) -> Callable[[Sequence[Row]], bytes]:
    """Return a function that draws rows in the format of ``file``.

    Raises:
        UserError: ``file`` is neither .svg nor .png, or vl-convert-python is not installed. The
            function raises it if there is no ratio to draw.
    """
    format_ = file.suffix.lower().removeprefix(".")
    if format_ not in PICTURES:
        raise UserError(f"{file}: not a chart format; expected .svg or .png")
    library()

    def picture(rows: Sequence[Row]) -> bytes:
        charts = prepared("comparison", str(file), lambda: [comparison(rows)])
        if not charts:
            raise UserError(f"{file}: no ratio to draw")
        [picture] = drawn(charts, format_)
        if isinstance(picture, WorkerLostError):
            raise UserError(f"{file}: the chart cannot be drawn: {picture.reason}")
        return picture

    return picture
