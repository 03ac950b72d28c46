"""What must stand beside a result that is shown: the one place that knows the requirements.

They apply to what is made for showing: pages, charts, and tables in Markdown and HTML. They do not
apply to the output of a check, annotations, summaries of CI and CSV.
Source: MLPerf_Results_Messaging_Guidelines
"""

import re
from collections.abc import Iterable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from mlperf_pkg.checker.values import Checked
from mlperf_pkg.checks.descriptions import CATEGORIES, SystemFile, category
from mlperf_pkg.checks.published import is_verified
from mlperf_pkg.commands.results.systems import own_id, systems_of
from mlperf_pkg.published.model import PublishedSet, known_division
from mlperf_pkg.published.results import usable_results
from mlperf_pkg.results import wording
from mlperf_pkg.results.report import Report, ResultSetRow, SystemRow, description_path
from mlperf_pkg.rulebook.model import version_of
from mlperf_pkg.rulebook.rounds import TRAINING

LEGEND = (
    "The MLPerf name and logo are registered and unregistered trademarks of MLCommons Association"
    " in the United States and other countries. All rights reserved. Unauthorized use strictly"
    " prohibited. See www.mlcommons.org for more information."
)
NOT_VERIFIED = "Result not verified by MLCommons Association."
PER_ACCELERATOR = "accelerator-minutes (minutes of training times the number of accelerators)"
GAP = "gaps and changes (minutes of a result compared with those of another result)"
SPEED_UP = "speed-up (minutes of the baseline divided by minutes of the result)"

_BESIDE_VERIFIED = (
    "Unverified results have not been through an MLPerf review and may use methods that are"
    " inconsistent with the MLPerf specification for verified results."
)
_OPEN = (
    "Open results need not follow the rules of Closed on the model, its training and its"
    " hyperparameters. Compare Open results with Closed results only if you say what differs."
)
_MOST_BENCHMARKS = 12
_DIVISIONS = {"closed": "Closed", "open": "Open"}
_RESULT_ID = re.compile(r"\d+\.\d+-\d+")  # that MLCommons gave, such as 5.1-0023
_USAGES = {TRAINING: "Training", "hpc": "HPC"}


class ShownResult(Struct, frozen=True):
    """A result that is shown, with what must stand beside it.

    ``category`` is as in the rules, or as described; ``accelerators`` are those of the whole
    system, ``minutes`` are its score, if any. A result ``is_verified`` if it was
    published and its logs are those of the record. ``id`` is that of MLCommons, empty where it is
    unknown.
    """

    usage: str
    round: str
    benchmark: str
    division: str = ""
    category: str = ""
    accelerators: int | None = None
    minutes: float | None = None
    is_verified: bool = False
    id: str = ""


def shown_results(checked: Checked) -> dict[str, ShownResult]:
    """Return the result sets of a check as they are shown, by id; reads their logs once more."""
    results = {}
    contexts = {context.id: context for context in checked.contexts}
    ids = {}
    for submitted in systems_of(checked):
        for _, result in submitted.sets:
            ids[result.row.id] = result_id(own_id(submitted) or "")
    for row in checked.report.result_sets:
        system = None
        verified = False
        if row.id in contexts:
            system = contexts[row.id].system
            verified = is_verified(contexts[row.id], row.unscaled_minutes)
        shown = shown_result(row, system, is_verified=verified)
        results[row.id] = replace(shown, id=ids.get(row.id, ""))
    return results


def result_id(text: str) -> str:
    """Return an id if it is one of MLCommons; empty if it is a private one."""
    if _RESULT_ID.fullmatch(text):
        return text
    return ""


def unverified_results(report: Report) -> dict[str, ShownResult]:
    """Return the result sets of a report as they are shown before they are submitted, by id."""
    systems = {system.path: system for system in report.systems}
    results = {}
    for row in report.result_sets:
        system = systems.get(description_path(row))
        results[row.id] = shown_result(row, system, is_verified=False)
    return results


def shown_result(
    row: ResultSetRow, system: SystemFile | SystemRow | None, *, is_verified: bool
) -> ShownResult:
    """Return a result set as it is shown; ``system`` is None if there is no description."""
    status = ""
    accelerators = None
    if system:
        status = system.status or ""
        accelerators = system.accelerators
    return ShownResult(
        usage=row.usage,
        round=row.round,
        benchmark=row.benchmark,
        division=known_division(row.division),
        category=category_in_words(status),
        accelerators=accelerators,
        minutes=row.score_minutes,
        is_verified=is_verified,
    )


