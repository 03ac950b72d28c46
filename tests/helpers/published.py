"""Published result sets for tests."""

from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import Any

import msgspec

from mlperf_pkg.published.encode import Facts, encoded
from mlperf_pkg.published.model import PublishedSet, Setting
from mlperf_pkg.published.results import File, PublishedResults


def results_of(*sets: PublishedSet, settings: Sequence[Setting] = ()) -> PublishedResults:
    """Published results that have only these sets; settings refer to them by index."""
    facts = Facts(date(2026, 11, 22), sets, (), settings)
    return PublishedResults(msgspec.msgpack.decode(encoded(facts), type=File), Path("results"))


def published_set(**fields: Any) -> PublishedSet:
    """A set of ten runs on eight accelerators, except for ``fields``."""
    benchmark = fields.get("benchmark", "bert")
    defaults = {
        "usage": "training",
        "round": "5.0",
        "submitter": "ACME",
        "system": "box",
        "benchmark": benchmark,
        "division": "closed",
        "path": f"ACME/results/box/{benchmark}",
        "status": "Available on-premise",
        "system_name": "Box",
        "accelerators": 8,
        "accelerator_model": "A1",
        "accelerators_per_node": 8,
        "nodes": 1,
        "host_processor": "P1",
        "framework": "F1",
        "global_batch_size": 448,
        "runs": 10,
        "score_minutes": 20.0,
        "unscaled_minutes": 20.0,
        "official_minutes": 20.0,
        "energy_joules": None,
    }
    return PublishedSet(**{**defaults, **fields})
