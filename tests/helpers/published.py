"""Published result sets, and results to compare with them."""

from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from mlperf_pkg.commands.compare.ratios import Result
from mlperf_pkg.published.model import PublishedSet, Setting
from mlperf_pkg.published.results import File, PublishedResults
from tests.tools.export import Facts, encoded


def results_of(*sets: PublishedSet, settings: Sequence[Setting] = ()) -> PublishedResults:
    """Published results that have only these sets; settings refer to them by index."""
    facts = Facts(date(2026, 11, 22), sets, (), settings)
    return PublishedResults(msgspec.msgpack.decode(encoded(facts), type=File), Path("results"))


def published_set(**fields: Any) -> PublishedSet:
    """A set of ten runs on eight accelerators, except for ``fields``."""
    benchmark = fields.get("benchmark", "bert")
    names = {"usage": "training", "round": "5.0", "submitter": "ACME", "system": "box"}
    path = {"benchmark": benchmark, "division": "closed", "path": f"ACME/results/box/{benchmark}"}
    described = {"status": "Available on-premise", "system_name": "Box", "accelerator_model": "A1"}
    numbers = {"accelerators": 8, "accelerators_per_node": 8, "nodes": 1, "energy_joules": None}
    software = {"host_processor": "P1", "framework": "F1", "global_batch_size": 448, "runs": 10}
    minutes = dict.fromkeys(("score_minutes", "unscaled_minutes", "official_minutes"), 20.0)
    return PublishedSet(
        **{**names, **path, **described, **numbers, **software, **minutes, **fields}
    )


def result(**fields: Any) -> Result:
    """A result of ACME to compare: BERT on eight accelerators, except for ``fields``."""
    made = Result(0, "2.0", "ACME", "dgx", None, "bert", "closed", 20.0, "ACME/results/dgx/bert")
    return replace(made, **{"accelerators": 8, "nodes": 1, **fields})
