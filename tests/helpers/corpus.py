"""The published submissions that some tests compare with, and their expected results."""

import json
import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from mlperf_pkg.checker.check import check
from mlperf_pkg.checker.values import Checked, Options
from tests.helpers.examples import SHARE

_BESIDE = Path(__file__).parents[3] / "shared" / "corpus"


ROUNDS = [
    *("v0.7", "v1.0", "v1.1", "v2.0", "v2.1", "v3.0", "v3.1", "v4.0", "v4.1", "v5.0", "v5.1"),
    *("hpc_v1.0", "hpc_v2.0", "hpc_v3.0"),
]
FULL = SHARE == 1
SOME_ROUNDS = ROUNDS if FULL else ["v2.1", "v4.1", "hpc_v2.0"]
"""Those that are enough in ``make test`` for what is alike in all rounds."""


def corpus_folder() -> Path | None:
    """``$MLPERF_PKG_CORPUS``, else ``../shared/corpus`` of the checkout; None where it is not."""
    folder = Path(os.environ.get("MLPERF_PKG_CORPUS", _BESIDE))
    return folder if folder.is_dir() else None


CORPUS = corpus_folder() or Path("no corpus")


def expected(round_name: str) -> dict[str, Any]:
    """Return the results of the official checkers for the submissions of ``v2.0`` or
    ``hpc_v1.0``.
    """
    folder = corpus_folder()
    if folder is None:
        pytest.skip(_REASON)
    file = folder.parent / "expected" / f"{round_name}.json"
    facts: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return facts


def kind_of(path: str) -> tuple[str, str]:
    """The usage and the round of a path of the corpus."""
    usage, _, name = path.partition("/")[0].rpartition("v")
    return usage.strip("_") or "training", name


def submissions_of(tree: str) -> list[str]:
    """The paths of the submissions of a round that have a result set."""
    return sorted({f"{tree}/{path.split('/')[0]}" for path in expected(tree)["result_sets"]})


_LIGHT_BYTES = 1_500_000
_OF_A_ROUND = 2
_HAVE_POWER = {"v4.1/Dell", "v5.0/Lenovo"}


def light_submissions() -> Iterator[str]:
    """Of each round the submissions with the fewest logs, and those with power; or all with
    ``MLPERF_PKG_FULL=1``.
    """
    for round_ in sorted(CORPUS.glob("*v[0-9]*")):
        sizes = {f"{round_.name}/{tree.name}": _size(tree) for tree in sorted(round_.iterdir())}
        lightest = sorted(sizes, key=lambda name: sizes[name])[:_OF_A_ROUND]
        light = [name for name in lightest if sizes[name] < _LIGHT_BYTES]
        yield from (name for name in sizes if FULL or name in _HAVE_POWER or name in light)


def _size(tree: Path) -> int:
    return sum(path.stat().st_size for path in tree.rglob("*.txt"))


@cache
def checked(path: str, *flags: str) -> Checked:
    """Check a folder of the corpus, once for all tests of this process."""
    return check([str(CORPUS / path)], Options(jobs=1, flags=frozenset(flags)))


_REASON = f"no corpus of published submissions: set MLPERF_PKG_CORPUS, or place it at {_BESIDE}"
needs_corpus = pytest.mark.skipif(corpus_folder() is None, reason=_REASON)
