"""The factor that multiplies the score of a set that converges faster than the reference.

The RCP test gives the factor. ``scaling.json``, which the official package checker writes for the
summarizer, is only compared with it. (mlperf_logging.rcp_checker)
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from msgspec import Struct

from mlperf_pkg.checks.context import SetContext, set_finding
from mlperf_pkg.findings import Basis, Finding, Severity
from mlperf_pkg.infra.json_values import JsonSyntaxError, parse_json, to_finite, to_float
from mlperf_pkg.results import wording
from mlperf_pkg.results.rcp import RcpResult
from mlperf_pkg.submission.model import KEEP_SCALING

_PRECISION = 5e-4  # of a factor that a reviewer rounded


class Factors(Struct, frozen=True):
    """The factors of the olympic mean: that of the rules, and that of the official tables.

    ``official`` is None where the summarizer crashes on ``scaling.json``.
    """

    rules: float = 1.0
    official: float | None = 1.0


def factors(context: SetContext, result: RcpResult | None) -> Factors:
    """Return the factors of a set: those of its RCP test or, on request, of ``scaling.json``.

    ``official`` is the factor that the package checker writes into ``scaling.json``.
    """
    if KEEP_SCALING not in context.files.flags or context.weak:
        return _tested(context, result)
    if context.files.scaling is None:
        return Factors()
    try:
        kept = to_float(_value(context.files.scaling))
    except JsonSyntaxError:
        kept = None
    return Factors(1.0 if kept is None else kept, kept)


def _tested(context: SetContext, result: RcpResult | None) -> Factors:
    if context.weak or result is None or not result.official_pass:
        return Factors()
    return Factors(
        rules=result.normalization if context.rcp_required_by_rules else 1.0,
        official=result.normalization if context.rcp_required else 1.0,
    )


def check_scaling(
    context: SetContext, result: RcpResult | None, unscaled: float | None
) -> Iterator[Finding]:
    """Check that ``scaling.json`` has the factor of the RCP test; ``unscaled`` is in minutes."""
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
        yield from _check_own(context, factor, result, unscaled)


def _check_own(
    context: SetContext, factor: float, result: RcpResult | None, unscaled: float | None
) -> Iterator[Finding]:
    """Compare a factor with that of the RCP test, and report the scores that they give."""
    own = _tested(context, result).rules
    if math.isclose(factor, own, rel_tol=_PRECISION):
        return
    is_too_small = factor < own and context.round.normalised
    minutes = [
        f" ({wording.minutes(unscaled * f)} minutes)" if unscaled else "" for f in (factor, own)
    ]
    yield _finding(
        context,
        "SET120",
        f"scaling_factor is {{found}}{minutes[0]}; the RCP test gives {{expected}}{minutes[1]}",
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


def _value(text: str) -> Any:
    """Return the factor in ``scaling.json``, which may be any value; None if there is none.

    Raises:
        JsonSyntaxError: the file is not JSON, too large, or nested too deeply.
    """
    fields = parse_json(text)
    return fields.get("scaling_factor") if isinstance(fields, dict) else None