def published_result(row: PublishedSet) -> ShownResult:
    """Return a set of the record as it is shown."""
    return ShownResult(
        usage=row.usage,
        round=row.round,
        benchmark=row.benchmark,
        division=known_division(row.division),
        category=category_in_words(row.status),
        accelerators=row.accelerators,
        minutes=row.score_minutes,
        is_verified=True,
    )


def category_in_words(status: str) -> str:
    """Return the category of an availability as the rules name it, of another one as described."""
    return CATEGORIES.get(category(status) or "", status)


def score(minutes: float | None, *, is_verified: bool) -> str:
    """Return a score in minutes, ``unverified`` where it must say so."""
    text = wording.minutes(minutes)
    if is_verified or text == wording.NOTHING:
        return text
    return f"{text} ({wording.UNVERIFIED})"


def marked(text: str) -> str:
    """Return text with the notice symbol after the name of MLPerf."""
    return text.replace("MLPerf ", "MLPerf\u00ae ")


def embargo(results: Iterable[ShownResult]) -> str:
    """Return that results may not be shown yet; empty if their rounds are published."""
    published = usable_results()
    published_rounds = set[tuple[str, str]]()
    as_of = ""
    if published:
        published_rounds.update(
            (round_.usage, round_.name) for round_ in published.provenance.rounds
        )
        as_of = f" (not published on {published.provenance.made})"
    names = []
    for usage, round_ in sorted(
        {(result.usage, result.round) for result in results} - published_rounds
    ):
        names.append(marked(wording.edition(usage, round_)))
    if not names:
        return ""
    subject = wording.enumerated(names)
    return f"These results may not be shown before MLCommons has published {subject}{as_of}."


def notice(results: Iterable[ShownResult], derived: Sequence[str] = ()) -> list[str]:
    """Return the paragraphs that must stand beside results, as plain text.

    ``derived`` names the derived metrics that are shown with them, each with its basis, such as
    ``SPEED_UP``. The same results give the same text: its date is that of the record.
    """
    shown = list(results)
    paragraphs = [embargo(shown)]
    for usage in _USAGES:
        of_usage = [result for result in shown if result.usage == usage]
        if of_usage:
            paragraphs.append(_scope(usage, of_usage))
    if {"closed", "open"} <= {result.division for result in shown}:
        paragraphs.append(_OPEN)
    paragraphs.append(_verification([result for result in shown if result.minutes]))
    if derived:
        metrics = wording.enumerated(derived)
        paragraphs.append(
            f"Derived metrics: {metrics}. They are neither official MLPerf\u00ae results nor"
            " verified by MLCommons Association."
        )
    paragraphs.append(LEGEND)
    return list(filter(None, paragraphs))


def _scope(usage: str, results: Sequence[ShownResult]) -> str:
    """Return version, division, benchmarks, category and chip count of results of one usage."""
    versions = sorted({result.round for result in results}, key=version_of)
    divisions = sorted({_DIVISIONS.get(result.division, "no") for result in results})
    benchmarks = sorted({result.benchmark for result in results})
    categories = sorted({result.category or "no known category" for result in results})
    counts = sorted({result.accelerators for result in results if result.accelerators})
    parts = [
        f"MLPerf\u00ae {_USAGES[usage]} {wording.enumerated([f'v{name}' for name in versions])}",
        f"{wording.enumerated(divisions)} division",
        wording.shortened(benchmarks, _MOST_BENCHMARKS, "benchmark"),
        wording.enumerated(categories),
    ]
    if counts:
        parts.append(_range(counts))
    return f"{'; '.join(parts)}."


def _range(counts: Sequence[int]) -> str:
    most = wording.counted(counts[-1], "accelerator")
    if len(counts) == 1:
        return most
    return f"{counts[0]:,} to {most}"


def _verification(results: Sequence[ShownResult]) -> str:
    """Return which results are verified, from where they are and when they were retrieved."""
    if not results:
        return ""
    published = usable_results()
    snapshot = ""
    if published:
        provenance = published.provenance
        snapshot = f"{provenance.source}, retrieved on {provenance.made}"
    verified = [result for result in results if result.is_verified]
    ids = sorted(filter(None, {result.id for result in verified}))
    source = f"the logs are those of the published results in {snapshot}"
    if ids:
        source += f"; results {', '.join(ids)}"
    if len(verified) == len(results):
        return f"Verified by MLCommons Association: {source}."
    if verified:
        return (
            f"Marked {wording.UNVERIFIED}: {NOT_VERIFIED} {_BESIDE_VERIFIED} All other results are"
            f" verified by MLCommons Association: {source}."
        )
    text = NOT_VERIFIED
    if snapshot:
        text += f" Compared with {snapshot}."
    return text
