"""What a plan goes by, as a configuration: read again, it is the same plan."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from mlperf_pkg.commands.builder.configuration import config_text, explained
from mlperf_pkg.commands.builder.plan import BuildPlan
from mlperf_pkg.config import CONFIG_NAME, Config, read_config
from tests.helpers.workspaces import (
    POD16,
    RESNET,
    closed_workspace,
    described,
    lay,
    logs_of,
    numbered,
    prepared,
)

POD64 = {"systems/bow-pod64.json": described("bow-pod64")}
OPEN = {"systems/pod16-open.json": described("bow-pod16", division="open")}
BERT64 = logs_of("bow-pod64", "bert")


def mixed(root: Path) -> Path:
    """Two systems with their logs in folders of their own, and some in one folder."""
    return lay(
        root,
        POD16,
        POD64,
        numbered(RESNET, "logs/here[1]/{}.log"),
        numbered(BERT64[:5], "logs/there/{}.log"),
        numbered(BERT64[5:], "logs/both/{}.log"),
        numbered(logs_of("bow-pod16", "bert"), "logs/both/b{}.log"),
    )


def both_divisions(root: Path) -> Path:
    open_ = numbered(logs_of("pod16-open", "rnnt", "open"), "logs/o{}.log")
    return lay(closed_workspace(root), OPEN, open_)


CONFIG = """\
code: {bert: src/bert, resnet: {a: src/a, b: src/b}}
notes: {bow-pod16/bert: a note}
prices: {bow-pod16: {price_usd: 149000.5, source: the vendor}}
leave_out: [bow-pod16/resnet]
waivers:
- {code: SET108, path: "*", reason: one, approved_by: two, until: 2026-12-31}
"""


def outline(plan: BuildPlan) -> list[tuple[str, list[str]]]:
    return [(planned.folder, [run.path for run in planned.runs]) for planned in plan.sets]


@pytest.mark.parametrize(
    ("make", "config", "division"),
    [
        *((closed_workspace, config, None) for config in ("", CONFIG)),
        *((mixed, config, None) for config in ("", CONFIG)),
        *((both_divisions, config, "closed") for config in ("", CONFIG)),
        (both_divisions, "", None),
    ],
)
def test_the_same_plan_again(
    tmp_path: Path, make: Callable[[Path], Path], config: str, division: str | None
) -> None:
    root = lay(make(tmp_path), {f"src/{name}/x": b"" for name in ("bert", "a", "b")})
    before = prepared(root, config, division=division)
    text = config_text(explained(before.workspace, before.plan))
    after = prepared(root, text)
    assert outline(after.plan) == outline(before.plan)
    assert [file.path for file in after.files] == [file.path for file in before.files]
    assert (after.refusals, after.target) == (before.refusals, before.target)
    assert config_text(explained(after.workspace, after.plan)) == text


@pytest.mark.parametrize(
    ("order", "lost"),
    [
        ({"leave_out": ["bow-pod16/bert"]}, []),
        ({"invalid": "drop"}, ["logs/both/b0.log"]),
    ],
)
def test_what_is_left_out_stays_so(
    tmp_path: Path, order: dict[str, Any], lost: Sequence[str]
) -> None:
    root = mixed(tmp_path)
    for name in lost:
        (root / name).unlink()
    before = prepared(root, **order)
    after = prepared(root, config_text(explained(before.workspace, before.plan)))
    assert outline(after.plan) == outline(before.plan)
    assert (bool(before.plan.left_out), after.refusals) == (True, ())


def test_patterns(tmp_path: Path) -> None:
    before = prepared(mixed(tmp_path))
    systems = explained(before.workspace, before.plan)["systems"]
    alone = [f"logs/both/{number}.log" for number in range(5)]
    assert systems["bow-pod64"]["logs"] == [*alone, "logs/there/*"]
    assert systems["bow-pod16"]["logs"][-1] == "logs/here[[]1]/*"


def test_every_example_is_valid(tmp_path: Path) -> None:
    """A user takes the ``# `` away."""
    lines = config_text({}).splitlines()
    examples = [line[2:] for line in lines if line.startswith("# ") and is_yaml(line)]
    lay(tmp_path, {CONFIG_NAME: "\n".join(examples).encode()})
    config = read_config(tmp_path)
    assert config.code == {"bert": {"": "code/bert"}, "resnet": {"popart": "code/resnet-popart"}}
    assert all(getattr(config, name) for name in Config.__struct_fields__)


def is_yaml(line: str) -> bool:
    """An example, not prose: a key of its own or what stands indented below one."""
    key = line[2:].partition(":")[0]
    return key in Config.__struct_fields__ or line.startswith(("#   ", "# - "))


def test_invisible_characters_are_escaped() -> None:
    assert "\\u202E" in config_text({"notes": {"x/bert": "a\u202eb"}})
    assert "für" in config_text({"notes": {"x/bert": "für"}})
