"""Reports against the schema of the JSON report."""

import json
from functools import cache
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator

from mlperf_pkg.checker.check import check
from mlperf_pkg.checker.values import Options
from mlperf_pkg.infra.resources import data_folder
from mlperf_pkg.render import FORMATS, View
from mlperf_pkg.results.report import Report


@cache
def schema() -> Any:
    return json.loads((data_folder("rules") / "report.schema.json").read_text("utf-8"))


def closed(part: Any) -> Any:
    """The schema with what it does not describe forbidden, to see that it describes all."""
    if isinstance(part, list):
        return [closed(item) for item in part]
    if not isinstance(part, dict):
        return part
    more = {"additionalProperties": False} if part.get("type") == "object" else {}
    return {**{name: closed(item) for name, item in part.items()}, **more}


def errors_of(report: Report) -> list[str]:
    read = json.loads(FORMATS["json"](report, View()))
    errors = Draft202012Validator(closed(schema())).iter_errors(read)
    return [f"{error.json_path}: {error.message}" for error in errors]


def complaints_on(path: Path) -> list[str]:
    return errors_of(check([str(path)], Options(jobs=1)).report)
