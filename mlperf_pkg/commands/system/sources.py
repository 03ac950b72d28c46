"""The sources of a machine's values: files, ``nvidia-smi`` and installed Python distributions.

A source that is missing or cannot be read gives an empty string; nothing here raises.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from msgspec import Struct

_LARGEST_FILE = 1 << 24
_PATIENCE_S = 30
_TOOL = "nvidia-smi"


class Sources(Struct, frozen=True):
    """The sources of one machine.

    ``root`` is the folder of ``proc``, ``sys`` and ``etc``, None where there is none.
    ``nvidia_smi`` returns the output of that tool for some arguments, ``version_of`` the version
    of an installed Python distribution; both return an empty string if there is none.
    """

    root: Path | None
    nvidia_smi: Callable[..., str]
    version_of: Callable[[str], str]

    def text(self, path: str) -> str:
        """Return the contents of a file, stripped."""
        return "" if self.root is None else _text(self.root / path)

    def number(self, path: str) -> int | None:
        """Return the contents of a file as a non-negative whole number, None if it is not one."""
        text = self.text(path)
        return int(text) if text.isascii() and text.isdigit() else None

    def exists(self, path: str) -> bool:
        """Return whether a file or folder exists."""
        return self.root is not None and (self.root / path).exists()

    def paths(self, pattern: str) -> list[str]:
        """Return the files and folders that match a pattern, sorted by name."""
        if self.root is None:
            return []
        try:
            return sorted(
                path.relative_to(self.root).as_posix() for path in self.root.glob(pattern)
            )
        except OSError:
            return []


def this_machine() -> Sources:
    """Return the sources of this machine; only Linux has files."""
    root = Path("/") if sys.platform == "linux" else None
    return Sources(root, _nvidia_smi, _version_of)


def _text(path: Path) -> str:
    try:
        with path.open("rb") as stream:
            return stream.read(_LARGEST_FILE).decode("utf-8", "replace").replace("\0", "").strip()
    except (OSError, ValueError):
        return ""


def _nvidia_smi(*arguments: str) -> str:
    """Run the driver's tool, found in PATH and called by its absolute path."""
    tool = shutil.which(_TOOL)
    if tool is None or not Path(tool).is_absolute():
        return ""
    try:
        done = subprocess.run(  # noqa: S603 - a fixed name and fixed arguments
            [tool, *arguments],
            capture_output=True,
            timeout=_PATIENCE_S,
            check=True,
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.decode("utf-8", "replace")


def _version_of(distribution: str) -> str:
    try:
        return version(distribution) or ""
    except PackageNotFoundError:
        return ""
