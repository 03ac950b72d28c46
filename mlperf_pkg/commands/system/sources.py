"""Where facts about a machine come from: files, ``nvidia-smi``, installed Python distributions.

Nothing here raises where a source is not there: what cannot be read is an empty text.
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

    ``root`` is the folder that holds ``proc``, ``sys`` and ``etc``, None where it has none.
    ``nvidia_smi`` gives the output of that tool with some arguments, ``version_of`` the version of
    an installed Python distribution; both give an empty text where there is none.
    """

    root: Path | None
    nvidia_smi: Callable[..., str]
    version_of: Callable[[str], str]

    def text(self, path: str) -> str:
        """What a file holds, without blanks around it."""
        return "" if self.root is None else _text(self.root / path)

    def number(self, path: str) -> int | None:
        """What a file holds, where it is a whole number, not below zero."""
        text = self.text(path)
        return int(text) if text.isascii() and text.isdigit() else None

    def exists(self, path: str) -> bool:
        """Whether there is a file or folder."""
        return self.root is not None and (self.root / path).exists()

    def paths(self, pattern: str) -> list[str]:
        """The files and folders that a pattern matches, in the order of their names."""
        if self.root is None:
            return []
        try:
            return sorted(
                path.relative_to(self.root).as_posix() for path in self.root.glob(pattern)
            )
        except OSError:
            return []


def this_machine() -> Sources:
    """The sources of the machine that this runs on; only Linux has files."""
    root = Path("/") if sys.platform == "linux" else None
    return Sources(root, _nvidia_smi, _version_of)


def _text(path: Path) -> str:
    try:
        with path.open("rb") as stream:
            return stream.read(_LARGEST_FILE).decode("utf-8", "replace").replace("\0", "").strip()
    except (OSError, ValueError):
        return ""


def _nvidia_smi(*arguments: str) -> str:
    """Run the tool that the driver installs, by the absolute path that PATH gives it."""
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
