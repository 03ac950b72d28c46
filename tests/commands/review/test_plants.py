"""What is planted in a round must be named: by check, by diff and by review."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from mlperf_pkg.simulate import RunPlan, simulate_set
from tests.helpers.logs import edited, joined, records
from tests.helpers.program import call
from tests.helpers.trees import write_set, write_system

BENCHMARK = "llama2_70b_lora"
RATE = "opt_base_learning_rate"
Plant = Callable[[Path], object]
Change = Callable[[list[dict[str, Any]]], list[dict[str, Any]]]


def entry(tree: Path, submitter: str = "ACME", system: str = "box") -> Path:
    return tree / submitter / "results" / system / BENCHMARK


def write_entry(tree: Path, submitter: str, system: str, seed: int, **fields: Any) -> None:
    """An entry on ``number_of_nodes`` nodes, with runs of its own."""
    fields = {"submitter": submitter, "system_name": system, "division": "closed", **fields}
    write_system(tree / submitter / "systems", system, **fields)
    plan = RunPlan(
        round="5.1",
        benchmark=BENCHMARK,
        division=fields["division"],
        system=system,
        organization=submitter,
        minutes=20.0,
    )
    write_set(entry(tree, submitter, system), tuple(simulate_set(plan, seed=seed)))


@pytest.fixture(scope="module")
def old(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The round before: two submitters, ACME with two systems."""
    tree = tmp_path_factory.mktemp("old") / "training_results_v5.1"
    write_entry(tree, "ACME", "box", seed=1)
    write_entry(tree, "ACME", "pod", seed=2, number_of_nodes="8")
    write_entry(tree, "Other", "rack", seed=3)
    return tree


# ---- plants ---------------------------------------------------------------------------------


def in_log(change: Change, name: str = "result_1.txt", of: str = "", **where: str) -> Plant:
    """A log with other records, by default its own."""

    def plant(tree: Path) -> None:
        folder = entry(tree, **where)
        log = (folder / (of or name)).read_bytes()
        (folder / name).write_bytes(joined(change(records(log))))

    return plant


def later(every: list[dict[str, Any]], seconds: float = 86_400) -> list[dict[str, Any]]:
    return [{**r, "time_ms": r["time_ms"] + round(seconds * 1000)} for r in every]


