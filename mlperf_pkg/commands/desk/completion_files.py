"""Where each shell looks for completion scripts, and what must be added to its configuration."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from mlperf_pkg.errors import UserError
from mlperf_pkg.infra.files import write_together
from mlperf_pkg.infra.opening import read_file

SHELLS = ("bash", "zsh", "fish", "powershell")

_MARK = "_MLPERF_PKG_COMPLETE"  # in every script of ours
_MAX_BYTES = 1 << 20
_BASH_COMPLETION = (
    "/usr/share/bash-completion/bash_completion",
    "/usr/local/share/bash-completion/bash_completion",
    "/opt/homebrew/etc/profile.d/bash_completion.sh",
    "/usr/local/etc/profile.d/bash_completion.sh",
)


class Place(Struct, frozen=True):
    """Where a script goes; ``line`` must be in the file ``configuration``, unless it is empty."""

    script: Path
    configuration: Path
    line: str = ""

    @property
    def is_configured(self) -> bool:
        """Whether the configuration has the line, or needs none."""
        return not self.line or self.line in _text_of(self.configuration).splitlines()


def shell_of(variables: Mapping[str, str]) -> str:
    """Return the user's shell, by the environment.

    Raises:
        UserError: it is not one of ``SHELLS``.
    """
    name = "powershell" if sys.platform == "win32" else Path(variables.get("SHELL", "")).name
    if name not in SHELLS:
        raise UserError(f"your shell is unknown ({name or 'no SHELL'}): give {_choices()}")
    return name


def _choices() -> str:
    return f"{', '.join(SHELLS[:-1])} or {SHELLS[-1]}"


def home_folder() -> Path:
    """Return the user's home.

    Raises:
        UserError: there is none.
    """
    try:
        return Path.home()
    except RuntimeError as error:
        raise UserError("the home folder is unknown: set HOME") from error


def place(shell: str, home: Path, variables: Mapping[str, str]) -> Place:
    """Return where the script of one of ``SHELLS`` goes."""
    data = data_home(variables, home)
    config = _folder(variables, "XDG_CONFIG_HOME", home / ".config")
    if shell == "bash":
        user = _folder(variables, "BASH_COMPLETION_USER_DIR", data / "bash-completion")
        script = user / "completions" / "mlperf-pkg"
        loaded = any(Path(path).exists() for path in _BASH_COMPLETION)
        return Place(script, home / ".bashrc", "" if loaded else f". {_quoted(script)}")
    if shell == "zsh":
        script = data / "zsh" / "site-functions" / "_mlperf-pkg"
        line = f"fpath=({_quoted(script.parent)} $fpath); autoload -Uz compinit && compinit"
        return Place(script, _folder(variables, "ZDOTDIR", home) / ".zshrc", line)
    if shell == "fish":
        return Place(config / "fish" / "completions" / "mlperf-pkg.fish", config / "fish")
    windows = sys.platform == "win32"
    profile = home / "Documents" / "PowerShell" if windows else config / "powershell"
    script = profile / "completions" / "mlperf-pkg.ps1"
    quoted = str(script).replace("'", "''")
    return Place(script, profile / "profile.ps1", f". '{quoted}'")


def _quoted(path: Path) -> str:
    return shlex.quote(str(path))


def data_home(variables: Mapping[str, str], home: Path | None = None) -> Path:
    """Return the folder for the data of a user's programs.

    Raises:
        UserError: there is no home.
    """
    return _folder(variables, "XDG_DATA_HOME", (home or home_folder()) / ".local" / "share")


def _folder(variables: Mapping[str, str], name: str, default: Path) -> Path:
    folder = Path(variables.get(name) or default)
    return folder if folder.is_absolute() else default


def install(where: Place, script: str) -> None:
    """Write a script; replace an earlier one, but no other file.

    Raises:
        UserError: another file has its name, or it cannot be written.
    """
    if where.script.exists() and _MARK not in _text_of(where.script):
        raise UserError(f"{where.script}: not written by mlperf-pkg, and is not overwritten")
    write_together(where.script.parent, {where.script.name: script}, replace=True)


def configure(where: Place) -> None:
    """Append the line to the configuration.

    Raises:
        UserError: it cannot be written.
    """
    text = _text_of(where.configuration)
    newline = "\n" if text and not text.endswith("\n") else ""
    try:
        where.configuration.parent.mkdir(parents=True, exist_ok=True)
        with where.configuration.open("a", encoding="utf-8") as file:
            file.write(f"{newline}# Completion of mlperf-pkg\n{where.line}\n")
    except OSError as error:
        raise UserError(f"{where.configuration}: cannot be written: {error.strerror}") from error


def _text_of(path: Path) -> str:
    try:
        return read_file(path, _MAX_BYTES).decode("utf-8", "replace")
    except OSError:
        return ""
