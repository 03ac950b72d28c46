"""The system that a run belongs to, and the messages where it is unclear."""

from __future__ import annotations

import pytest

from mlperf_pkg.checks.systems import SystemFile, unchecked_system
from mlperf_pkg.commands.builder.mapping import Mapped, Unmapped, complaints, folded, map_runs
from mlperf_pkg.config import Config, SystemConfig
from mlperf_pkg.findings import Finding
from tests.helpers.workspaces import run, system

POD16 = system("pod16", system_name="Pod 16")
POD16_OPEN = system("pod16-open", "open", system_name="Pod 16")
POD64 = system("pod64", system_name="Pod 64")
POD64_TF = system("pod64-tf", system_name="Pod 64")
PODS = (POD16, POD64, POD64_TF)
BY_GLOB = Config(systems={"pod16": SystemConfig(logs=("logs/a*",))})
BY_PLATFORM = Config(systems={"pod16": SystemConfig(platforms=("BOX",))})
BY_WILDCARD = Config(
    systems={
        "pod64": SystemConfig(platforms=("rack-*",)),
        "pod16": SystemConfig(platforms=("[X]?*",)),
    }
)
UNKNOWN = Config(systems={"pod7": SystemConfig(logs=("*",))})
NOBODY = ("nobody", ())


@pytest.mark.parametrize(
    ("path", "platform", "systems", "config", "expected"),
    [
        # mlperf-pkg.yaml goes first: patterns, then platforms
        ("logs/a1.log", "pod64", PODS, BY_GLOB, ("a pattern in mlperf-pkg.yaml", "pod16")),
        ("logs/pod64/a.log", "box", PODS, BY_PLATFORM, ("a platform in mlperf-pkg.yaml", "pod16")),
        ("logs/ab/c.log", "", PODS, BY_GLOB, ("a pattern in mlperf-pkg.yaml", "pod16")),
        ("logs/b1.log", "pod64", PODS, BY_GLOB, ("submission_platform", "pod64")),
        ("logs/b1.log", "pod64", PODS, UNKNOWN, ("submission_platform", "pod64")),
        ("logs/b.log", "Rack-7", PODS, BY_WILDCARD, ("a platform in mlperf-pkg.yaml", "pod64")),
        ("logs/b.log", "[x]?*", PODS, BY_WILDCARD, ("a platform in mlperf-pkg.yaml", "pod16")),
        # then a folder
        ("logs/pod16/x/a.log", "pod64", PODS, Config(), ("its folder", "pod16")),
        ("results/pod16/bert/result_0.txt", "", PODS, Config(), ("its folder", "pod16")),
        ("logs/pod16", "pod64", PODS, Config(), ("submission_platform", "pod64")),
        ("logs/POD16/a.log", "", PODS, Config(), NOBODY),
        # then the platform, by id before name
        ("a.log", "pod64-TF", PODS, Config(), ("submission_platform", "pod64-tf")),
        ("a.log", "pod 16", PODS, Config(), ("submission_platform, a system_name", "pod16")),
        ("a.log", "", (system("x", system_name=""), POD16), Config(), NOBODY),
        # then there is only one of the division
        ("a.log", "?", (POD16, POD16_OPEN), Config(), ("the only system of the division", "pod16")),
        ("a.log", "?", PODS, Config(), NOBODY),
        ("a.log", "?", (POD16_OPEN,), Config(), NOBODY),
        ("a.log", "?", (), Config(), NOBODY),
    ],
)
def test_mapping(
    path: str,
    platform: str,
    systems: tuple[SystemFile, ...],
    config: Config,
    expected: tuple[str, object],
) -> None:
    (candidate,) = map_runs([run(path, platform=platform)], systems, config)
    if isinstance(candidate, Mapped):
        assert (candidate.why, candidate.system.id) == expected
    else:
        assert ("nobody", candidate.systems) == expected


@pytest.mark.parametrize(
    ("path", "division", "systems", "expected"),
    [
        # among systems of one name the division decides
        ("a.log", "closed", (POD16, POD16_OPEN), "pod16"),
        ("a.log", "open", (POD16, POD16_OPEN), "pod16-open"),
        ("a.log", "closed", (POD64, POD64_TF), ["pod64", "pod64-tf"]),
        # and it never overrides what names another system
        ("pod16/a.log", "open", (POD16, POD16_OPEN), ["pod16"]),
        ("pod16/pod64/a.log", "closed", PODS, ["pod16", "pod64"]),
    ],
)
def test_division(
    path: str, division: str, systems: tuple[SystemFile, ...], expected: str | list[str]
) -> None:
    platform = systems[0].system_name
    (candidate,) = map_runs([run(path, platform=platform, division=division)], systems, Config())
    if isinstance(candidate, Mapped):
        assert candidate.system.id == expected
    else:
        assert [system_file.id for system_file in candidate.systems] == expected


def complaint(*unmapped: Unmapped, systems: tuple[SystemFile, ...] = PODS) -> list[str]:
    return list(complaints(unmapped, systems))