def noisy(every: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """With noise in the evaluations, another seed, and a day later."""
    return [
        {**r, "value": r["value"] * (1 + 2e-6 * (-1) ** index)}
        if r["key"] == "eval_accuracy"
        else {**r, "value": 4_000 + r["value"] % 999}
        if r["key"] == "seed"
        else r
        for index, r in enumerate(later(every))
    ]


def index_of(every: list[dict[str, Any]], key: str, nth: int = 0) -> int:
    return [index for index, record in enumerate(every) if record["key"] == key][nth]


def changed(key: str, nth: int = 0, **fields: Any) -> Change:
    def change(every: list[dict[str, Any]]) -> list[dict[str, Any]]:
        index = index_of(every, key, nth)
        return [*every[:index], {**every[index], **fields}, *every[index + 1 :]]

    return change


def stopped_early(every: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """run_stop stands before the last evaluation."""
    stop = every[index_of(every, "run_stop")]
    last = index_of(every, "eval_start", -1)
    rest = [record for record in every if record is not stop]
    return [*rest[:last], {**stop, "time_ms": rest[last - 1]["time_ms"]}, *rest[last:]]


def thinned(every: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Two evaluations are gone, with their blocks."""
    gone = {r["metadata"]["samples_count"] for r in every if r["key"] == "eval_accuracy"}
    dropped = sorted(gone)[1:3]
    return [r for r in every if r["metadata"].get("samples_count") not in dropped]


def started_late(every: list[dict[str, Any]]) -> list[dict[str, Any]]:
    start = every[index_of(every, "run_start")]
    return changed("run_start", time_ms=start["time_ms"] + 12_000)(every)


def backwards(every: list[dict[str, Any]]) -> list[dict[str, Any]]:
    index = index_of(every, "eval_stop", 2)
    return changed("eval_stop", 2, time_ms=every[index]["time_ms"] - 300_000)(every)


def aborted(every: list[dict[str, Any]]) -> list[dict[str, Any]]:
    stop = every[index_of(every, "run_stop")]
    return changed("run_stop", metadata={**stop["metadata"], "status": "aborted"})(every)


def miscounted(every: list[dict[str, Any]]) -> list[dict[str, Any]]:
    index = index_of(every, "eval_accuracy", -1)
    meta = every[index]["metadata"]
    return changed(
        "eval_accuracy", -1, metadata={**meta, "samples_count": meta["samples_count"] + 100}
    )(every)


def old_seed(tree: Path) -> None:
    for log in entry(tree).iterdir():
        own = records(log.read_bytes())
        seed = own[index_of(own, "seed")]["value"]
        other = entry(tree, system="pod") / log.name
        other.write_bytes(edited(other.read_bytes(), "seed", value=seed))


def moved_lines(every: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [
        {**r, "metadata": {**r["metadata"], "lineno": r["metadata"]["lineno"] + 3}} for r in every
    ]


def described(submitter: str = "ACME", system: str = "box", **fields: Any) -> Plant:
    def plant(tree: Path) -> None:
        path = tree / submitter / "systems" / f"{system}.json"
        path.write_text(json.dumps({**json.loads(path.read_text()), **fields}))

    return plant


def swapped(tree: Path) -> None:
    first, second = entry(tree), entry(tree, "Other", "rack")
    first.rename(tree / "x")
    second.rename(first)
    (tree / "x").rename(second)


def joint(tree: Path) -> None:
    write_entry(tree, "ACME+Other", "half", seed=1, number_of_nodes="1")
    for log in entry(tree, "ACME+Other", "half").iterdir():
        log.write_bytes(joined(noisy(records(log.read_bytes()))))


def withdrawn(tree: Path) -> None:
    shutil.rmtree(entry(tree, system="pod").parent)
    (tree / "ACME/systems/pod.json").unlink()
    write_entry(tree, "ACME", "pod2", seed=9, number_of_nodes="8")


def overlapping(tree: Path) -> None:
    first = records((entry(tree) / "result_0.txt").read_bytes())[0]["time_ms"]
    second = records((entry(tree) / "result_1.txt").read_bytes())[0]["time_ms"]
    in_log(lambda every: later(every, (first - second) / 1000 + 60))(tree)


PLANTS: dict[str, Plant] = {
    "nothing": lambda _: None,
    "learning rate": in_log(lambda e: changed(RATE, value=0.0003)(e)),
    "run_stop early": in_log(stopped_early),
    "evaluations deleted": in_log(thinned),
    "last below target": in_log(changed("eval_accuracy", -1, value=0.931)),
    "scaling.json": lambda t: (entry(t) / "scaling.json").write_text('{"scaling_factor": 1.01}'),
    "future": in_log(lambda e: later(e, 400 * 86_400)),
    "samples_count": in_log(miscounted),
    "fast aborted": in_log(aborted),
    "joint copy": joint,
    "preview after available": described(system="pod", status="Preview"),
    "overlap": overlapping,
    "swapped": swapped,
    "withdrawn and added": withdrawn,
    "nodes": described(system="pod", number_of_nodes="4"),
    "code lines": in_log(moved_lines),
    "seeds over systems": old_seed,
    "backwards": in_log(backwards),
    "open against closed": described(division="open"),
    "run_start": in_log(started_late),
    "noisy copy": in_log(noisy, of="result_3.txt"),
    "research to available": lambda t: described(system="pod", status="Available on-premise")(t),
}


def codes(tree: Path) -> set[str]:
    report = json.loads(call("check", tree, "--format", "json").stdout)
    return {
        (f["code"], f["severity"], f["set"] or f["path"], f["message"][:150])
        for f in report["findings"]
    }


def rows(old: Path, new: Path) -> list[tuple[str, str]]:
    result = call("diff", old, new, "--format", "json")
    assert result.stderr == "", result.stderr
    return [(e["kind"], e["allowed"], e["text"]) for e in json.loads(result.stdout)["entries"]]


def explore(old, tmp):
    base = codes(old)
    for b in sorted(base):
        print(b)
    for name, plant in PLANTS.items():
        new = tmp / name.replace(" ", "_") / old.name
        shutil.copytree(old, new)
        plant(new)
        print("==", name)
        for f in sorted(codes(new) - base):
            print("   C", f)
        for r in rows(old, new):
            print("   D", r)
        res = call("review", new, "-o", tmp / "rev" / name.replace(" ", "_"))
        print("   R", res.exit_code, res.stderr[-200:])


if __name__ == "__main__":
    import sys

    tmp = Path(sys.argv[1])
    shutil.rmtree(tmp, ignore_errors=True)
    tmp.mkdir()

    class F:
        def mktemp(self, n):
            (tmp / n).mkdir()
            return tmp / n

    explore(
        old.__wrapped__(F()) if hasattr(old, "__wrapped__") else old._fixture_function(F()), tmp
    )
