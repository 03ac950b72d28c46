"""Submissions whose runs break one rule."""

from collections.abc import Callable
from pathlib import Path

from tests.helpers.logs import edited
from tests.helpers.trees import SYSTEM

SET = f"results/{SYSTEM}/resnet"


def every_log(change: Callable[[bytes], bytes], root: Path) -> Path:
    """Change each log of the set of a submission; return the submission."""
    for path in (root / SET).glob("result_*.txt"):
        path.write_bytes(change(path.read_bytes()))
    return root


def fast(text: bytes) -> bytes:
    """A run that converges too early."""
    return edited(text, "eval_accuracy", metadata={"epoch_num": 10})


def slightly_fast(text: bytes) -> bytes:
    """A run that converges earlier than the reference, but not too early."""
    return edited(text, "eval_accuracy", metadata={"epoch_num": 35})


def same_seed(text: bytes) -> bytes:
    """A run with a seed that others have."""
    return edited(text, "seed", value=1)


def twice(text: bytes) -> bytes:
    """The optimizer is logged twice with one value, which is a warning."""
    line = next(line for line in text.splitlines(keepends=True) if b'"opt_name"' in line)
    return text.replace(line, line * 2)
