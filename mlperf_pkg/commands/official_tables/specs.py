"""The first and last columns of the official tables: a system and its URLs.

Source: mlperf_logging.result_summarizer
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from mlperf_pkg.commands.official_tables.table import Cell
from mlperf_pkg.infra.json_values import parse_json, to_finite

REQUIRED = (
    "division",
    "status",
    "submitter",
    "system_name",
    "host_processor_model_name",
    "number_of_nodes",
    "host_processor_core_count",
    "host_processors_per_node",
    "accelerator_model_name",
    "accelerators_per_node",
    "framework",
    "hw_notes",
    "sw_notes",
)
_COMMIT = re.compile(r" commit hash = .*")


def system_cells(description: Mapping[str, Any], private_id: str | None) -> dict[str, Cell]:
    """Return the cells before the scores; ``private_id`` is the text of ``privateid.json``.

    Raises:
        ValueError: a field is missing or has a value on which the official summarizer crashes.
    """
    if missing := [name for name in REQUIRED if name not in description]:
        raise ValueError(f"no {', no '.join(missing)}")
    values = {name: value_of(description) for name, value_of in _TEXTS.items()}
    cells: dict[str, Cell] = {name: None if v is None else str(v) for name, v in values.items()}
    cells |= {name: count_of(description) for name, count_of in _COUNTS.items()}
    cells["private_id"] = _private_id(private_id)
    return {name: cells[name] for name in COLUMNS}


def known_cells(description: Mapping[str, Any]) -> tuple[dict[str, str], tuple[str, ...]]:
    """Return the cells that a description has, as strings, and the names of those that it lacks.

    These are the cells before the scores, without the private id; one that is missing is empty.
    """
    cells = {name: _text(value_of, description) for name, value_of in (_TEXTS | _COUNTS).items()}
    gaps = tuple(name for name, text in cells.items() if text is None)
    return {name: text or "" for name, text in cells.items()}, gaps


def _text(
    value_of: Callable[[Mapping[str, Any]], Any], description: Mapping[str, Any]
) -> str | None:
    try:
        value = value_of(description)
    except (KeyError, ValueError):
        return None
    return None if value is None else str(value)


def url_cells(
    description: Mapping[str, Any], system: str, usage: str, round_: str
) -> dict[str, Cell]:
    """Return the cells after the scores; ``system`` is the name of its folder in ``results/``."""
    home = f"https://github.com/mlcommons/{usage}_results_v{round_}"
    submitter = description["submitter"]
    return {
        "details_url": f"{home}/blob/main/{submitter}/systems/{system}.json",
        "code_url": f"{home}/blob/master/{submitter}/benchmarks",
    }


def _count(description: Mapping[str, Any], name: str) -> int:
    try:
        count = int(description[name])
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"{name} is not a whole number") from error
    if to_finite(count) is None:
        raise ValueError(f"{name} is too large")
    return count


def _system(description: Mapping[str, Any]) -> Any:
    name = description["system_name"]
    chips = _count(description, "accelerators_per_node") * 2
    return f"TPUv3.{chips}" if name == "tpu-v3" else name


def _accelerator(description: Mapping[str, Any]) -> Any:
    name = description["accelerator_model_name"]
    return "TPUv3" if name == "tpu-v3" else name


def _framework(description: Mapping[str, Any]) -> Any:
    framework = description["framework"]
    if not isinstance(framework, str) or "TensorFlow" not in framework:
        return framework
    commit = _COMMIT.search(framework)
    return framework.replace(commit[0], "") if commit else framework


def _notes(description: Mapping[str, Any]) -> str:
    notes = [description[name] for name in ("hw_notes", "sw_notes") if description[name]]
    if not all(isinstance(note, str) for note in notes):
        raise ValueError("hw_notes or sw_notes is not a string")
    return ";".join(notes)


def _private_id(text: str | None) -> str:
    try:
        contents = parse_json(text) if text is not None else {}
    except ValueError:
        contents = {}
    return str(contents.get("private_id", "")) if isinstance(contents, dict) else ""


def _field(name: str) -> Callable[[Mapping[str, Any]], Any]:
    return lambda description: description[name]


def _in_all_nodes(name: str) -> Callable[[Mapping[str, Any]], int]:
    return lambda description: _count(description, name) * _count(description, "number_of_nodes")


_TEXTS: dict[str, Callable[[Mapping[str, Any]], Any]] = {
    "division": _field("division"),
    "availability": _field("status"),
    "submitter": _field("submitter"),
    "system": _system,
    "number_of_nodes": _field("number_of_nodes"),
    "host_processor_model_name": _field("host_processor_model_name"),
    "accelerator_model_name": _accelerator,
    "framework": _framework,
    "notes": _notes,
}
_COUNTS: dict[str, Callable[[Mapping[str, Any]], Any]] = {
    "host_processors_count": _in_all_nodes("host_processors_per_node"),
    "accelerators_count": _in_all_nodes("accelerators_per_node"),
}

COLUMNS = (
    "division",
    "availability",
    "submitter",
    "system",
    "number_of_nodes",
    "host_processor_model_name",
    "host_processors_count",
    "accelerator_model_name",
    "accelerators_count",
    "framework",
    "notes",
    "private_id",
)
URLS = ("details_url", "code_url")
