"""Passphrases: from a file, the environment or the terminal, never from the command line."""

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from mlperf_pkg.cli.group import EXISTING_FILE
from mlperf_pkg.cli.output import note
from mlperf_pkg.errors import UserError
from mlperf_pkg.infra.files import is_special
from mlperf_pkg.infra.paths import first_line

_Function = TypeVar("_Function", bound=Callable[..., Any])

VARIABLE = "MLPERF_PKG_PASSPHRASE"


def option(verb: str) -> Callable[[_Function], _Function]:
    """Add ``passphrase_file``."""
    return click.option(
        "--passphrase-file",
        type=EXISTING_FILE,
        help=f"{verb} the archive with the passphrase in the first line of FILE. Without this"
        f" option, ${VARIABLE} is the passphrase; if that is not set, the command asks for it.",
    )


def passphrase(file: Path | None, *, new: bool) -> str:
    """Return the passphrase; ask for a ``new`` one twice.

    That of a file is all bytes before the first line feed, as ``openssl -pass file:`` reads it;
    bytes that are not UTF-8 become surrogates.

    Raises:
        UserError: it is empty, or there is no terminal to ask on.
    """
    if file is not None:
        if is_special(file):
            note(f"the command waits until another program writes the passphrase into {file}")
        text = first_line(file).decode("utf-8", "surrogateescape")
        origin = str(file)
    elif VARIABLE in os.environ:
        text = os.environ[VARIABLE]
        origin = f"${VARIABLE}"
    elif sys.stdin.isatty():
        prompt = click.prompt("Passphrase", hide_input=True, confirmation_prompt=new, err=True)
        text = str(prompt)
        origin = "the passphrase"
    else:
        raise UserError(
            "no passphrase is given, and there is no terminal to ask for it; use --passphrase-file"
            f" FILE or ${VARIABLE}"
        )
    if not text:
        raise UserError(f"{origin}: the passphrase is empty")
    return text
