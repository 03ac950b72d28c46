"""A system description as the first and last columns of the official tables.

(mlperf_logging.result_summarizer)
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from mlperf_pkg.commands.official_tables.table import Cell

NEEDED = (
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


def specs(described: Mapping[str, Any], private_id: str | None) -> dict[str, Cell]:
    """The columns before the scores; ``private_id`` is the text of ``privateid.json``, if any.

    Raises:
        ValueError: a field is missing, or no such value that the columns can be made of it. The
            official summarizer dies of that.
    """
    if missing := [name for name in NEEDED if name not in described]:
        raise ValueError(f"no {' and no '.join(missing)}")
    nodes = _count(described, "number_of_nodes")
    values = {name: make(described) for name, make in _TEXTS.items()}
    made: dict[str, Cell] = {name: None if v is None else str(v) for name, v in values.items()}
    made["host_processors_count"] = _count(described, "host_processors_per_node") * nodes
    made["accelerators_count"] = _count(described, "accelerators_per_node") * nodes
    made["private_id"] = _private_id(private_id)
    return {name: made[name] for name in COLUMNS}


def urls(described: Mapping[str, Any], system: str, usage: str, round_: str) -> dict[str, Cell]:
    """The columns after the scores; ``system`` is the folder in ``results/``."""
    home = f"https://github.com/mlcommons/{usage}_results_v{round_}"
    submitter = described["submitter"]
    return {
        "details_url": f"{home}/blob/main/{submitter}/systems/{system}.json",
        "code_url": f"{home}/blob/master/{submitter}/benchmarks",
    }


def _count(described: Mapping[str, Any], name: str) -> int:
    try:
        return int(described[name])
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"{name} is no whole number") from error


def _system(described: Mapping[str, Any]) -> Any:
    name = described["system_name"]
    chips = _count(described, "accelerators_per_node") * 2
    return f"TPUv3.{chips}" if name == "tpu-v3" else name


def _accelerator(described: Mapping[str, Any]) -> Any:
    name = described["accelerator_model_name"]
    return "TPUv3" if name == "tpu-v3" else name


def _framework(described: Mapping[str, Any]) -> Any:
    framework = described["framework"]
    if not isinstance(framework, str) or "TensorFlow" not in framework:
        return framework
    commit = _COMMIT.search(framework)
    return framework.replace(commit[0], "") if commit else framework


def _notes(described: Mapping[str, Any]) -> str:
    given = [described[name] for name in ("hw_notes", "sw_notes") if described[name]]
    if not all(isinstance(each, str) for each in given):
        raise ValueError("hw_notes or sw_notes is no text")
    return ";".join(given)


def _private_id(text: str | None) -> str:
    try:
        known = json.loads(text) if text is not None else {}
    except ValueError:
        known = {}
    return str(known.get("private_id", "")) if isinstance(known, dict) else ""


def _field(name: str) -> Callable[[Mapping[str, Any]], Any]:
    return lambda described: described[name]


_TEXTS: Mapping[str, Callable[[Mapping[str, Any]], Any]] = {
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
