"""The score of a set: the one that was published, else its mean times the factor of its RCP test.

Everything that shows a score shows this one; ``official_factor`` is for the official tables alone.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from msgspec import Struct

from mlperf_pkg.checks.context import SetContext
from mlperf_pkg.checks.published import published_index
from mlperf_pkg.findings import NOTE, Finding
from mlperf_pkg.infra.json_values import JsonSyntaxError, parse_json, to_finite, to_float
from mlperf_pkg.published.results import published_results
from mlperf_pkg.results import wording
from mlperf_pkg.results.rcp import RcpResult
from mlperf_pkg.submission.model import AS_FILED

OTHER_SCORE = "SET120"
"""The code of the finding that something gives another score than that of the set."""

_PRECISION = 5e-4  # of a factor that a reviewer rounded


class SetScore(Struct, frozen=True):
    """The score of a set: ``minutes`` are its mean, ``unscaled``, times its ``factor``.

    Both are None where there is no score. ``reason`` says why it has this factor, in words before
    the factor. ``index`` is that of the set in the published results, None if it is not published.
    """

    minutes: float | None
    unscaled: float | None
    factor: float
    reason: str
    index: int | None = None


def score_set(context: SetContext, unscaled: float | None, result: RcpResult | None) -> SetScore:
    """Score a set by its mean, ``unscaled`` minutes, and the ``result`` of its RCP test.

    A published set has the score that was published, where the published results have one. That of
    any other Closed set is normalised in the rounds whose rules say so (training_rules, Score
    scaling).
    """
    index = published_index(context, unscaled)
    published = None if index is None else published_results().score_minutes(index)
    if published and unscaled:
        return SetScore(published, unscaled, published / unscaled, "published", index)
    factor = 1.0
    reason = "expected"
    if context.round.normalised and context.rcp_required_by_rules:
        factor = _tested_factor(context, result)
        reason = "by the RCP test"
    return SetScore(scaled(unscaled, factor), unscaled, factor, reason, index)


def official_factor(context: SetContext, result: RcpResult | None) -> float | None:
    """Return the factor that the official summarizer finds in ``scaling.json``.

    The package checker writes that of the RCP test before; a drop-in module takes that of the tree.
    It is None where the summarizer crashes.
    """
    if AS_FILED not in context.files.flags or context.weak:
        return _tested_factor(context, result) if context.rcp_required else 1.0
    if context.files.scaling is None:
        return 1.0
    try:
        return to_float(_value(context.files.scaling))
    except JsonSyntaxError:
        return None


def _tested_factor(context: SetContext, result: RcpResult | None) -> float:
    """Return the factor of the RCP test; 1 for a set that does not pass, and in weak scaling."""
    if context.weak or result is None or not result.official_pass:
        return 1.0
    return result.normalization


def scaled(value: float | None, factor: float | None) -> float | None:
    """Return minutes or joules times a factor; None where either is missing."""
    return None if value is None or factor is None else value * factor


# ---- other scores than that of the set ----------------------------------------------------


def check_score(
    context: SetContext, score: SetScore, result: RcpResult | None
) -> Iterator[Finding]:
    """Check that ``scaling.json`` and the RCP test give the score of the set.

    ``result`` is that of the test with the reference points of the installed mlperf-logging.
    """
    if context.files.scaling is not None:
        yield from _check_file(context, score, context.files.scaling)
    if context.rcp_required_by_rules and score.minutes is not None:
        factor = _tested_factor(context, result)
        subject = "the reference points of the installed mlperf-logging"
        yield from _check_factor(context.finding, score, factor, subject)


def _check_file(context: SetContext, score: SetScore, text: str) -> Iterator[Finding]:
    finding = partial(context.finding, path=f"{context.path}/scaling.json")
    try:
        value = _value(text)
    except JsonSyntaxError as error:
        yield finding(
            "SET119",
            "scaling.json is not valid JSON: {found:s}",
            found=error.message,
            expected="JSON",
            line=error.line,
        )
        return
    factor = to_finite(value)
    if factor is None:
        message = "scaling_factor is {found}; expected {expected}"
        yield finding("SET119", message, found=value, expected="a finite number")
    elif factor < 1:
        message = "scaling_factor is {found}, which improves the score; expected {expected}"
        yield finding("SET118", message, found=factor, expected="at least 1")
    else:
        yield from _check_factor(finding, score, factor, "scaling.json")


def _check_factor(
    finding: Callable[..., Finding], score: SetScore, factor: float, subject: str
) -> Iterator[Finding]:
    """Report a factor that gives another score than that of the set, as scores are published."""
    other = wording.minutes(scaled(score.unscaled, factor))
    own = wording.minutes(score.minutes)
    if other == own:
        return
    message = (
        f"with {subject}, the scaling factor is {{found:.6g}} ({score.reason}: {{expected:.6g}})"
        f" and the score is {other} minutes ({score.reason}: {own})"
    )
    is_better = score.index is None and factor < score.factor * (1 - _PRECISION)
    weight = {} if is_better else NOTE
    yield finding(OTHER_SCORE, message, found=factor, expected=score.factor, **weight)


def _value(text: str) -> Any:
    """Return the factor in ``scaling.json``, which may be any value; None if there is none.

    Raises:
        JsonSyntaxError: the file is not JSON, too large, or nested too deeply.
    """
    fields = parse_json(text)
    return fields.get("scaling_factor") if isinstance(fields, dict) else None
