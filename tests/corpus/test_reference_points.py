"""The published sets that ``rules/reference_points.yaml`` lists, against the published record."""

import json
from collections import defaultdict
from typing import NamedTuple

from mlperf_pkg.results import rcp
from mlperf_pkg.rulebook.load import load_benchmark, load_round
from mlperf_pkg.rulebook.upstream.points import known_points
from tests.corpus.test_copies import rows
from tests.helpers.corpus import needs_corpus

pytestmark = needs_corpus


class Point(NamedTuple):
    usage: str
    round: str
    benchmark: str
    name: str


def touched() -> dict[Point, dict[str, set[str]]]:
    """By point, the Closed sets that the test compares with it: at, between and smaller."""
    logged: dict[str, set[float]] = defaultdict(set)
    for row in rows("settings"):
        if row["key"] == "global_batch_size":
            logged[row["set"]].add(float(json.loads(row["value"])))
    sets: dict[Point, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for row in rows("sets"):
        usage, name, benchmark = row["usage"], row["round"], row["benchmark"]
        size = row["global_batch_size"]
        sizes = {float(size)} if size else logged[row["set"]]
        rules = load_benchmark(usage, name, benchmark)
        is_tested = row["division"] == "closed" and name != "0.7" and len(sizes) == 1
        if not is_tested or rules is None or not rcp.is_covered(usage, benchmark):
            continue
        counts = {"runs": rules.runs.required, "drop": rules.runs.drop}
        ruleset = load_round(usage, name).ruleset
        points = rcp.reference_points(usage, ruleset, benchmark, **counts)
        result = rcp.judge(rcp.prune(points), sizes.pop(), [1] * counts["runs"], **counts)
        how = {rcp.FOUND: "at", rcp.INTERPOLATED: "between"}.get(result.message, "smaller")
        folder = row["path"].replace("/results/", "/", 1).rpartition("/")[0]
        for point in result.points:
            sets[Point(usage, name, benchmark, point)][how].add(folder)
    return sets


def test_every_known_mistake_lists_the_sets_that_it_touches() -> None:
    all_sets = touched()
    for entry in known_points():
        sets = all_sets[Point(entry.usage, entry.round, entry.benchmark, entry.point)]
        listed = {how: {*getattr(entry, how)} for how in ("at", "between", "smaller")}
        assert {how: names for how, names in listed.items() if names} == sets
