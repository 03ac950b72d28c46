"""The round of a run, where the user does not name it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import UTC, date, datetime, timedelta

from msgspec.structs import replace

from mlperf_pkg.findings import Verdict, Verdicts
from mlperf_pkg.infra.resources import official_folder
from mlperf_pkg.infra.rules_folders import per_rulebook
from mlperf_pkg.rulebook.files import rounds
from mlperf_pkg.rulebook.load import benchmarks_of, load_round, submission_date

# Published logs are dated up to about four weeks after the submission (reruns in review).
REVIEW = timedelta(weeks=4)

_TREE = re.compile(r"(?:(training|hpc)_results_|(hpc)_)?v(\d+\.\d+)")


def round_of_tree(parts: Iterable[str]) -> tuple[str, str] | None:
    """Return usage and round by the names of folders, innermost first: ``training_results_v2.0``.

    ``v2.0`` and ``hpc_v3.0`` are valid as well. None if no name has a round.
    """
    for name in parts:
        if match := _TREE.fullmatch(name):
            return (match[1] or match[2] or "training", match[3])
    return None


def round_of_run(usage: str, time_ms: float, benchmark: str) -> tuple[str, str]:
    """Return the first round that accepts a run of that time and benchmark, and the reason.

    Published logs may be older than their round, as logs may be submitted again, but never younger
    than its submission and review. For a later log it is the newest round. A benchmark that no
    round has is ignored, and so is a time of 0.
    """
    day = _day(time_ms)
    fitting = _rounds_with(usage, benchmark)
    for name, last in (fitting or (_rounds_with(usage, None) if time_ms else {})).items():
        if day <= last:
            what = f"{benchmark} run" if fitting else "run"
            return name, f"{what} of {day}: first round with a submission after it"
    newest = list(fitting or rounds(usage))[-1]
    if not fitting and not time_ms:
        return newest, "neither a time nor a known benchmark, so the newest round"
    return newest, f"run of {day}: after every submission, so the newest round"


@per_rulebook
def has_ruleset(usage: str, round_name: str) -> bool:
    """Return whether the installed mlperf-logging has the ruleset of one of the ``rounds``.

    Where it has not, what it will say is unknown.
    """
    ruleset = load_round(usage, round_name).ruleset
    return (official_folder() / "compliance_checker" / f"{usage}_{ruleset}").is_dir()


def known_verdicts(verdicts: Verdicts, usage: str, round_name: str) -> Verdicts:
    """Return verdicts, the official one as not checked where mlperf-logging has no ruleset."""
    if has_ruleset(usage, round_name):
        return verdicts
    return replace(verdicts, official=Verdict.NOT_CHECKED)


@per_rulebook
def _rounds_with(usage: str, benchmark: str | None) -> Mapping[str, date]:
    """Return the rounds with a benchmark (None: any), each with the last day of its runs."""
    return {
        name: submission_date(usage, name) + REVIEW
        for name in rounds(usage)
        if benchmark is None or benchmark in benchmarks_of(usage, name)
    }


def _day(time_ms: float) -> date:
    try:
        return datetime.fromtimestamp(time_ms / 1000, UTC).date()
    except (ValueError, OverflowError, OSError):
        return date.max - REVIEW
