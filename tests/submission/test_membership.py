"""The result set that a log belongs to."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from mlperf_pkg.config import Config, SystemConfig
from mlperf_pkg.submission.membership import (
    Described,
    LogGroup,
    Stated,
    groups_of,
    set_id,
)

POD16 = Described("pod16", "Pod 16", "closed", 1, 16)
POD16_OPEN = Described("pod16-open", "Pod 16", "open", 1, 16)
POD64 = Described("pod64", "Pod 64", "closed", 4, 64)
POD64_TF = Described("pod64-tf", "Pod 64", "closed", 4, 64)
PODS = (POD16, POD64, POD64_TF)
CLUSTER = tuple(Described(f"c{n}", f"cluster {n}", "closed", n, 4 * n) for n in (128, 224, 512))
WEAK = Described("c10x128", "cluster 1280", "closed", 1280, 5120)

BY_GLOB = Config(systems={"pod16": SystemConfig(logs=("logs/a*",))})
BY_PLATFORM = Config(systems={"pod16": SystemConfig(platforms=("BOX",))})
WILD = {"pod64": SystemConfig(platforms=("rack-*",)), "pod16": SystemConfig(platforms=("[X]?*",))}
BY_WILDCARD = Config(systems=WILD)
UNKNOWN = Config(systems={"pod7": SystemConfig(logs=("*",))})

PATTERN, PLATFORM_IN = "a pattern in mlperf-pkg.yaml", "a platform in mlperf-pkg.yaml"
TREE, FOLDER = "the place in the submission tree", "the folder name"
PLATFORM, NAME = "submission_platform", "a similar submission_platform"
NUMBERS, ONLY = "the number of nodes or accelerators", "the division"


def log(place: str = "a.log", platform: str = "box", **changes: Any) -> Stated:
    defaults = {"usage": "training", "round": "2.0", "benchmark": "bert", "division": "closed"}
    return Stated(place=place, platform=platform, organization="ACME", **{**defaults, **changes})


def group(stated: Stated, systems: tuple[Described, ...], config: Config | None = None) -> LogGroup:
    (only,) = groups_of([stated], systems, config or Config())
    return only


@pytest.mark.parametrize(
    ("stated", "systems", "config", "system", "why"),
    [
        # the place in a tree, then the configuration
        (log("results/pod16/bert/r.txt", "pod64"), PODS, BY_PLATFORM, "pod16", TREE),
        (log("logs/a1.log", "pod64"), PODS, BY_GLOB, "pod16", PATTERN),
        (log("logs/pod64/a.log", "box"), PODS, BY_PLATFORM, "pod16", PLATFORM_IN),
        (log("logs/ab/c.log", ""), PODS, BY_GLOB, "pod16", PATTERN),
        (log("logs/b.log", "Rack-7"), PODS, BY_WILDCARD, "pod64", PLATFORM_IN),
        (log("logs/b.log", "[x]?*"), PODS, BY_WILDCARD, "pod16", PLATFORM_IN),
        (log("logs/b1.log", "pod64"), PODS, UNKNOWN, "pod64", PLATFORM),
        # a folder, whatever its case; not the name of the file
        (log("logs/POD16/x/a.log", "pod64"), PODS, Config(), "pod16", FOLDER),
        (log("logs/pod16.tar.gz/a.log"), PODS, Config(), "pod16", FOLDER),
        (log("logs/pod16", "pod64"), PODS, Config(), "pod64", PLATFORM),
        # the platform
        (log(platform="pod64-TF"), PODS, Config(), "pod64-tf", PLATFORM),
        (log(platform="pod_16"), PODS, Config(), "pod16", NAME),
        (log(platform="1xpod16"), PODS, Config(), "pod16", PLATFORM),
        (log(platform="Cluster-224"), CLUSTER, Config(), "c224", NAME),
        (log(platform="pod 16"), (Described("x", "", "closed"), POD16), Config(), "pod16", NAME),
        # the numbers that the log states
        (log(nodes=224, accelerators=896), CLUSTER, Config(), "c224", NUMBERS),
        (log(platform="512xDGX"), CLUSTER, Config(), "c512", NUMBERS),
        (log(platform="512 x GPU"), CLUSTER[:1], Config(), "c128", NUMBERS),
        (log(platform="SUBMISSION_PLATFORM_PLACEHOLDER"), (POD16,), Config(), "pod16", ONLY),
        (log(platform=""), (POD16, POD16_OPEN), Config(), "pod16", ONLY),
        # of several that a name fits, the one with these numbers
        (log("pod16/pod64/a.log", nodes=4), (POD16, POD64), Config(), "pod64", FOLDER),
    ],
)
def test_evidence(
    stated: Stated, systems: tuple[Described, ...], config: Config, system: str, why: str
) -> None:
    of_log = group(stated, systems, config)
    assert (of_log.system, of_log.why, of_log.candidates) == (system, why, ())


def test_logs_of_a_system_are_one_set_whatever_else_they_state() -> None:
    logs = [log("results/pod16/bert/a.txt", nodes=1), log("results/pod16/bert/b.txt", "x", nodes=2)]
    assert [len(members.logs) for members in groups_of(logs, PODS, Config())] == [2]


@pytest.mark.parametrize(
    ("stated", "systems", "candidates"),
    [
        (log(), PODS, ()),
        (log(), (POD16,), ()),  # not the only one of the division: the log names another
        (log(), (), ()),
        (
            log(platform="Pod 64"),
            (POD16, Described("a", "Pod 64", "closed"), Described("b", "Pod 64", "closed")),
            ("a", "b"),
        ),
        (log("pod16/pod64/a.log"), PODS, ("pod16", "pod64")),
        (log(platform="pod16", division="open"), (POD16,), ("pod16",)),  # of another division
        (log(platform=""), PODS, ("pod16", "pod64", "pod64-tf")),
        (log(nodes=4, accelerators=64), PODS, ("pod64", "pod64-tf")),
        (log(nodes=4, accelerators=32), PODS, ()),
        (log(platform="8xDGX"), PODS, ()),
        (log(platform=f"{'9' * 5000}xDGX"), PODS, ()),
        (log(platform="2xDGX", nodes=4), PODS, ()),  # the numbers disagree
    ],
)
def test_open(stated: Stated, systems: tuple[Described, ...], candidates: tuple[str, ...]) -> None:
    of_log = group(stated, systems)
    assert (of_log.system, of_log.candidates) == (None, candidates)


def test_a_system_that_other_logs_name_is_not_that_of_another_platform() -> None:
    green, red = log(platform="tinybox_green", nodes=1), log("b.log", "tinybox_red", nodes=1)
    systems = (Described("tinybox_green", "tinybox green", "closed", 1, 6),)
    assert [g.system for g in groups_of([green, red], systems, Config())] == ["tinybox_green", None]
    assert group(red, systems).system == "tinybox_green"  # by its numbers, which is said


@pytest.mark.parametrize(
    ("stated", "system"),
    [
        (log("weak/a.log", "1280xDGX", nodes=128), "c10x128"),
        (log("weak/a.log", nodes=640), "c10x128"),
        (log("a.log", "128xDGX", nodes=128, accelerators=512), "c128"),
        (log("a.log", "1280xDGX", nodes=128), None),  # of weak scaling, but not in such a folder
        (log("weak/a.log", nodes=100), None),
    ],
)
def test_weak_scaling(stated: Stated, system: str | None) -> None:
    assert group(replace(stated, usage="hpc"), (*CLUSTER, WEAK)).system == system


def test_closed_runs_as_open() -> None:
    logs = [log(platform="pod16-open")]
    assert groups_of(logs, (POD16_OPEN,), Config())[0].system is None
    assert groups_of(logs, (POD16_OPEN,), Config(), as_open=True)[0].system == "pod16-open"


@pytest.mark.parametrize(
    ("others", "number"),
    [
        ([log("x/b.log")], 1),  # whatever folder it is in
        ([log("b.log", "8xbox")], 2),
        ([log("b.log", division="open")], 2),
        ([log("b.log", benchmark="resnet")], 2),
        ([log("b.log", round="2.1")], 2),
        ([log("b.log", "other")], 2),
        ([log("b.log", nodes=2)], 2),
        ([log("b.log", benchmark="")], 1),  # in no set
        ([log("b.log", "")], 1),  # the platform is that of the others
        ([log("b.log", ""), log("c.log", "other")], 3),
    ],
)
def test_groups_without_descriptions(others: list[Stated], number: int) -> None:
    assert len(groups_of([log(nodes=None), *others], (), Config())) == number


@pytest.mark.parametrize(
    ("folder", "scaling"), [("logs", "strong"), ("weak/job1", "weak"), ("logs/strong", "strong")]
)
def test_scaling(folder: str, scaling: str) -> None:
    assert log(f"{folder}/a.log", usage="hpc").scaling == scaling
    assert log(f"{folder}/a.log").scaling is None


@pytest.mark.parametrize(
    ("parts", "text"),
    [
        (("tinycorp", "tinybox_red", "resnet", "closed"), "tinycorp/tinybox_red/resnet/closed"),
        (("A", "b", "deepcam", "Closed", "weak"), "A/b/deepcam/closed/weak"),
        ((None, "", "bert", None), "unknown/unknown/bert/unknown"),
        (("a/b", "c\nd", "bert", "open"), "a_b/c\\nd/bert/open"),
    ],
)
def test_ids(parts: tuple[Any, ...], text: str) -> None:
    assert set_id(*parts) == text


@given(
    st.lists(
        st.tuples(st.sampled_from("abc"), st.sampled_from(["pod16", "box", ""]), st.integers(0, 4)),
        max_size=12,
    ),
    st.randoms(),
)
def test_folders_and_order_do_not_matter(logs: list[tuple[str, str, int]], random: Any) -> None:
    """Every log is in one group, the same one wherever it lies."""
    flat = [log(f"{i}.log", p, nodes=n or None) for i, (_, p, n) in enumerate(logs)]
    scattered = [log(f"{f}/{i}.log", p, nodes=n or None) for i, (f, p, n) in enumerate(logs)]
    random.shuffle(scattered)

    def names(stated: list[Stated]) -> set[frozenset[str]]:
        groups = groups_of(stated, PODS, Config())
        assert sum(len(g.logs) for g in groups) == len(stated)
        return {frozenset(x.place.rpartition("/")[2] for x in g.logs) for g in groups}

    assert names(flat) == names(scattered)
