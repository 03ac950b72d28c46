"""The companies of a round: their submissions, partners and numbers of results."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping

from msgspec import Struct

from mlperf_pkg.checks.system_schema import whole_number
from mlperf_pkg.commands.review.model import Round
from mlperf_pkg.errors import UserError
from mlperf_pkg.infra.text import did_you_mean, letters
from mlperf_pkg.results.report import ResultSetRow, description_path
from mlperf_pkg.submission.membership import submitters

LARGE = 512
"""The number of accelerators (else processors) from which a submission is ranked by scale.

Source: submission_rules, Required reviews (large scale submission review assignment).
"""


_PLUS = "+"  # between the names of a joint submission


class Company(Struct, frozen=True):
    """A company that counts as a submitter: ``folders`` are the names of its submissions.

    ``results`` is the number of results on systems below ``LARGE``, ``large`` that on all others;
    ``scale`` is the number of accelerators of the largest system, or of processors if it has none.
    """

    name: str
    folders: tuple[str, ...]
    partners: frozenset[str] = frozenset()
    results: int = 0
    large: int = 0
    scale: int = 0


def companies(reviewed: Round) -> tuple[Company, ...]:
    """Return all companies that are not excluded, by name.

    Raises:
        UserError: a name of ``--joint`` or ``--exclude`` is not that of a submitter.
    """
    folders = _spelled(reviewed)
    partners: dict[str, set[str]] = {}
    for joint in joints(reviewed):
        own = () if joint.folder is None else folders.pop(joint.folder, ())
        for name in joint.companies:
            folders[name] = (*folders.get(name, ()), *own)
            partners.setdefault(name, set()).update({*joint.companies} - {name})
    excluded = {_known(name, folders, "--exclude") for name in reviewed.choices.excluded}
    scales = _scales(reviewed)
    return tuple(
        _company(reviewed, name, folders[name], frozenset(partners.get(name, ())), scales)
        for name in sorted(folders)
        if name not in excluded
    )


class Joint(Struct, frozen=True):
    """Companies that submit together: in a ``folder``, or each in its own."""

    folder: str | None
    companies: tuple[str, ...]

    @property
    def is_joint(self) -> bool:
        """Whether there are several companies."""
        return len(self.companies) > 1


def joints(reviewed: Round) -> list[Joint]:
    """Return the joint submissions: those of ``--joint``, and the folders named like A+B.

    Raises:
        UserError: as ``companies``.
    """
    folders = _spelled(reviewed)
    chosen = [_parsed(text, folders) for text in reviewed.choices.joint]
    named = {joint.folder for joint in chosen}
    others = (Joint(name, _companies(name, folders)) for name in folders if name not in named)
    return [*chosen, *(joint for joint in others if joint.is_joint)]


def by_results(members: Iterable[Company], seed: int) -> list[Company]:
    """Return the companies with results below ``LARGE``, most results first."""
    ranked = (company for company in members if company.results)
    return sorted(ranked, key=lambda company: (-company.results, tie_break(company.name, seed)))


def by_scale(members: Iterable[Company], seed: int) -> list[Company]:
    """Return the companies with a submission from ``LARGE`` on, the largest scale first."""
    ranked = (company for company in members if company.large)
    return sorted(ranked, key=lambda company: (-company.scale, tie_break(company.name, seed)))


def tie_break(name: str, seed: int) -> bytes:
    """Return the sort key of a company among equals: a digest of the seed and the name."""
    return hashlib.sha256(f"{seed} {name}".encode("utf-8", "backslashreplace")).digest()


# ---- names ----------------------------------------------------------------------------------


def spellings(reviewed: Round) -> Iterator[list[str]]:
    """Yield the names of submissions that differ only in case, spaces and punctuation."""
    names = submitters(submission.name for submission in reviewed.submissions)
    yield from (alike for alike in names.values() if len(alike) > 1)


def _spelled(reviewed: Round) -> dict[str, tuple[str, ...]]:
    """Return the folders by submitter: one folder, or those of all spellings of the name."""
    names = [submission.name for submission in reviewed.submissions]
    folders: dict[str, tuple[str, ...]] = {name: (name,) for name in names}
    if reviewed.choices.one_spelling:
        for alike in spellings(reviewed):
            folders[alike[0]] = tuple(alike)
            for name in alike[1:]:
                del folders[name]
    return folders


def _parsed(text: str, folders: Mapping[str, tuple[str, ...]]) -> Joint:
    """Return the joint submission that ``A+B`` or ``FOLDER=A+B`` names."""
    label, equals, after = text.partition("=")
    folder = _known(label.strip(), folders, "--joint") if equals else _alike(text, folders)
    joint = Joint(folder, _companies(after if equals else text, folders))
    if not joint.is_joint:
        raise UserError(
            f"--joint {text}: fewer than two companies; expected A+B, or FOLDER=A+B for a folder"
            " with another name"
        )
    if folder is None:
        for name in joint.companies:
            _known(name, folders, "--joint")
    return joint


def _companies(text: str, folders: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    """Return the names between plus signs, spelt like their folders if they have any."""
    names = [name.strip() for name in text.split(_PLUS)]
    return tuple(dict.fromkeys(_alike(name, folders) or name for name in names if name))


def _alike(name: str, folders: Mapping[str, tuple[str, ...]]) -> str | None:
    """Return the folder of this name, or the only one in another spelling."""
    if name in folders:
        return name
    alike = [folder for folder in folders if letters(folder) == letters(name)]
    return alike[0] if len(alike) == 1 else None


def _known(name: str, folders: Mapping[str, tuple[str, ...]], option: str) -> str:
    if folder := _alike(name, folders):
        return folder
    suggestion = did_you_mean(name, folders) or f"; expected one of {', '.join(sorted(folders))}"
    raise UserError(f"{option}: {name!r} is not a submitter of the round{suggestion}")


# ---- results --------------------------------------------------------------------------------


def _company(
    reviewed: Round,
    name: str,
    folders: tuple[str, ...],
    partners: frozenset[str],
    scales: Mapping[str, int],
) -> Company:
    rows: list[ResultSetRow] = [row for folder in folders for row in reviewed.sets[folder]]
    sizes = [scales.get(description_path(row), 0) for row in rows]
    large = sum(size >= LARGE for size in sizes) if reviewed.report.usage != "hpc" else 0
    return Company(name, folders, partners, len(rows) - large, large, max(sizes, default=0))


def _scales(reviewed: Round) -> dict[str, int]:
    """Return the accelerators of each system, or its processors if it has none, by path."""
    scales = {path: system.accelerators or 0 for path, system in reviewed.systems.items()}
    for system in reviewed.checked.systems:
        if not scales.get(system.path):
            per_node = whole_number((system.contents or {}).get("host_processors_per_node"))
            scales[system.path] = (system.nodes or 0) * (per_node or 0)
    return scales
