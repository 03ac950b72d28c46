"""What is installed, what it can do here, and what repairs it."""

import os
import platform
import re
import shlex
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import StrEnum
from pathlib import Path

import msgspec
from msgspec import Struct

from mlperf_pkg import __version__
from mlperf_pkg.errors import UserError
from mlperf_pkg.infra.files import cache_folder
from mlperf_pkg.infra.resources import (
    MissingPackageError,
    data_folder,
    installed_version,
    package_source,
    packages_of,
    requirements,
)
from mlperf_pkg.log.block import HAS_SCAN
from mlperf_pkg.published.results import published_results
from mlperf_pkg.rulebook.documents import COMPILED, rounds, usages
from mlperf_pkg.rulebook.load import load_round
from mlperf_pkg.rulebook.rounds import has_ruleset
from mlperf_pkg.rulebook.verified import CODE, Drift, drift, remedy, verified

FORMAT = "mlperf-pkg/doctor/1"
EXTRAS = {
    "report": "pages and charts",
    "data": "exports as Parquet",
    "pandas": "data frames",
    "xlsx": "workbooks",
    "encrypt": "encrypted archives",
    "cluster": "checks by a Dask cluster, and paths in S3",
}
"""What each extra of the package adds for users."""

_ERRORS = (UserError, OSError, msgspec.DecodeError)  # of files that are missing or damaged
_COMPILE = f"{sys.executable} -m mlperf_pkg.rulebook.compile"
_PACKAGE = re.compile(r"[\w.-]+")


class DiagnosisState(StrEnum):
    """Whether something works: OK, works with a limit (NOTE), or not at all (BROKEN)."""

    OK = "ok"
    NOTE = "note"
    BROKEN = "broken"


class Diagnosis(Struct, frozen=True):
    """What is known about one thing; ``repair`` is the command that makes it OK."""

    name: str
    state: DiagnosisState
    text: str
    repair: str = ""


def diagnoses() -> Iterator[Diagnosis]:
    """Yield what is known about the installation and this machine, one after the other."""
    system = f"{platform.system()} {platform.machine()}"
    python = f"Python {platform.python_version()} ({platform.python_implementation()}, {system})"
    yield Diagnosis("mlperf-pkg", DiagnosisState.OK, f"{__version__}, {python}")
    yield from _packages()
    yield _scanner()
    yield from _libyaml()
    yield _official()
    yield _data("rulebook", _rulebook)
    yield _compiled()
    yield _data("published results", _published)
    yield from _folders()
    yield Diagnosis(
        "processors", DiagnosisState.OK, f"{os.cpu_count() or 1}: --jobs uses all by default"
    )
    yield _terminal()


# ---- packages -----------------------------------------------------------------------------


def _packages() -> Iterator[Diagnosis]:
    if not requirements():
        text = (
            "the required packages are not known, as mlperf-pkg runs from its source without being"
            " installed"
        )
        repair = f"pip install {package_source()}"
        yield Diagnosis("packages", DiagnosisState.NOTE, text, repair)
        return
    try:
        versions_of = {extra: _versions(extra) for extra in ("", *EXTRAS)}
    except UserError as error:  # one is installed twice
        yield Diagnosis("packages", DiagnosisState.BROKEN, str(error))
        return
    missing = [name for name, version in versions_of[""].items() if version is None]
    if missing:
        text = f"missing: {', '.join(missing)}"
        repair = f"pip install {packages_of('')}"
        yield Diagnosis("packages", DiagnosisState.BROKEN, text, repair)
    else:
        yield Diagnosis("packages", DiagnosisState.OK, "all required packages are installed")
    for extra, purpose in EXTRAS.items():
        versions = versions_of[extra]
        if versions and all(versions.values()):
            packages = ", ".join(f"{name} {version}" for name, version in versions.items())
            yield Diagnosis(f"extra {extra}", DiagnosisState.OK, f"{purpose}: {packages}")
        else:
            lacking = ", ".join(name for name, version in versions.items() if version is None)
            text = f"{purpose}: not possible without {lacking or 'it'}"
            repair = f"pip install {packages_of(extra)}"
            yield Diagnosis(f"extra {extra}", DiagnosisState.NOTE, text, repair)


def _versions(extra: str) -> Mapping[str, str | None]:
    """Return the packages that an extra requires with their versions, None if not installed."""
    names = [_PACKAGE.findall(requirement)[0] for requirement in requirements().get(extra, ())]
    return {name: _version(name) for name in names}


def _version(name: str) -> str | None:
    try:
        return installed_version(name)
    except MissingPackageError:
        return None


def _scanner() -> Diagnosis:
    if HAS_SCAN:
        return Diagnosis("part in C", DiagnosisState.OK, "installed")
    repair = f"{_reinstall()} --no-binary mlperf-pkg"
    text = "not installed, so logs are read more slowly; installing the part needs a C compiler"
    return Diagnosis("part in C", DiagnosisState.NOTE, text, repair)


def _libyaml() -> Iterator[Diagnosis]:
    try:
        import yaml  # noqa: PLC0415 - may be missing, which ``_packages`` reports
    except ImportError:
        return
    if yaml.__with_libyaml__:
        yield Diagnosis("libyaml", DiagnosisState.OK, "installed")
        return
    repair = "pip install --force-reinstall --only-binary pyyaml pyyaml"
    text = (
        "PyYAML was built without libyaml, so rule files that are not compiled are read more slowly"
    )
    yield Diagnosis("libyaml", DiagnosisState.NOTE, text, repair)


