"""What is installed: the data that travels with the package, and the packages it uses."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from mlperf_pkg.errors import UserError

_PACKAGE = Path(__file__).parents[1]


class MissingPackageError(UserError):
    """A package is not installed; the message says what needs it and what installs it."""

    def __init__(self, package: str, install: str, user: str) -> None:
        """``install`` is what pip takes; ``user`` is what needs the package, in words."""
        super().__init__(f"{user} needs the package {package}: pip install '{install}'")


def require(module: str, extra: str, user: str) -> Any:
    """Import an optional module for ``user``, such as "an SVG chart", which messages name.

    ``extra`` is the extra of mlperf-pkg that installs it.

    Raises:
        MissingPackageError: it cannot be imported.
    """
    return require_package(module, f"mlperf-pkg[{extra}]", user)


def require_package(module: str, install: str, user: str) -> Any:
    """Import a module that ``pip install <install>`` brings, else as ``require``."""
    try:
        return import_module(module)
    except ImportError as error:
        raise MissingPackageError(module.partition(".")[0], install, user) from error


@cache
def data_folder(name: str) -> Path:
    """Return the folder ``rules`` or ``systems``, of an installed wheel or of the checkout.

    Raises:
        UserError: the installation is incomplete.
    """
    for folder in (_PACKAGE / "data" / name, _PACKAGE.parent / name):
        if folder.is_dir():
            return folder
    raise UserError(f"this installation of mlperf-pkg lacks its folder {name!r}: reinstall it")


@cache
def official_folder() -> Path:
    """Return the folder of the installed mlperf_logging, without importing it.

    Raises:
        MissingPackageError: it is not installed.
    """
    spec = find_spec("mlperf_logging")
    if spec is None or not spec.submodule_search_locations:
        raise MissingPackageError("mlperf-logging", "mlperf-logging", "mlperf-pkg")
    return Path(spec.submodule_search_locations[0])


def installed_version(name: str) -> str:
    """Return the version of an installed distribution.

    Raises:
        MissingPackageError: it is not installed.
    """
    prefix, suffix = f"{name.replace('-', '_')}-", ".dist-info"
    for folder in sys.path:  # by the folder that describes it: importlib.metadata is slow to import
        with suppress(OSError):
            for entry in os.listdir(folder or "."):  # noqa: PTH208 - fast, for many entries
                if entry.startswith(prefix) and entry.endswith(suffix):
                    return entry.removesuffix(suffix).rpartition("-")[2]
    from importlib.metadata import PackageNotFoundError, version  # noqa: PLC0415 - slow to import

    try:
        return version(name)
    except PackageNotFoundError as error:
        raise MissingPackageError(name, name, "mlperf-pkg") from error
