"""Whether the runs of a set are what they say: different runs of one configuration."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from mlperf_pkg.checks.context import SetContext, set_finding
from mlperf_pkg.findings import Basis, Finding, Severity
from mlperf_pkg.log.record import shown
from mlperf_pkg.run.model import Run

_NOTE: dict[str, Any] = {"basis": Basis.ADVICE, "severity": Severity.NOTE}
_SHOWN = 5


def check_copies(case: SetContext) -> Iterator[Finding]:
    """No run may be submitted twice, whatever was edited in the copy."""
    first: dict[bytes, Run] = {}
    for run in case.runs:
        if run.fingerprint is None:
            continue
        original = first.setdefault(run.fingerprint, run)
        if original is not run:
            yield set_finding(
                case,
                "SET112",
                f"the same run as {original.path}: every evaluation has its value and its time",
                path=run.path,
                basis=Basis.RULES,
            )


def check_overlap(case: SetContext) -> Iterator[Finding]:
    """Runs at the same time on one system; common in published sets, so only noted."""
    timed = [(r.start_ms, r.stop_ms, r.path) for r in case.runs if r.start_ms and r.stop_ms]
    ordered = sorted(timed)
    overlapping = sum(later[0] < earlier[1] for earlier, later in pairwise(ordered))
    if overlapping:
        message = f"{overlapping} runs begin before the one before them has ended"
        yield set_finding(case, "SET113", message, **_NOTE)


def check_batch_size(case: SetContext) -> Iterator[Finding]:
    """One batch size in all runs, and that the one which the RCP checker picks up."""
    sizes = sorted({size for run in case.runs for size in run.batch_sizes})
    if len(sizes) > 1:
        yield set_finding(
            case,
            "SET108",
            f"the runs have different batch sizes: {', '.join(sizes[:_SHOWN])}",
            basis=Basis.RULES,
            found=sizes,
            expected="one global_batch_size",
        )
    for run in case.runs:
        size = run.convergence.batch_size
        if type(size) is int and str(size) in run.batch_sizes:
            continue
        read = shown(size)
        if run.batch_sizes and read not in run.batch_sizes and not run.convergence.crash:
            yield set_finding(
                case,
                "RCP104",
                f"the RCP checker takes {read} for the batch size, from a record that only"
                " holds the word global_batch_size",
                path=run.path,
                basis=Basis.RULES,
                severity=Severity.WARNING,
                found=read,
                expected=run.batch_sizes[0],
            )


def check_names(case: SetContext) -> Iterator[Finding]:
    """The organisation and platform that the logs name."""
    named = {name: {run.text(name) for run in case.runs} for name in ("org", "platform")}
    if blank := [n for n, values in named.items() if any(map(_is_placeholder, values))]:
        message = f"submission_{' and submission_'.join(blank)} is still a PLACEHOLDER"
        yield set_finding(case, "SET114", message, **_NOTE)
    said = case.submitter
    strange = sorted(org for org in named["org"] if org and said and not _alike(org, said))
    if strange and "org" not in blank:
        message = f"the logs name {', '.join(map(shown, strange))}, the tree {case.submitter}"
        yield set_finding(case, "SET115", message, **_NOTE)


def _is_placeholder(text: str) -> bool:
    return "PLACEHOLDER" in text.upper()


def _alike(one: str, other: str) -> bool:
    plain = ["".join(filter(str.isalnum, name.lower())) for name in (one, other)]
    return plain[0] in plain[1] or plain[1] in plain[0]


def check_code(case: SetContext) -> Iterator[Finding]:
    """Code for the benchmark, and in it the configuration files that the logs name."""
    if case.loose or case.code is None:
        return
    source = "submission_rules, Code"
    files = case.code.get(case.files.benchmark, ())
    if not files:
        message = f"no code in benchmarks/{case.files.benchmark}/"
        yield set_finding(
            case, "CODE101", message, basis=Basis.RULES, severity=Severity.WARNING, source=source
        )
        return
    names = {name.rpartition("/")[2] for name in files}
    for run in case.runs:
        for config, line in run.config_files.items():
            if config.strip('"').rpartition("/")[2] not in names:
                yield set_finding(
                    case,
                    "CODE102",
                    f"config_filename {config} names no file under benchmarks/",
                    path=run.path,
                    line=line,
                    basis=Basis.RULES,
                    severity=Severity.WARNING,
                    source=source,
                )


CHECKS = (check_copies, check_overlap, check_batch_size, check_names, check_code)