def _official() -> Diagnosis:
    name = "mlperf-logging"
    try:
        version = installed_version(name)
    except MissingPackageError as error:
        return Diagnosis(name, DiagnosisState.BROKEN, str(error), f"pip install {name}")
    try:
        unknown = [
            f"{usage} {round_}" for usage, round_ in _rounds() if not has_ruleset(usage, round_)
        ]
        drifts = [drift(usage, round_) for usage, round_ in _rounds()]
    except _ERRORS:  # of the rulebook, or of a package without its files
        return Diagnosis(name, DiagnosisState.OK, version)
    differences = _differences(drifts)
    if differences:
        text = (
            f"{version} differs from {verified().version}, which the rulebook was verified against"
        )
        return Diagnosis(name, DiagnosisState.BROKEN, f"{text}, in {differences}", remedy())
    if unknown:
        text = (
            f"{version} has no rules for {', '.join(unknown)}, so these rounds get no official"
            " verdict"
        )
        return Diagnosis(name, DiagnosisState.NOTE, text, f"pip install --upgrade {name}")
    return Diagnosis(name, DiagnosisState.OK, f"{version}, with the rules of all rounds")


def _differences(drifts: Iterable[Drift]) -> str:
    """Return in words how the installed mlperf-logging differs from the verified one."""
    words: list[str] = []
    for difference in drifts:
        if difference.code:
            return CODE  # which concerns all rounds
        if difference:
            words.append(difference.in_words())
    return "; ".join(words)


# ---- data of the package ------------------------------------------------------------------


def _data(name: str, described: Callable[[], str]) -> Diagnosis:
    try:
        return Diagnosis(name, DiagnosisState.OK, described())
    except _ERRORS as error:
        return Diagnosis(name, DiagnosisState.BROKEN, str(error), _reinstall())


def _reinstall() -> str:
    return f"pip install --force-reinstall --no-deps {package_source()}"


def _rulebook() -> str:
    for usage, name in _rounds():
        load_round(usage, name)
    spans = []
    for usage in usages():
        names = rounds(usage)
        spans.append(f"{usage} {names[0]} to {names[-1]}")
    return ", ".join(spans)


def _rounds() -> Iterator[tuple[str, str]]:
    """Yield the usage and the name of each round."""
    for usage in usages():
        for name in rounds(usage):
            yield usage, name


def _compiled() -> Diagnosis:
    name = "rule files"
    repair = _reinstall()
    slow = "every command starts slowly"
    try:
        path = data_folder("rules") / COMPILED
        if not path.is_file():
            return Diagnosis(
                name, DiagnosisState.NOTE, f"their compiled copy is missing, so {slow}", _COMPILE
            )
        repair = f"rm {shlex.quote(str(path))} && {_COMPILE}"
        documents = msgspec.msgpack.decode(path.read_bytes(), type=dict[bytes, msgspec.Raw])
        stale = sum(file.read_bytes() not in documents for file in path.parent.rglob("*.yaml"))
    except _ERRORS as error:
        return Diagnosis(name, DiagnosisState.BROKEN, str(error), repair)
    if stale:
        return Diagnosis(
            name,
            DiagnosisState.NOTE,
            f"their compiled copy is out of date for {stale} of them, so {slow}",
            _COMPILE,
        )
    return Diagnosis(name, DiagnosisState.OK, "their compiled copy is up to date")


def _published() -> str:
    names = [f"{r.usage} {r.name}" for r in published_results().provenance.rounds]
    return f"{len(names)} rounds, {names[0]} to {names[-1]}"


# ---- this machine -------------------------------------------------------------------------


def _folders() -> Iterator[Diagnosis]:
    folder = cache_folder()
    if folder:
        yield _folder("cache", folder, "charts are prepared anew each time")
    else:
        text = "not used, as other users own its folder or may write into the folder"
        yield Diagnosis("cache", DiagnosisState.NOTE, text, "export XDG_CACHE_HOME=FOLDER")
    try:
        yield _folder("temporary files", Path(tempfile.gettempdir()), "some commands fail")
    except FileNotFoundError as error:
        text = error.strerror or str(error)
        yield Diagnosis("temporary files", DiagnosisState.BROKEN, text, "export TMPDIR=FOLDER")
    try:
        yield _folder("current folder", Path.cwd(), "give -o a path elsewhere")
    except FileNotFoundError:
        yield Diagnosis(
            "current folder", DiagnosisState.BROKEN, "does not exist any more", "cd FOLDER"
        )


def _folder(name: str, folder: Path, consequence: str) -> Diagnosis:
    existing = next(path for path in (folder, *folder.parents) if path.exists())
    if os.access(existing, os.W_OK | os.X_OK):
        return Diagnosis(name, DiagnosisState.OK, str(folder))
    return Diagnosis(name, DiagnosisState.NOTE, f"{folder} cannot be written: {consequence}")


def _terminal() -> Diagnosis:
    encoding = sys.stdout.encoding or "unknown"
    kind = "a terminal" if sys.stdout.isatty() else "not a terminal"
    if encoding.lower().replace("-", "") == "utf8":
        return Diagnosis("output", DiagnosisState.OK, f"{kind}, {encoding}")
    text = f"{kind}, {encoding}: other characters are shown as escapes"
    return Diagnosis("output", DiagnosisState.NOTE, text, "export PYTHONUTF8=1")
