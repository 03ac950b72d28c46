"""Judge a run whose log still grows: which findings are already certain."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct, field

from mlperf_pkg.checker.waivers import Waivers
from mlperf_pkg.findings import Finding, Pending, Severity
from mlperf_pkg.infra.source import Source
from mlperf_pkg.log.reader import OF_LINES
from mlperf_pkg.rulebook.load import load_benchmark, load_round
from mlperf_pkg.rulebook.model import Rules
from mlperf_pkg.run import evaluations
from mlperf_pkg.run.model import LogFile, Run
from mlperf_pkg.run.reading import read_run


class Judge(Struct, frozen=True):
    """Judges the log ``path`` by waivers and the rules of a ``round`` of a ``usage``.

    Both are inferred where they are None.
    """

    path: str
    usage: str | None = None
    round: str | None = None
    waivers: Waivers = field(default_factory=Waivers)

    def __call__(self, text: bytes) -> Run:
        """Return the run that the records so far describe, as if the log ended here.

        Raises:
            UserError: the rulebook has no such round.
        """
        log = LogFile(Source(self.path, text), self.usage, self.round)
        return self.waivers.waive_run(read_run(log))


def certain(run: Run) -> list[Finding]:
    """Return the findings that no later record can change.

    Findings of rules wait until the log has named everything that decides which rules apply, and
    notes until the end, as a later record may turn one into an error.
    """
    return [
        finding
        for finding in run.findings
        if not isinstance(finding, Pending)
        and finding.severity is not Severity.NOTE
        and (run.identified or finding.code.startswith(OF_LINES))
    ]


def missing(run: Run) -> tuple[str, ...]:
    """Return the keys that are required and not logged, without those of the training itself."""
    keys = dict(_keys_by_code(run))
    absent = (
        keys.get(finding.code, "")
        for finding in run.findings
        if isinstance(finding, Pending) and finding.is_error and finding.line is None
    )
    later = ("_start", "_stop", *evaluations.KEYS)
    return tuple(sorted({key for key in absent if key and not key.endswith(later)}))


def _keys_by_code(run: Run) -> Iterator[tuple[str, str]]:
    for rules in _sections(run):
        for key, rules_of_key in rules.items():
            yield from ((rule.code, key) for rule in rules_of_key)


def _sections(run: Run) -> Iterator[Rules]:
    yield from load_round(run.usage, run.round).sections.values()
    if benchmark := load_benchmark(run.usage, run.round, run.benchmark):
        yield from benchmark.sections.values()
        for variants in benchmark.variants.values():
            yield from variants.values()
