"""Whether the installed mlperf-logging is the one that the rulebook was verified against.

The official verdict is that of one version of mlperf-logging. ``rules/verified.json`` has digests
of the files that it depends on; another version with equal files gives the same verdict.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from mlperf_pkg.errors import UserError, reason_of
from mlperf_pkg.infra.resources import (
    data_folder,
    installed_version,
    official_folder,
    per_rulebook,
)
from mlperf_pkg.rulebook.documents import usages
from mlperf_pkg.rulebook.load import benchmarks_of, load_round
from mlperf_pkg.rulebook.rounds import TRAINING

REFERENCE = "mlperf-logging"
FILE = "verified.json"
CODE = "the code of the checkers"

_RULES = "compliance_checker"
_POINTS = "rcp_checker"
_CODE = (
    "",
    "compliance_checker",
    "compliance_checker/mlp_parser",
    "package_checker",
    "rcp_checker",
    "repo_checker",
    "result_summarizer",
    "result_summarizer/compute_score",
    "system_desc_checker",
)
"""The folders of mlperf_logging whose source files decide a verdict or a score."""


class Verified(Struct, frozen=True):
    """What the rulebook was verified against: a version, and the digests of its files.

    ``code`` is by file; ``rules`` and ``points`` are by ruleset, such as ``training_5.1.0``, and
    file.
    """

    version: str
    code: Mapping[str, str]
    rules: Mapping[str, Mapping[str, str]]
    points: Mapping[str, Mapping[str, str]]


class Drift(Struct, frozen=True):
    """How the installed mlperf-logging differs from the verified one, in one round.

    ``code`` are the source files that differ. ``rules`` and ``points`` are the benchmarks whose
    rule files and reference points differ.
    """

    usage: str
    round: str
    code: tuple[str, ...] = ()
    rules: tuple[str, ...] = ()
    points: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        """Return whether anything differs."""
        return bool(self.code or self.rules or self.points)

    def of(self, benchmarks: Collection[str]) -> Drift:
        """Return the differences in some benchmarks alone."""
        return replace(
            self,
            rules=tuple(name for name in self.rules if name in benchmarks),
            points=tuple(name for name in self.points if name in benchmarks),
        )

    def concerns(self, benchmark: str | None) -> bool:
        """Return whether the official verdict on logs of a benchmark may be another one.

        With None, whether the verdict on what is of no benchmark may be: a system description.
        """
        return bool(self.code) or benchmark in self.rules

    def in_words(self) -> str:
        """Return what differs: ``the rules of llama2_70b_lora in round 5.1``."""
        round_ = f"round {self.round}"
        if self.usage != TRAINING:
            round_ = f"{self.usage.upper()} {self.round}"
        parts = [CODE] if self.code else []
        if self.rules:
            parts.append(f"the rules of {', '.join(self.rules)} in {round_}")
        if self.points:
            parts.append(f"the reference points of {', '.join(self.points)} in {round_}")
        return ", ".join(parts)


@cache
def verified() -> Verified:
    """Return what the rulebook was verified against.

    Raises:
        UserError: the file is missing or not valid.
    """
    path = data_folder("rules") / FILE
    try:
        return msgspec.json.decode(path.read_bytes(), type=Verified)
    except (OSError, ValueError) as error:  # of msgspec
        raise UserError(f"{path}: {reason_of(error)}") from error


def verified_name() -> str:
    """Return the name and version that the rulebook was verified against."""
    return f"{REFERENCE} {verified().version}"


def installed_name() -> str:
    """Return the name and version that is installed.

    Raises:
        MissingPackageError: none is.
    """
    return f"{REFERENCE} {installed_version(REFERENCE)}"


def remedy() -> str:
    """Return the command that installs the verified version."""
    return f"pip install '{REFERENCE}=={verified().version}'"


@per_rulebook
def drift(usage: str, round_name: str) -> Drift:
    """Compare the installed mlperf-logging with the verified one, as far as a round is concerned.

    A round whose ruleset the verified version does not have differs in all its benchmarks, unless
    the installed version does not have it either. The installed one may have reference points of
    benchmarks that the round does not have.

    Raises:
        UserError: mlperf-logging is not installed, or a file of it cannot be read.
    """
    reference = verified()
    folder = f"{usage}_{load_round(usage, round_name).ruleset}"
    rules = reference.rules.get(folder, {})
    points = reference.points.get(folder, {})
    benchmarks = benchmarks_of(usage, round_name)
    return Drift(
        usage,
        round_name,
        code=tuple(_changed(reference.code, digests_of_code())),
        rules=_concerned(_changed(rules, digests_of_rules(folder)), benchmarks),
        points=_with_points(_changed(points, digests_of_points(folder))),
    )


def _changed(before: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """Return the files that only one side has, or whose digests differ."""
    return sorted({name for name, _ in before.items() ^ now.items()})


def _concerned(files: Iterable[str], benchmarks: Sequence[str]) -> tuple[str, ...]:
    """Return the benchmarks that files are about; a common file is about all of them.

    Files are named ``closed_bert.yaml``, ``resnet_lars.yaml``, ``common.yaml``. One that is named
    after none of the benchmarks counts as common.
    """
    concerned: set[str] = set()
    for file in files:
        stem = Path(file).stem
        for prefix in ("closed_", "open_"):
            stem = stem.removeprefix(prefix)
        names = [name for name in benchmarks if stem == name or stem.startswith(f"{name}_")]
        concerned.update([max(names, key=len)] if names else benchmarks)
    return tuple(sorted(concerned))


def _with_points(files: Iterable[str]) -> tuple[str, ...]:
    """Return the benchmarks whose reference points are in files such as ``rcps_bert.json``."""
    return tuple(Path(file).stem.removeprefix("rcps_") for file in files)


# ---- digests ------------------------------------------------------------------------------

# All files of a round are read in a millisecond or two, which a cache on the disk would take, too.
# A checksum is enough, as nobody gains by a file that is changed and has the same one: who can
# write there can also write the rulebook. To import hashlib takes longer than all the rest.


@cache
def digests_of_code() -> Mapping[str, str]:
    """Return the digest of each installed source file that decides a verdict or a score."""
    digests: dict[str, str] = {}
    for folder in _CODE:
        for name, digest in _digests(folder, ".py").items():
            digests[f"{folder}/{name}".lstrip("/")] = digest
    return digests


@cache
def digests_of_rules(ruleset: str) -> Mapping[str, str]:
    """Return the digest of each installed rule file of a ruleset, such as ``training_5.1.0``."""
    return _digests(f"{_RULES}/{ruleset}", ".yaml")


@cache
def digests_of_points(ruleset: str) -> Mapping[str, str]:
    """Return the digest of each installed file of reference points of a ruleset."""
    return _digests(f"{_POINTS}/{ruleset}", ".json")


def installed() -> Verified:
    """Return the digests of the installed mlperf-logging, for ``rules/verified.json``."""
    folders = sorted(path.name for path in (official_folder() / _RULES).iterdir())
    rulesets = [name for name in folders if name.startswith(tuple(usages()))]
    rules = {name: digests_of_rules(name) for name in rulesets}
    points = {name: digests_of_points(name) for name in rulesets}
    return Verified(
        version=installed_version(REFERENCE),
        code=digests_of_code(),
        rules={name: digests for name, digests in rules.items() if digests},
        points={name: digests for name, digests in points.items() if digests},
    )


def _digests(folder: str, ending: str) -> Mapping[str, str]:
    """Return the digests of the files with an ending in an installed folder, by name."""
    digests = {}
    path = os.path.join(official_folder(), folder)  # noqa: PTH118 - fast, for many files
    try:
        names = sorted(name for name in os.listdir(path) if name.endswith(ending))  # noqa: PTH208
    except FileNotFoundError:
        return {}
    for name in names:
        with open(f"{path}/{name}", "rb", buffering=0) as stream:  # noqa: PTH123
            content = stream.read()
        digests[name] = f"{zlib.crc32(content):08x}-{len(content)}"
    return digests
