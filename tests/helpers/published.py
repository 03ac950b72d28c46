"""Published result sets, and results to compare with them."""

from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from mlperf_pkg.commands.compare.ratios import Result
from mlperf_pkg.published import results
from mlperf_pkg.published.model import PublishedSet, Setting
from mlperf_pkg.published.results import File, PublishedResults
from tests.tools.export import Facts, encoded, of_rounds


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


# ---- results that a submission is compared with -------------------------------------------


def publish(monkeypatch: pytest.MonkeyPatch, *roots: Path, made: date = date(2026, 11, 22)) -> None:
    """Replace the published results by those of round folders."""
    path = roots[0].parent / f"{made}-{len(roots)}.msgpack"
    path.write_bytes(encoded(of_rounds(list(map(str, roots)), made)))
    monkeypatch.setattr(results, "PATH", path)


KEY = "lars_opt_base_learning_rate"
MODEL = "Graphcore Bow IPU"


def peer(number: int, **fields: Any) -> PublishedSet:
    """A published set of resnet: 16 accelerators, 20 minutes."""
    defaults = {
        "round": "1.1",
        "submitter": f"S{number % 5}",
        "path": f"S{number % 5}/results/box{number}/resnet",
        "benchmark": "resnet",
        "accelerators": 16,
        "accelerator_model": MODEL,
        "score_minutes": 20.0,
    }
    return published_set(**{**defaults, **fields})


def settings(sets: Sequence[PublishedSet], *values: object, key: str = KEY) -> list[Setting]:
    """The same values in turn."""
    return [Setting(i, key, str(values[i % len(values)]), 5) for i in range(len(sets))]


PEERS = [peer(number) for number in range(20)]


def scores(minutes: Sequence[float], **fields: Any) -> list[PublishedSet]:
    return [peer(i, score_minutes=score, **fields) for i, score in enumerate(minutes)]
