"""Where the data that travels with the package lies: rulebook and system descriptions."""

from __future__ import annotations

from pathlib import Path

from mlperf_pkg.errors import UserError

_PACKAGE = Path(__file__).parent


def data_folder(name: str) -> Path:
    """The folder ``rules`` or ``systems``: inside an installed wheel, else of the checkout.

    Raises:
        UserError: the installation is incomplete.
    """
    for folder in (_PACKAGE / "data" / name, _PACKAGE.parent / name):
        if folder.is_dir():
            return folder
    raise UserError(f"this installation of mlperf-pkg lacks its folder {name!r}: reinstall it")
