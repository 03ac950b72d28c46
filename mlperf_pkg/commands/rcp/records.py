"""The records of reference points, as mlperf-logging and other files have them."""

import json
import math
from pathlib import Path
from typing import Annotated, Any, NoReturn

import msgspec
from msgspec import Meta, Struct

from mlperf_pkg.errors import UserError
from mlperf_pkg.infra.json_values import MAX_BYTES
from mlperf_pkg.infra.paths import read_file
from mlperf_pkg.infra.text import visible
from mlperf_pkg.rulebook.model import Round


class PointRecord(Struct, frozen=True):
    """A point as its file has it, as far as it is used."""

    benchmark: str = msgspec.field(name="Benchmark")
    batch_size: Annotated[float, Meta(gt=0)] = msgspec.field(name="BS")
    epochs: Annotated[list[float], Meta(min_length=1)] | None = msgspec.field(
        name="Epochs to converge", default=None
    )
    samples: Annotated[list[float], Meta(min_length=1)] | None = msgspec.field(
        name="samples to converge", default=None
    )
    hyperparameters: dict[str, Any] | None = msgspec.field(name="Hyperparams", default=None)

    @property
    def to_converge(self) -> list[float]:
        """The epochs or samples of each run, in the unit of the file."""
        return self.samples or self.epochs or []


def points_folder(folder: Path, round_: Round) -> Path:
    """Return the folder of an mlperf-logging with the points of a round, which need not exist."""
    return folder / "rcp_checker" / f"{round_.usage}_{round_.ruleset}"


def read_points(path: Path) -> dict[str, PointRecord]:
    """Return the points of a file by name.

    Raises:
        UserError: it cannot be read, or holds something else.
    """
    file = visible(str(path))
    try:
        if not path.is_file():
            raise UserError(f"{file}: not a file")
        document = json.loads(
            read_file(path, MAX_BYTES).decode("utf-8"),
            object_pairs_hook=_unique,
            parse_constant=_refuse,
        )
        records = msgspec.convert(document, dict[str, PointRecord])
    except RecursionError as error:
        raise UserError(f"{file}: the JSON is nested too deeply") from error
    except OSError as error:
        raise UserError(f"{file}: {error.strerror}") from error
    except ValueError as error:  # of JSON, UTF-8 and msgspec
        raise UserError(f"{file}: no valid reference points ({visible(str(error))})") from error
    for point, record in records.items():
        numbers = record.batch_size, *record.to_converge
        if not record.to_converge or not all(map(math.isfinite, numbers)):
            problem = "has no finite numbers of epochs or samples to converge"
            raise UserError(f"{file}: the point {visible(point)} {problem}")
    return records


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return a JSON object as a mapping.

    Raises:
        ValueError: a name is in it twice, so that one of its values would be ignored.
    """
    mapping = dict(pairs)
    if len(mapping) < len(pairs):
        names = [name for name, _ in pairs]
        repeated = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"{repeated!r} is given twice")
    return mapping


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not a number of JSON")
