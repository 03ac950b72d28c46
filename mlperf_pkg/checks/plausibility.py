"""Facts of a result set that do not fit together, though each breaks no rule."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from struct import pack, unpack
from typing import Any

from mlperf_pkg.checks.context import SetContext
from mlperf_pkg.findings import Finding
from mlperf_pkg.infra.json_values import to_finite
from mlperf_pkg.results.wording import counted
from mlperf_pkg.rulebook.formula import read_number
from mlperf_pkg.rulebook.rounds import Sureness, day_of, submission_before
from mlperf_pkg.run.model import Run
from mlperf_pkg.run.relations import relation_of

# ---- the day --------------------------------------------------------------------------------


def check_days(context: SetContext) -> Iterator[Finding]:
    """Note runs in the tree of a round that began before the round did."""
    before = submission_before(context.round.usage, context.round.name)
    if before is None:
        return
    name, submitted = before
    for run in context.runs:
        is_named = run.sureness is Sureness.NAMED
        if is_named and run.start_ms and day_of(run.start_ms) <= submitted:
            message = (
                "the run is dated {found:s}; expected a date later than {expected}, when"
                f" round {name} was submitted"
            )
            days = {"found": str(day_of(run.start_ms)), "expected": str(submitted)}
            yield context.finding("SET172", message, path=run.path, **days)


# ---- the batch size is that of a device, times accumulation, times devices -----------------

_DATA_PARALLEL = frozenset({"bert", "resnet", "retinanet", "ssd"})
"""Of which each accelerator trains the whole model. In maskrcnn of large systems, several do."""

_PACKED = "bert"  # two sequences in one, so that it counts half of the samples
_STEPS = "gradient_accumulation_steps"


def check_devices(context: SetContext) -> Iterator[Finding]:
    """Check that the batch sizes of the devices, with accumulation, are the global batch size."""
    expectations: dict[Any, str | None] = {}
    for run in context.runs:
        steps = run.hyperparameters.get(_STEPS, "1")
        settings = (run.batch_sizes, steps, *run.device_batch_sizes.items())
        if settings not in expectations:  # of most runs, they are equal
            expectations[settings] = _expected_size(context, run, steps)
        expected = expectations[settings]
        if expected is not None:
            message = f"global_batch_size is {{found:,.0f}}; expected {expected}"
            fields = {"path": run.path, "found": to_finite(read_number(run.batch_sizes[0]))}
            yield context.finding("SET170", message, expected=expected, **fields)


def _expected_size(context: SetContext, run: Run, steps_text: str) -> str | None:
    """Return which batch size the other settings need, in words; None if that of the run fits."""
    sizes = [to_finite(read_number(text)) for text in run.batch_sizes]
    steps = to_finite(read_number(steps_text))
    size = sizes[0] if len(sizes) == 1 else None
    if not size or not steps:
        return None
    if size % steps:
        return f"a multiple of {_STEPS}, which is {steps:g}"
    accelerators = context.system.accelerators if context.system else None
    benchmark = context.files.benchmark
    if len(run.device_batch_sizes) != 1 or not accelerators or benchmark not in _DATA_PARALLEL:
        return None
    ((key, text),) = run.device_batch_sizes.items()
    device_size = to_finite(read_number(text)) or 0.0
    product = device_size * steps * accelerators
    if size == product or (benchmark == _PACKED and size == 2 * product):
        return None
    factors = f"{key} {device_size:g} x {_STEPS} {steps:g} x {accelerators:,} accelerators"
    return f"{product:,.0f} ({factors})"


# ---- evaluations of one run in the log of another -------------------------------------------

_COUNTED = frozenset({"bert", "gnn", "minigo", "openfold", "resnet", "rgat", "rnnt"})
"""Whose metric is a share of what was evaluated, or starts equal, so that values recur."""

_DIGITS = 7  # at least, of a value that is worth comparing
_MANY = 3  # evaluations one after the other; of published runs, at most two are equal
_FEW = 2  # the same where the metric is continuous, of which published runs have none


def check_spliced(context: SetContext) -> Iterator[Finding]:
    """Warn about evaluations that two runs share at the same places, to all digits.

    Runs whose values are all equal have findings of their own.
    """
    for (original, run), places in _shared(context.runs):
        values = [run.evaluated[place] for place in places]
        is_telling = _are_telling(context.files.benchmark, places, values)
        if is_telling and relation_of(original, run) is None:
            number = counted(len(set(values)), "evaluation")
            examples = ", ".join(map(repr, values[:_MANY]))
            message = (
                f"this log shares the values of {number} with {{found:s}}, to the last digit"
                f" ({examples}), although the other values differ"
            )
            yield context.finding("SET171", message, path=run.path, found=original.path)


def _shared(runs: Sequence[Run]) -> Iterator[tuple[tuple[Run, Run], list[int]]]:
    """Yield two runs, and the places of the evaluations that they share.

    The first evaluation does not count: all runs may begin alike.
    """
    shared: dict[tuple[int, int], list[int]] = {}
    first: dict[tuple[int, float], int] = {}
    for index, run in enumerate(runs):
        for place, value in enumerate(run.evaluated):
            original = first.setdefault((place, value), index)
            if original != index and place and _is_precise(value):
                shared.setdefault((original, index), []).append(place)
    for (original, index), places in shared.items():
        yield (runs[original], runs[index]), places


def _is_precise(value: float) -> bool:
    digits = repr(abs(value)).partition("e")[0].replace(".", "").strip("0")
    return len(digits) >= _DIGITS


def _are_telling(benchmark: str, places: list[int], values: list[float]) -> bool:
    """Return whether values of two independent runs are not equal by chance."""
    if benchmark in _COUNTED:
        return _longest(places, values) >= _MANY
    if len(set(values)) >= _FEW:
        return True
    return not _is_of_single_precision(values[0])


def _is_of_single_precision(value: float) -> bool:
    """Return whether a value may be of single precision, of which runs have few different ones."""
    try:
        (single,) = unpack("f", pack("f", value))
    except OverflowError:
        return False
    return bool(single == value)


def _longest(places: list[int], values: list[float]) -> int:
    """Return the length of the longest sequence of places with different values."""
    longest = 1
    length = 1
    for (place, value), (next_place, next_value) in pairwise(zip(places, values, strict=True)):
        is_next = next_place == place + 1 and value != next_value
        length = length + 1 if is_next else 1
        longest = max(longest, length)
    return longest
