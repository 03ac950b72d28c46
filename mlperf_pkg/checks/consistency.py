"""Whether the runs of a set are what they claim: different runs of one configuration."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Any

from mlperf_pkg.checks.context import SetContext, set_finding
from mlperf_pkg.checks.organisations import are_alike
from mlperf_pkg.findings import Basis, Finding, Severity
from mlperf_pkg.log.record import shown
from mlperf_pkg.run.model import Run
from mlperf_pkg.submission.membership import is_placeholder

_NOTE: dict[str, Any] = {"basis": Basis.ADVICE, "severity": Severity.NOTE}


def check_copies(context: SetContext) -> Iterator[Finding]:
    """Check that no run is submitted twice, whatever was edited in the copy."""
    originals: dict[bytes, Run] = {}
    for run in context.runs:
        if run.fingerprint is None:
            continue
        original = originals.setdefault(run.fingerprint, run)
        if original is not run:
            yield set_finding(
                context,
                "SET112",
                "a copy of {found:s}: every evaluation has the same value and time",
                path=run.path,
                found=original.path,
                basis=Basis.RULES,
            )


def check_overlap(context: SetContext) -> Iterator[Finding]:
    """Note runs at the same time on one system, which are common in published sets."""
    times = sorted((r.start_ms, r.stop_ms) for r in context.runs if r.start_ms and r.stop_ms)
    overlaps = sum(start < previous_stop for (_, previous_stop), (start, _) in pairwise(times))
    if overlaps:
        message = "the number of runs that start before the previous run ends is {found}"
        yield set_finding(context, "SET113", message, found=overlaps, **_NOTE)


def check_batch_size(context: SetContext) -> Iterator[Finding]:
    """Check that all runs have one batch size, and that the RCP checker reads that one."""
    sizes = sorted({size for run in _not_killed(context) for size in run.batch_sizes})
    if len(sizes) > 1:
        yield set_finding(
            context,
            "SET108",
            "the runs have different batch sizes: {found:s}; expected {expected}",
            basis=Basis.RULES,
            found=sizes,
            expected="one global_batch_size",
        )
    for run in context.runs:
        yield from _misread_batch_size(context, run)


def check_configuration(context: SetContext) -> Iterator[Finding]:
    """Check that all runs are of one platform and have the same hyperparameters."""
    runs = _not_killed(context)
    spellings = {_letters(name): name for name in (run.text("platform") for run in runs)}
    platforms = [name for name in spellings.values() if name and not is_placeholder(name)]
    if len(platforms) > 1:
        yield set_finding(
            context,
            "SET121",
            "the runs have different platforms: {found:s}; expected {expected}",
            basis=Basis.RULES,
            found=sorted(platforms),
            expected="one submission_platform",
        )
    if differences := different_hyperparameters(runs):
        yield set_finding(
            context,
            "SET122",
            "the runs have different hyperparameters: {found:s}; expected {expected}",
            basis=Basis.RULES,
            found=differences,
            expected="one value of each",
        )


def _not_killed(context: SetContext) -> list[Run]:
    """Return the runs that were not killed; the settings of a killed run do not count."""
    return [run for run in context.runs if not run.killed]


def different_hyperparameters(runs: Sequence[Run]) -> list[str]:
    """Return the hyperparameters of which several runs log different values, with these.

    Those of different benchmarks are not compared, nor those of which a value breaks a rule.
    """
    if not runs or all(run.hyperparameters == runs[0].hyperparameters for run in runs):
        return []
    if len({run.benchmark for run in runs} - {""}) > 1:
        return []
    values: dict[str, set[str]] = {}
    broken = broken_keys(runs)
    for run in runs:
        for key, value in run.hyperparameters.items():
            values.setdefault(key, set()).add(value)
    different = [key for key in values if len(values[key]) > 1 and key not in broken]
    return [f"{key} {' and '.join(sorted(values[key]))}" for key in different]


def broken_keys(runs: Sequence[Run]) -> set[str]:
    """Return the keys whose values break a rule, as the first words of messages."""
    findings = (finding for run in runs for finding in run.findings)
    return {f.message.partition(" ")[0] for f in findings if f.fails(Basis.RULES)}


def _misread_batch_size(context: SetContext, run: Run) -> Iterator[Finding]:
    size = run.convergence.batch_size
    if type(size) is int and str(size) in run.batch_sizes:
        return
    text = shown(size)
    if run.batch_sizes and text not in run.batch_sizes and not run.convergence.crash:
        yield set_finding(
            context,
            "RCP104",
            "the RCP checker reads the batch size {found:s} from a record that only contains"
            " the string global_batch_size; expected {expected}",
            path=run.path,
            basis=Basis.RULES,
            severity=Severity.WARNING,
            found=text,
            expected=run.batch_sizes[0],
        )


def check_names(context: SetContext) -> Iterator[Finding]:
    """Check the organisation and the platform that the logs name."""
    names = {key: {run.text(key) for run in context.runs} for key in ("org", "platform")}
    placeholders = [key for key, texts in names.items() if any(map(is_placeholder, texts))]
    if placeholders:
        keys = " and ".join(f"submission_{key}" for key in placeholders)
        yield set_finding(context, "SET114", f"{keys}: the value is a PLACEHOLDER", **_NOTE)
    submitter = context.submitter
    if not submitter or "org" in placeholders or context.in_workspace:
        return
    if others := sorted(org for org in names["org"] if org and not are_alike(org, submitter)):
        yield set_finding(
            context,
            "SET115",
            "submission_org is {found:s}; expected {expected}, the name of the submission folder",
            found=others,
            expected=submitter,
            **_NOTE,
        )


@lru_cache  # the runs of a set have one name
def _letters(name: str) -> str:
    return "".join(filter(str.isalnum, name.lower()))


CHECKS = (check_copies, check_overlap, check_batch_size, check_configuration, check_names)
