"""Where the data that travels with the package lies: rulebook and system descriptions."""

from __future__ import annotations

import sys
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from mlperf_pkg.errors import UserError

_PACKAGE = Path(__file__).parent


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
