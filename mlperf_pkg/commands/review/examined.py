"""The check of a round or of a submission, with the names of what is in it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import accumulate
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from mlperf_pkg.checker.check import check
from mlperf_pkg.checker.values import Checked, Options
from mlperf_pkg.checks.context import SetContext
from mlperf_pkg.errors import UserError
from mlperf_pkg.findings import Finding, Unchecked
from mlperf_pkg.infra.source import Source
from mlperf_pkg.infra.stores import is_url
from mlperf_pkg.results import wording
from mlperf_pkg.results.report import ResultSetRow, SystemRow, description_path
from mlperf_pkg.results.report import name as last_name

_PARTS = ("results", "systems", "benchmarks")  # of a submission


class ResultName(Struct, frozen=True):
    """The result that a finding is about, and where: the first of its logs, or another file.

    A finding on a description has no benchmark, and one on a submission no system.
    """

    submitter: str
    system: str | None = None
    benchmark: str | None = None
    file: str | None = None
    line: int | None = None

    @property
    def result(self) -> str:
        """The result: ``ACME, dgx, bert``."""
        return ", ".join(filter(None, (self.submitter, self.system, self.benchmark)))

    @property
    def place(self) -> str:
        """The result and the place in it: ``ACME, dgx, bert, result_0.txt:35``."""
        if self.file is None:
            return self.result
        line = f":{self.line}" if self.line else ""
        return f"{self.result}, {self.file}{line}"


class Examined(Struct, frozen=True, dict=True):
    """The check of a round or of a submission, to be searched for objections.

    ``within`` is a path in the submission; findings elsewhere are ignored.
    """

    checked: Checked
    within: str = ""

    @cached_property
    def rows(self) -> dict[str, ResultSetRow]:
        """The result sets by path."""
        return {self.named(row.path): row for row in self.checked.report.result_sets}

    @cached_property
    def contexts(self) -> dict[str, SetContext]:
        """What the result sets were judged from, by path."""
        return {self.named(context.path): context for context in self.checked.contexts}

    def scored(self, about: Sequence[str]) -> dict[str, ResultSetRow]:
        """Return the result sets with a score that findings ``about`` these subjects concern."""
        above = set[str]()
        for name in about:
            above.update(accumulate(name.split("/"), "{}/{}".format))
        scored = {}
        for path, row in self.rows.items():
            description = self.named(description_path(row))
            if row.score_minutes is not None and (path in above or description in above):
                scored[path] = row
        return scored

    @cached_property
    def sources(self) -> dict[str, Source]:
        """The files on this machine by path."""
        sources = {}
        for place in self.checked.places.values():
            if not place.source.stored:
                sources[self.named(place.label)] = place.source
        return sources

    def files(self, paths: Iterable[str]) -> dict[str, Source]:
        """Return those of these paths that are files of the submissions, also of code."""
        wanted = set(paths)
        files = {path: self.sources[path] for path in wanted & self.sources.keys()}
        for submission in self.checked.submissions:
            for entry in submission.entries:
                path = f"{submission.name}/{entry.path}"
                if path in wanted and not entry.folder and entry.link is None:
                    files[path] = submission.place.child(entry.path).source
        return files

    @property
    def subjects(self) -> set[str]:
        """The subjects of findings: submissions, descriptions, result sets and logs."""
        report = self.checked.report
        rows: Any = (*report.result_sets, *report.systems, *report.runs)
        named = {self.named(row.path) for row in rows}
        return named.union(item.name for item in self.checked.submissions)

    @property
    def findings(self) -> Iterator[tuple[str, Finding]]:
        """The findings that are not waived, with their submitters; paths begin with these."""
        for finding in self.checked.report.findings:
            if finding.waiver is not None or isinstance(finding, Unchecked):
                continue
            submission = self.checked.submission_of(finding.about)
            if submission:
                about = self.named(finding.about)
                places = []
                for place in finding.occurrences:
                    places.append(replace(place, path=self.named(place.path)))
                named = replace(
                    finding, path=self.named(finding.path), subject=about, places=tuple(places)
                )
                yield submission.name, named

    def named(self, path: str) -> str:
        """Return a path of the report that begins with the name of its submission."""
        return self.checked.named(path)

    @cached_property
    def _described(self) -> Mapping[str | None, ResultSetRow | SystemRow]:
        """The result sets by id, and the descriptions by path and by path with the submitter."""
        report = self.checked.report
        described: dict[str | None, ResultSetRow | SystemRow] = {}
        for system in report.systems:
            described[system.path] = system
            described[self.named(system.path)] = system
        for row in report.result_sets:
            described[row.id] = row
        return described

    def name_of(self, finding: Finding) -> ResultName:
        """Return what a finding is about, and its first place."""
        row = self._described.get(finding.set) or self._described.get(finding.about)
        about = self.named(finding.about)
        name = ResultName(about.partition("/")[0])
        if finding.line is not None or finding.path != finding.about:
            name = replace(name, file=last_name(finding.path), line=finding.line)
        if isinstance(row, SystemRow):
            return replace(name, system=row.id)
        if row is not None:
            submitter = row.submitter or name.submitter
            return replace(
                name, submitter=submitter, system=row.system, benchmark=wording.benchmark(row)
            )
        return name


def examine(path: str, options: Options) -> Examined:
    """Check a round, a submission, or the submission of which ``path`` is a part.

    Raises:
        UserError: as ``check``, or there is no submission.
    """
    top, within = _submission_and_part(path)
    if within and not Path(path).exists():
        raise UserError(f"{path}: no such file or folder")
    examined = Examined(check([top], options), within)
    if not examined.checked.submissions:
        raise UserError(f"{path}: no submission; expected a round, a submission or a part of one")
    return examined


def _submission_and_part(path: str) -> tuple[str, str]:
    """Return the submission and the path in it, for a path in a submission; else the path."""
    if not is_url(path):
        here = Path(path).absolute()
        for folder in (here, *here.parents):
            parent = folder.parent
            if folder.name in _PARTS and all((parent / name).is_dir() for name in _PARTS[:2]):
                return str(parent), here.relative_to(parent).as_posix()
    return path, ""