def test_ambiguous() -> None:
    runs = [run(f"logs/{name}", platform="Pod 64") for name in "abcde"]
    candidates = map_runs(runs, PODS, Config())
    assert complaint(
        *(candidate for candidate in candidates if isinstance(candidate, Unmapped))
    ) == [
        "5 logs (logs/a, logs/b, logs/c and 2 more): by submission_platform, a system_name 'Pod 64'"
        " they may belong to pod64 or pod64-tf. Assign the logs in mlperf-pkg.yaml:\n"
        "  systems:\n"
        "    pod64:\n"
        '      logs: ["logs/..."]\n'
        "    pod64-tf:\n"
        '      logs: ["logs/..."]'
    ]


def test_nobody() -> None:
    strangers = [Unmapped(run(f"logs/{p}", platform=p), (), "") for p in ("B", "A", "")]
    assert complaint(*strangers) == [
        "no folder or platform names the closed system of these logs:\n"
        "  submission_platform '': 1 log (logs/)\n"
        "  submission_platform 'A': 1 log (logs/A)\n"
        "  submission_platform 'B': 1 log (logs/B)\n"
        "Name it in mlperf-pkg.yaml; the systems are pod16, pod64, pod64-tf. By the"
        " likeness of names:\n"
        "  systems:\n"
        "    pod16:\n"
        '      platforms: ["A", "B"]  # or logs: ["logs/..."]'
    ]


def test_the_nearest_system_is_suggested() -> None:
    strangers = [Unmapped(run(f"logs/{p}", platform=p), (), "") for p in ("a-pod64-x", "Pod_16")]
    (message,) = complaint(*strangers)
    assert message.endswith(
        "  systems:\n"
        "    pod16:\n"
        '      platforms: ["Pod_16"]  # or logs: ["logs/..."]\n'
        "    pod64:\n"
        '      platforms: ["a-pod64-x"]  # or logs: ["logs/..."]'
    )


@pytest.mark.parametrize("as_open", [True, False])
@pytest.mark.parametrize(
    ("path", "systems", "mapped"),
    [
        ("pod16-open/a.log", (POD16_OPEN,), True),
        ("a.log", (POD16_OPEN,), True),
        ("pod64/a.log", (POD64, POD16_OPEN), False),
    ],
)
def test_closed_runs_as_open(
    path: str, systems: tuple[SystemFile, ...], mapped: bool, as_open: bool
) -> None:
    a_run = run(path, platform="?")
    (candidate,) = map_runs([a_run], systems, Config(), as_open=as_open)
    is_open = isinstance(candidate, Mapped) and candidate.system is POD16_OPEN
    assert is_open is (mapped and as_open)


def test_no_platform_at_all() -> None:
    (message,) = complaint(Unmapped(run(platform=""), (), ""))
    assert message.endswith('  systems:\n    pod16:\n      logs: ["logs/..."]')


def test_no_system_of_the_division() -> None:
    assert complaint(Unmapped(run(division="open"), (), "")) == [
        "1 log (logs/a.log): no system description of the open division: add a file"
        ' systems/<system>.json with "division": "open"'
    ]


@pytest.mark.parametrize("division", ["shut", None])
def test_no_division(division: str | None) -> None:
    box = system("box", division)
    assert complaint(Unmapped(run(division="open"), (box,), "its folder"), systems=(box,)) == [
        "1 log (logs/a.log): by its folder they belong to systems/box.json, whose division is"
        f" {division or 'missing'}; expected open"
    ]


def test_a_description_that_cannot_be_read_is_not_missing() -> None:
    box = unchecked_system("systems/box.json", Finding(code="SYS001", message="", path=""))
    assert complaint(Unmapped(run(), (box,), "its folder"), systems=(box,)) == []
    assert complaint(Unmapped(run(), (), ""), systems=(box,)) == []


def test_other_division() -> None:
    box = system("box", "closed")
    (message,) = complaint(Unmapped(run(division="open"), (box,), "its folder"), systems=(box,))
    assert message == (
        "1 log (logs/a.log): runs of the open division, but by its folder they belong to"
        " systems/box.json, whose division is closed. A description has one"
        " division: a system that is submitted in both needs a second file, such as"
        ' systems/box-open.json with "division": "open", and in mlperf-pkg.yaml the logs of each:\n'
        '  systems:\n    box:\n      logs: ["logs/..."]\n'
        '    box-open:\n      logs: ["logs/..."]'
    )


@pytest.mark.parametrize(
    ("paths", "text"),
    [
        (["a"], "1 log (a)"),
        (["a", "b"], "2 logs (a, b)"),
        (list("abc"), "3 logs (a, b, c)"),
        (list("abcd"), "4 logs (a, b, c and 1 more)"),
        (["a\n\x1b[2J"], "1 log (a\\n\\x1b[2J)"),
    ],
)
def test_folded(paths: list[str], text: str) -> None:
    assert folded(paths) == text
