"""The run of a file that holds several, which break dozens of rules on order and number."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from msgspec.structs import replace

from mlperf_pkg.findings import Basis, Finding, in_order, verdicts_of
from mlperf_pkg.infra.source import Source
from mlperf_pkg.log.spans import RunSpan, spans_of
from mlperf_pkg.rulebook.load import finding_of
from mlperf_pkg.rulebook.rounds import known_verdicts
from mlperf_pkg.run.model import LogFile, Run

_MAX_BYTES = 1 << 30  # of a file whose runs are judged one by one
_MAX_LINES = 20  # in a message


def run_of_several(run: Run, log: LogFile, read_alone: Callable[[LogFile], Run]) -> Run:
    """Return the run of a file, without the findings that only the number of its runs causes.

    A finding has a cause of its own if one of the runs, as ``read_alone`` reads it, has one of the
    same code.
    """
    with log.source.open() as stream:
        spans = spans_of(stream)
    if len(spans) == 1:
        return run
    codes_of_runs = _codes_of_runs(run, log, spans, read_alone)
    kept = [finding for finding in run.findings if finding.code in codes_of_runs]
    dropped = [finding for finding in run.findings if finding.code not in codes_of_runs]
    findings = in_order([*kept, _several_runs(run.path, spans, dropped)])
    verdicts = known_verdicts(verdicts_of(findings), run.usage, run.round)
    return replace(run, findings=findings, verdicts=verdicts)


def _codes_of_runs(
    run: Run, log: LogFile, spans: list[RunSpan], read_alone: Callable[[LogFile], Run]
) -> set[str]:
    """Return the codes of the findings on the runs of a file, each read alone if it is not large.

    ``run`` is all of them, read as one.
    """
    if log.source.size > _MAX_BYTES:
        return {"LOG111", *(finding.code for finding in run.findings)}
    codes_of_runs = {"LOG111"}
    for text in _texts_of_runs(log.source, spans):
        alone = read_alone(replace(log, source=Source(run.path, text), round=run.round))
        codes_of_runs.update(finding.code for finding in alone.findings)
    return codes_of_runs


def _several_runs(path: str, spans: list[RunSpan], dropped: list[Finding]) -> Finding:
    """Return the finding that a file has several runs, in place of those that were dropped."""
    is_official = any(finding.fails(Basis.OFFICIAL) for finding in dropped)
    lines = [span.lines[0] for span in spans[1:]]
    places = "line " if len(lines) == 1 else "lines "
    places += ", ".join(map(str, lines[:_MAX_LINES]))
    if len(lines) > _MAX_LINES:
        places += ", ..."
    message = "the file has {found} runs; expected {expected} run in a file (split the file"
    basis = Basis.BOTH if is_official else Basis.RULES
    return finding_of(
        "LOG111",
        f"{message} before {places})",
        path,
        line=lines[0],
        basis=basis,
        found=len(lines) + 1,
        expected=1,
    )


def _texts_of_runs(source: Source, spans: Iterable[RunSpan]) -> Iterator[bytes]:
    """Yield the text of each run."""
    with source.open() as stream:
        for span in spans:
            yield stream.read(span.size)
