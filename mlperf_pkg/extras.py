"""Libraries that only some commands need, and that an extra installs."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from mlperf_pkg.errors import UserError

_EXTRAS = {"jinja2": "report", "vl_convert": "report"}


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
