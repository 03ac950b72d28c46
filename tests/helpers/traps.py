"""Submissions without any finding, and ways to break them."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.helpers.broken_runs import SET
from tests.helpers.logs import edited, good_log, joined, records
from tests.helpers.power import measure
from tests.helpers.trees import SYSTEM, simulated, write_code, write_set, write_system

FILE = f"systems/{SYSTEM}.json"
Change = Callable[[Path], object]


@dataclass(frozen=True)
class Trap:
    """One way to break a submission, both verdicts, and all findings.

    A finding is "code severity basis path", the path perhaps with ``@key`` for the line of the last
    record of a key, or ``:line``. ``log`` is text that the official checkers log, which shows that
    they took the expected path; ``crash`` if they raise. They pass what they skip (``skipped``),
    which we call not checked.
    """

    name: str
    change: Change
    official: str
    rules: str
    findings: tuple[str, ...] = ()
    log: str = ""
    submitter: str = "Graphcore"
    round: str = "2.0"
    division: str = "closed"
    benchmark: str = "resnet"
    skipped: bool = False


def submission(root: Path, trap: Trap) -> Path:
    """A submission without any finding."""
    write_system(root / "systems", division=trap.division)
    logs = simulated(trap.benchmark, trap.division, trap.round)
    write_set(root / "results" / SYSTEM / trap.benchmark, logs)
    write_code(root, trap.benchmark)
    return root


def log(root: Path, index: int) -> Path:
    return root / SET / f"result_{index}.txt"


def rewrite(root: Path, edit: Callable[[bytes], bytes], *indexes: int, folder: str = SET) -> None:
    """Put changed logs in place of some, or of all."""
    for index in indexes or range(len([*(root / folder).glob("result_*.txt")])):
        path = root / folder / f"result_{index}.txt"
        path.write_bytes(edit(path.read_bytes()))


def change(folder: str, edit: Callable[[bytes], bytes], *indexes: int) -> Change:
    """Change some logs of a set, or all."""
    return lambda root: rewrite(root, edit, *indexes, folder=folder)


def value(key: str, new: Any) -> Callable[[bytes], bytes]:
    return lambda text: edited(text, key, value=new)


def field(key: str, value: Any, *indexes: int) -> Change:
    """Another value in all records of a key."""
    return lambda root: rewrite(root, lambda text: edited(text, key, value=value), *indexes)


def system(**changes: Any) -> Change:
    """Other fields in the description; ``...`` for none."""
    return lambda root: write_system(root / "systems", **changes)


def shifted(text: bytes, by_ms: int) -> bytes:
    return joined([{**record, "time_ms": record["time_ms"] + by_ms} for record in records(text)])


def measured(**changes: Any) -> Change:
    """Power of all runs, from before their start to after their stop unless changed."""

    return lambda root: measure(root, **changes)


def nothing(root: Path) -> None:
    """Leave it as it is."""


def killed(text: bytes, end: bytes = b"") -> bytes:
    """The log ends after the first evaluation."""
    fields = records(text)
    first = [record["key"] for record in fields].index("eval_accuracy")
    return joined(fields[: first + 1]) + end


def other_log(benchmark: str = "resnet", **fields: Any) -> bytes:
    """Another log of the same system and submitter."""
    log = edited(good_log(benchmark, **fields), "submission_platform", value=SYSTEM)
    return edited(log, "submission_org", value="Graphcore")


def diverged(seed: int) -> Callable[[bytes], bytes]:
    return lambda _: other_log(failure="diverged", seed=seed)
