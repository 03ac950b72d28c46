"""What is installed: the data that travels with the package, and the packages it uses.

Messages name commands of pip that work for how the package was installed, from a checkout, a wheel
or an index.

The rulebook may be read from folders of the user before that of the package.
"""

import os
import re
import shlex
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import cache, lru_cache, wraps
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ParamSpec, TypeAlias, TypeVar

import msgspec
from msgspec import Struct

from mlperf_pkg.errors import UserError
from mlperf_pkg.infra.paths import read_file

RULES = "*.yaml"
PACKAGE = Path(__file__).parents[1]

_LARGEST = 1 << 20  # bytes of a file of rules or code
_NAME = "mlperf-pkg"
_REQUIREMENT = r"([^;]+?) *(?:;(.*))?"
_EXTRA = r"""extra == ["']([\w-]+)["']"""


class MissingPackageError(UserError):
    """A package is not installed; the message says what needs it and what installs it."""

    def __init__(self, package: str, install: str, user: str) -> None:
        """``install`` is what pip takes; ``user`` is what needs the package, in words."""
        super().__init__(f"{user} needs the package {package}: pip install {install}")


def require(module: str, extra: str, user: str) -> Any:
    """Import an optional module for ``user``, such as "an SVG chart", which messages name.

    ``extra`` is the extra of mlperf-pkg that has the module.

    Raises:
        MissingPackageError: it cannot be imported.
    """
    try:
        return import_module(module)
    except ImportError as error:
        raise MissingPackageError(module.partition(".")[0], packages_of(extra), user) from error


def require_package(module: str, package: str, user: str) -> Any:
    """Import a module of a package that is in no extra, else as ``require``."""
    try:
        return import_module(module)
    except ImportError as error:
        raise MissingPackageError(module.partition(".")[0], package, user) from error


def requirements() -> Mapping[str, Sequence[str]]:
    """Return what each extra requires, as pip takes it, and below "" what is always required.

    Nothing is known if the package runs from its source.
    """
    from importlib.metadata import PackageNotFoundError, requires  # noqa: PLC0415 - slow to import

    try:
        lines = requires(_NAME) or []
    except PackageNotFoundError:
        return {}
    required: dict[str, list[str]] = defaultdict(list)
    for line in lines:
        match = re.fullmatch(_REQUIREMENT, line)
        if match is None:
            continue
        requirement, condition = match.groups()
        if not condition:
            required[""].append(requirement)
            continue
        extra = re.search(_EXTRA, condition)
        if extra:  # other conditions may not hold here
            required[extra[1]].append(requirement)
    return required


def packages_of(extra: str) -> str:
    """Return what pip takes to install the packages of an extra; of "", those always required.

    Their names work for every installation; ``mlperf-pkg[extra]`` would be looked up in an index.
    """
    packages = requirements().get(extra)
    if packages is None:
        return shlex.quote(f"{PACKAGE.parent}[{extra}]")
    return shlex.join(packages)


def package_source() -> str:
    """Return what pip takes to install this package again from where it came (PEP 610)."""
    if (PACKAGE.parent / "pyproject.toml").is_file():  # a checkout, which is used as it is
        return f"-e {shlex.quote(str(PACKAGE.parent))}"
    from importlib.metadata import distribution  # noqa: PLC0415 - slow to import

    recorded = distribution(_NAME).read_text("direct_url.json")
    if not recorded:  # of an index
        return _NAME
    origin = msgspec.json.decode(recorded)
    url = origin["url"]
    version = origin.get("vcs_info")
    if version:
        url = f"{version['vcs']}+{url}@{version['commit_id']}"
    return shlex.quote(f"{_NAME} @ {url}")


@cache
def data_folder(name: str) -> Path:
    """Return the folder ``rules`` or ``systems``, of an installed wheel or of the checkout.

    Raises:
        UserError: the installation is incomplete.
    """
    for folder in (PACKAGE / "data" / name, PACKAGE.parent / name):
        if folder.is_dir():
            return folder
    raise UserError(
        f"this installation of mlperf-pkg lacks the folder {name!r}; reinstall mlperf-pkg"
    )


@cache
def official_folder() -> Path:
    """Return the folder of the installed mlperf_logging, without importing it.

    Raises:
        MissingPackageError: it is not installed.
    """
    spec = find_spec("mlperf_logging")
    if spec is None or not spec.submodule_search_locations:
        raise MissingPackageError("mlperf-logging", "mlperf-logging", _NAME)
    return Path(spec.submodule_search_locations[0])


