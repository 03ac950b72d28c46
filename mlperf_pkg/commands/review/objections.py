"""Objections: the findings of one code against one submitter, which a reviewer may file."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import cached_property
from itertools import chain
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from mlperf_pkg.checker.check import check
from mlperf_pkg.checker.values import Checked, Options
from mlperf_pkg.commands.review.model import Round, Section, Table
from mlperf_pkg.errors import UserError
from mlperf_pkg.findings import Basis, Finding, Unchecked
from mlperf_pkg.infra.source import Source
from mlperf_pkg.infra.stores import is_url
from mlperf_pkg.results.report import ResultSetRow
from mlperf_pkg.results.wording import counted
from mlperf_pkg.submission.model import Submission

ALL = "all"
"""Instead of codes: all errors by the rules."""

_LONGEST = 100  # characters of an id
_PARTS = ("results", "systems", "benchmarks")  # of a submission
_Chosen = Callable[[Finding], bool]


class Objection(Struct, frozen=True):
    """An objection against a submitter: its findings of one code.

    ``about`` are the subjects of the findings, as paths that begin with the submitter.
    """

    id: str
    against: str
    code: str
    findings: tuple[Finding, ...]
    about: tuple[str, ...]

    @property
    def title(self) -> str:
        """The message of the first finding, and the number of others."""
        more = len(self.findings) - 1
        return self.findings[0].text + (f" (and {counted(more, 'more finding')})" if more else "")


class Examined(Struct, frozen=True, dict=True):
    """The check of a round or of a submission, to be searched for objections.

    ``within`` is a path in the submission; findings elsewhere are ignored.
    """

    checked: Checked
    within: str = ""

    @cached_property
    def submissions(self) -> tuple[Submission, ...]:
        """All submissions."""
        return tuple(chain.from_iterable(input_.submissions for input_ in self.checked.inputs))

    @cached_property
    def rows(self) -> dict[str, ResultSetRow]:
        """The result sets by path."""
        return {self.named(row.path): row for row in self.checked.report.result_sets}

    @cached_property
    def sources(self) -> dict[str, Source]:
        """The files on this machine by path."""
        places = chain.from_iterable(input_.places.values() for input_ in self.checked.inputs)
        return {self.named(p.label): p.source for p in places if not p.source.stored}

    @cached_property
    def subjects(self) -> set[str]:
        """The subjects of findings: submissions, descriptions, result sets and logs."""
        report = self.checked.report
        paths = [row.path for row in report.result_sets]
        paths += [row.path for row in report.systems]
        paths += [row.path for row in report.runs]
        return {item.name for item in self.submissions}.union(map(self.named, paths))

    @property
    def findings(self) -> Iterator[tuple[str, Finding]]:
        """The findings that are not waived, with their submitters; paths begin with these."""
        submitters = {item.place.label or item.name: item.name for item in self.submissions}
        for finding in self.checked.report.findings:
            if finding.waiver is None and not isinstance(finding, Unchecked):
                about = self.named(finding.about)
                if submitter := submitters.get(about.partition("/")[0]):
                    yield submitter, self._renamed(finding, about)

    @cached_property
    def alone(self) -> Submission | None:
        """The submission if it was checked without its round."""
        return next((item for item in self.submissions if item.place.label == ""), None)

    def named(self, path: str) -> str:
        """Return a path of the report that begins with the name of its submission."""
        alone = self.alone
        if alone is None:
            return path
        return alone.name if path in ("", ".") else f"{alone.name}/{path}"

    def _renamed(self, finding: Finding, about: str) -> Finding:
        places = tuple(replace(place, path=self.named(place.path)) for place in finding.occurrences)
        return replace(finding, path=self.named(finding.path), subject=about, places=places)


def examine(path: str, options: Options) -> Examined:
    """Check a round, a submission, or the submission of which ``path`` is a part.

    Raises:
        UserError: as ``check``, or there is no submission.
    """
    top, within = path, ""
    if not is_url(path):
        here = Path(path).absolute()
        for folder in (here, *here.parents):
            if folder.name in _PARTS and all((folder.parent / n).is_dir() for n in _PARTS[:2]):
                top, within = str(folder.parent), here.relative_to(folder.parent).as_posix()
                break
    if within and not Path(path).exists():
        raise UserError(f"{path}: no such file or folder")
    examined = Examined(check([top], options), within)
    if not examined.submissions:
        raise UserError(f"{path}: no submission; expected a round, a submission or a part of one")
    return examined


def find_objections(examined: Examined, prefixes: Sequence[str]) -> list[Objection]:
    """Return the objections for these prefixes of codes, by submitter and code.

    ``ALL`` selects all errors by the rules. Waived and unchecked findings are left out.
    """
    within = examined.named(examined.within) if examined.within else ""
    by_key: dict[tuple[str, str], list[Finding]] = {}
    for submitter, finding in examined.findings:
        chosen = finding.code.startswith(tuple(prefixes)) or (
            ALL in prefixes and finding.fails(Basis.RULES)
        )
        if chosen and _is_within(finding, within):
            by_key.setdefault((submitter, finding.code), []).append(finding)
    ids: set[str] = set()
    objections = []
    for (submitter, code), findings in sorted(by_key.items()):
        name = _new_id(f"{submitter}-{code}-{examined.within}", ids)
        ids.add(name)
        about = tuple(dict.fromkeys(finding.about for finding in findings))
        objections.append(Objection(name, submitter, code, tuple(findings), about))
    return objections


def section(reviewed: Round) -> Section:
    """Return the errors by the rules, against which objections may be filed."""
    objections = find_objections(Examined(reviewed.checked), (ALL,))
    rows = tuple(
        (item.against, item.code, len(item.about), item.title, item.findings[0].source)
        for item in objections
    )
    number = counted(len(objections), "objection")
    table = Table(
        name="errors",
        title="Errors by the rules",
        columns=("against", "code", "places", "found", "rule"),
        rows=rows,
    )
    return Section(
        name="objections",
        title="Objections",
        text=(
            "Errors by the written rules may be filed as objections, one for each code and"
            " submitter. 'mlperf-pkg review objection CODES ROUND_FOLDER -o FOLDER' writes the"
            " texts.",
        ),
        tables=(table,) if rows else (),
        summary=(f"{number} to file" if rows else "no errors by the rules",),
    )


def _is_within(finding: Finding, within: str) -> bool:
    paths = (finding.about, *(place.path for place in finding.occurrences))
    return not within or any(path == within or path.startswith(f"{within}/") for path in paths)


def _new_id(text: str, taken: Collection[str]) -> str:
    """Return an id that is also the stem of a file."""
    stem = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:_LONGEST] or "objection"
    number, name = 1, stem
    while name in taken:
        number += 1
        name = f"{stem}-{number}"
    return name
