"""How many findings there are, and in how many result sets, descriptions, logs and submissions.

Every output that counts findings counts them here.
"""

from collections.abc import Iterable, Iterator
from enum import StrEnum

from msgspec import Struct

from mlperf_pkg.findings import Finding
from mlperf_pkg.results.report import Report
from mlperf_pkg.results.wording import counted


class Thing(StrEnum):
    """What a finding is about, in the order in which amounts name them."""

    SET = "result set"
    SYSTEM = "system description"
    LOG = "log"
    SUBMISSION = "submission"
    FILE = "file"


class FindingSubject(Struct, frozen=True):
    """One thing that findings are about: a result set by its id, anything else by its path."""

    thing: Thing
    name: str


class Subjects:
    """What the findings of a report are about; every finding is about one thing.

    A log is one that belongs to no result set. A file is none of the others, such as an input that
    cannot be read, or a log on whose round something was found.
    """

    def __init__(self, report: Report) -> None:
        """Take the result sets, system descriptions and logs from the rows of the report."""
        self.sets = {row.id for row in report.result_sets}
        self._systems = {row.path for row in report.systems}
        self._logs = {run.path for run in report.runs if run.set is None}
        self._raw = {run.path for run in report.runs if "/results/" not in f"/{run.path}"}

    def of(self, finding: Finding) -> FindingSubject:
        """Return what a finding is about."""
        if finding.set in self.sets:
            return FindingSubject(Thing.SET, finding.set or "")
        if finding.about in self._systems:
            return FindingSubject(Thing.SYSTEM, finding.about)
        if finding.path in self._logs:
            return FindingSubject(Thing.LOG, finding.path)
        if finding.subject is not None and finding.path not in self._raw:
            return FindingSubject(Thing.SUBMISSION, finding.subject)
        return FindingSubject(Thing.FILE, finding.path)

    def in_words(self, findings: Iterable[Finding], noun: str) -> Iterator[str]:
        """Yield the number of findings in each kind of thing: ``20 errors in 18 of 202 result
        sets``, ``81 errors in 81 system descriptions``.

        Each has the ``noun`` of the findings. Logs are said to be outside result sets if there are
        any.
        """
        subjects = [self.of(finding) for finding in findings]
        for thing in Thing:
            about = [subject for subject in subjects if subject.thing is thing]
            if not about:
                continue
            number = counted(len(about), noun)
            affected = len(set(about))
            if thing is Thing.SET:
                yield f"{number} in {affected:,} of {counted(len(self.sets), thing)}"
            elif thing is Thing.LOG and self.sets:
                yield f"{number} in {counted(affected, thing)} outside result sets"
            else:
                yield f"{number} in {counted(affected, thing)}"
