"""The factor in ``scaling.json``, with which a review slows a score down."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from mlperf_pkg.checks.context import SetContext, set_finding
from mlperf_pkg.findings import Basis, Finding, Severity
from mlperf_pkg.infra.json_lines import JsonSyntaxError, parse_json
from mlperf_pkg.infra.numbers import to_finite, to_float
from mlperf_pkg.results.rcp import RcpResult

_PRECISION = 5e-4  # of a factor that a reviewer rounded


def normalisation(context: SetContext, result: RcpResult | None) -> float:
    """Return the factor by which a Closed set that beats the reference is slowed down."""
    applies = context.round.normalised and context.closed_by_rules and not context.weak
    if applies and result and result.official_pass:
        return result.normalization
    return 1.0


def scaling_factor(text: str | None) -> float | None:
    """Return the factor in ``scaling.json``; None without a file or a number in it."""
    try:
        return to_float(_value(text))
    except JsonSyntaxError:
        return None


def check_scaling(context: SetContext, result: RcpResult | None) -> Iterator[Finding]:
    """Check that ``scaling.json`` holds a factor, which does not speed the score up."""
    if context.files.scaling is None:
        return
    try:
        value = _value(context.files.scaling)
    except JsonSyntaxError as error:
        message = "not read: {found:s}"
        yield _finding(context, "SET119", message, error.message, "JSON", line=error.line)
        return
    factor = to_finite(value)
    if factor is None:
        message = "scaling_factor is {found}; expected {expected}"
        yield _finding(context, "SET119", message, value, "a number")
    elif factor < 1:
        message = "scaling_factor is {found}, which improves the score; expected {expected}"
        yield _finding(context, "SET118", message, factor, "at least 1")
    else:
        yield from _check_own(context, factor, result)


def _check_own(context: SetContext, factor: float, result: RcpResult | None) -> Iterator[Finding]:
    """Compare a factor with the one that the reference points give.

    A review may decide on a larger one.
    """
    own = result.normalization if result and context.closed_by_rules and not context.weak else 1.0
    if not math.isclose(factor, own, rel_tol=_PRECISION):
        is_too_small = factor < normalisation(context, result)
        yield _finding(
            context,
            "SET120",
            "scaling_factor is {found}; the reference convergence points give {expected}",
            factor,
            own,
            severity=Severity.ERROR if is_too_small else Severity.NOTE,
            basis=Basis.RULES if is_too_small else Basis.ADVICE,
        )


def _finding(
    context: SetContext, code: str, message: str, value: Any, expected: Any, **fields: Any
) -> Finding:
    fields = {"basis": Basis.RULES, "found": value, "expected": expected, **fields}
    return set_finding(context, code, message, path=f"{context.path}/scaling.json", **fields)


def _value(text: str | None) -> Any:
    """Return the factor in ``scaling.json``, which may be any value; None if there is none.

    Raises:
        JsonSyntaxError: the file is not JSON, too large, or nested too deeply.
    """
    fields = parse_json(text) if text is not None else None
    return fields.get("scaling_factor") if isinstance(fields, dict) else None