def installed_version(name: str) -> str:
    """Return the version of an installed distribution.

    Raises:
        MissingPackageError: it is not installed.
        UserError: a folder has two versions of it, of which one is a leftover.
    """
    return _version_in(tuple(sys.path), name)


@lru_cache
def _version_in(folders_of_modules: tuple[str, ...], name: str) -> str:
    prefix = f"{name.replace('-', '_')}-"
    suffix = ".dist-info"
    for folder in folders_of_modules:  # their descriptions: importlib.metadata is slow to import
        with suppress(OSError):
            folders = []
            for entry in os.listdir(folder or "."):  # noqa: PTH208 - fast, for many entries
                if entry.startswith(prefix) and entry.endswith(suffix):
                    folders.append(entry)
            if len(folders) > 1:
                names = " and ".join(sorted(folders))
                raise UserError(
                    f"{folder}: {name} is installed twice ({names}); remove the folder that an"
                    f" upgrade left behind, or pip uninstall {name} twice and install it again"
                )
            if folders:
                return folders[0].removesuffix(suffix).rpartition("-")[2]
    from importlib.metadata import PackageNotFoundError, version  # noqa: PLC0415 - slow to import

    try:
        return version(name)
    except PackageNotFoundError as error:
        raise MissingPackageError(name, name, _NAME) from error


_Parameters = ParamSpec("_Parameters")
_Result = TypeVar("_Result")


# ---- the folders of the rulebook ----------------------------------------------------------

# Which folders these are is a value of the current context (``contextvars``), not a parameter of
# every function that needs a rule. Whatever depends on the rulebook is remembered by these folders
# and their contents (``per_rulebook``), so that checks with different rules in one process do not
# mix. Forks inherit the folders; other processes are given ``rules_context()``.


class RulesFolder(Struct, frozen=True):
    """A folder laid out as ``rules/``, with a digest of its YAML files."""

    path: Path
    digest: str

    def __str__(self) -> str:
        """Return the name of the folder and the beginning of the digest, for a report."""
        return f"{self.path.name} ({self.digest[:12]})"


RulesContext: TypeAlias = tuple[RulesFolder, ...]
"""The user's own folders of rules, the first to be asked first; empty means the package's alone."""

_context: ContextVar[RulesContext] = ContextVar("rules_context", default=())


def rules_context() -> RulesContext:
    """Return the user's own folders of rules, to be handed to another process."""
    return _context.get()


def set_rules_context(context: RulesContext) -> None:
    """Read rules from these folders, in this process and from now on.

    Raises:
        UserError: a folder does not have the files that the context was made of.
    """
    for folder in context:
        if digest_of((folder.path, RULES)) != folder.digest:
            raise UserError(
                f"{folder.path}: a worker has other rules in this folder than this machine; give"
                " all machines the same folder"
            )
    _context.set(context)


@contextmanager
def rules_read_from(*folders: Path) -> Iterator[None]:
    """Read rules from these folders before that of the package, within a ``with`` statement."""
    context = tuple(RulesFolder(path, digest_of((path, RULES))) for path in folders)
    token = _context.set(context)
    try:
        yield
    finally:
        _context.reset(token)


def rules_folders() -> tuple[Path, ...]:
    """Return all folders of rules; a file is taken from the first that has it."""
    return (*(folder.path for folder in _context.get()), data_folder("rules"))


def digest_of(*patterns: tuple[Path, str]) -> str:
    """Return a digest of the files in folders that match patterns, and of their paths there."""
    import hashlib  # noqa: PLC0415 - most commands read only the package's rules

    files = []
    for top, pattern in patterns:
        files += [(path.relative_to(top), path) for path in top.rglob(pattern)]
    digest = hashlib.sha256()
    for name, path in sorted(files):
        if path.is_file():
            content = hashlib.sha256(read_file(path, _LARGEST)).hexdigest()
            digest.update(f"{name.as_posix()}\0{content}\0".encode())
    return digest.hexdigest()


def per_rulebook(function: Callable[_Parameters, _Result]) -> Callable[_Parameters, _Result]:
    """Remember what a function of the rulebook returns, as ``lru_cache``, for each rulebook."""

    @lru_cache
    def remembered(
        _: RulesContext, /, *args: _Parameters.args, **kwargs: _Parameters.kwargs
    ) -> _Result:
        return function(*args, **kwargs)

    @wraps(function)
    def of_context(*args: _Parameters.args, **kwargs: _Parameters.kwargs) -> _Result:
        return remembered(_context.get(), *args, **kwargs)  # type: ignore[arg-type]

    return of_context
