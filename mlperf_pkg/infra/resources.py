"""Where the data that travels with the package lies: rulebook and system descriptions."""

from __future__ import annotations

import sys
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from mlperf_pkg.errors import UserError

_PACKAGE = Path(__file__).parents[1]
_EXTRAS = {"jinja2": "report", "vl_convert": "report"}


@cache
def data_folder(name: str) -> Path:
    """The folder ``rules`` or ``systems``: inside an installed wheel, else of the checkout.

    Raises:
        UserError: the installation is incomplete.
    """
    for folder in (_PACKAGE / "data" / name, _PACKAGE.parent / name):
        if folder.is_dir():
            return folder
    raise UserError(f"this installation of mlperf-pkg lacks its folder {name!r}: reinstall it")


@cache
def official_folder() -> Path:
    """The folder of the installed mlperf_logging, which is not imported.

    Raises:
        UserError: there is none.
    """
    spec = find_spec("mlperf_logging")
    if spec is None or not spec.submodule_search_locations:
        raise UserError("mlperf-logging is not installed: pip install mlperf-logging")
    return Path(spec.submodule_search_locations[0])


def installed_version(name: str) -> str:
    """The version of an installed distribution, by the folder that describes it.

    Raises:
        UserError: it is not installed.
    """
    folder_name = name.replace("-", "_")
    for folder in sys.path:
        for entry in Path(folder).glob(f"{folder_name}-*.dist-info"):
            return entry.name.removesuffix(".dist-info").rpartition("-")[2]
    from importlib.metadata import PackageNotFoundError, version  # noqa: PLC0415 - slow to import

    try:
        return version(name)
    except PackageNotFoundError as error:
        raise UserError(f"{name} is not installed: install mlperf-pkg anew") from error


def needed(name: str) -> Any:
    """The module ``name``, which one of the extras of ``setup.cfg`` brings.

    Raises:
        UserError: it is not installed.
    """
    try:
        return import_module(name)
    except ImportError as error:
        raise UserError(
            f"this needs {name}, which is not installed: pip install 'mlperf-pkg[{_EXTRAS[name]}]'"
        ) from error
