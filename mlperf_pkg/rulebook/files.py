"""The YAML files of the rulebook: found, read and validated one by one."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

import msgspec

from mlperf_pkg.infra.resources import data_folder, per_rulebook, rules_folders
from mlperf_pkg.rulebook.model import is_round_name, version_of
from mlperf_pkg.rulebook.problems import RuleFile

COMPILED = "compiled.msgpack"
"""The name of the file that ``rulebook.compile`` writes beside the YAML files."""

ROUND = "round"
"""The name of the file of a round, without ``.yaml``."""

Document: TypeAlias = dict[str, Any]


# ---- which files --------------------------------------------------------------------------


@per_rulebook
def usages() -> tuple[str, ...]:
    """Return the usages that the rulebook has, sorted: hpc and training."""
    paths = (path for folder in rules_folders() for path in folder.glob(f"*/*/{ROUND}.yaml"))
    names = {path.parent.parent.name for path in paths if is_round_name(path.parent.name)}
    return tuple(sorted(names))


@per_rulebook
def rounds(usage: str) -> tuple[str, ...]:
    """Return the rounds that the rulebook has for a usage, oldest first."""
    folders = (folder / usage for folder in rules_folders())
    paths = (path for folder in folders for path in folder.glob(f"*/{ROUND}.yaml"))
    names = {path.parent.name for path in paths}
    return tuple(sorted(filter(is_round_name, names), key=version_of))


def own_file(usage: str, round_name: str, stem: str) -> RuleFile | None:
    """Return a file of a round; None where the round does not have it."""
    return rule_file(f"{usage}/{round_name}/{stem}.yaml")


def own_stems(usage: str, round_name: str) -> list[str]:
    """Return the names of the files of a round, without ``.yaml``, sorted."""
    folders = (folder / usage / round_name for folder in rules_folders())
    paths = (path for folder in folders for path in folder.glob("*.yaml"))
    return sorted({path.stem for path in paths})


def rule_file(name: str) -> RuleFile | None:
    """Return the file of a name such as ``training/7.0/round.yaml``; None where there is none."""
    return next(rule_files(name), None)


def rule_files(name: str) -> Iterator[RuleFile]:
    """Yield the file of a name in each folder of rules that has it, the user's own first."""
    for folder in rules_folders():
        if os.path.isfile(f"{folder}/{name}"):  # noqa: PTH113 - most do not exist; Path is slower
            yield RuleFile(folder / name, _shown(folder, name))


def file_in(folder: Path, name: str) -> RuleFile:
    """Return a file of a folder of rules, under the name that messages use."""
    return RuleFile(folder / name, _shown(folder, name))


def _shown(folder: Path, name: str) -> str:
    if folder == data_folder("rules"):
        return f"rules/{name}"
    here = Path.cwd()
    above = folder.relative_to(here) if folder.is_relative_to(here) else folder
    return (above / name).as_posix()


# ---- what a file says ---------------------------------------------------------------------


def read(file: RuleFile) -> Document:
    """Return what a file says.

    It is taken from ``COMPILED`` where that has this very text, which is ten times faster; else it
    is validated.

    Raises:
        RulebookError: the file is not valid.
    """
    data = file.path.read_bytes()
    document = _compiled().get(data)
    if document is not None:
        plain: Document = msgspec.msgpack.decode(document)
        return plain
    from mlperf_pkg.rulebook.validate import validated  # noqa: PLC0415 - slow to import

    return validated(file, data)


@cache
def _compiled() -> Mapping[bytes, msgspec.Raw]:
    """Return what the files of the package's rulebook say, by their bytes."""
    path = data_folder("rules") / COMPILED
    kind = dict[bytes, msgspec.Raw]
    return msgspec.msgpack.decode(path.read_bytes(), type=kind) if path.is_file() else {}
