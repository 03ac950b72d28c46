"""``package_checker_params``: the flags by which a submission asks for exceptions.

At the top of a submission the upload turns them into command line flags, in any spelling. In the
folder of a system or of a benchmark the official package checker reads them itself, and compares
whole lines including their line ends: it understands only a last line without a line end.
(mlperf_logging.package_checker, check_training_result_files)
"""

from __future__ import annotations

from msgspec import Struct

FILE = "package_checker_params"
BYPASSES = frozenset({"rcp-bypass", "seed-checker-bypass"})
TRAIN_SAMPLES = frozenset({"rcp-bert-train-samples", "bert-train-samples"})

KEEP_SCALING = "keep-scaling"
"""A flag only of the command line: scores use the factors in ``scaling.json``."""


class Params(Struct, frozen=True):
    """The flags of one file, spelt as ``rcp-bypass``.

    ``ignored`` are the valid flags in it that have no effect; ``crash`` says why the official
    package checker crashes on the file, None if it does not.
    """

    flags: frozenset[str] = frozenset()
    ignored: tuple[str, ...] = ()
    crash: str | None = None


def top_params(data: bytes) -> Params:
    """Return the flags at the top of a submission: any spelling, one or more per line."""
    words = frozenset(_words(data.decode("utf-8", "replace")))
    return Params(flags=words & (BYPASSES | TRAIN_SAMPLES))


def inner_params(data: bytes) -> Params:
    """Return the flags in the folder of a system or a benchmark, if they have an effect."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        return Params(crash=f"it is not UTF-8 ({error.reason})")
    last = text.replace("\r", "\n").rpartition("\n")[2]
    flags = BYPASSES & {last}
    valid = BYPASSES | TRAIN_SAMPLES
    return Params(flags, tuple(sorted(valid.intersection(_words(text)) - flags)))


def _words(text: str) -> list[str]:
    return [word.lstrip("-").replace("_", "-") for word in text.split()]
