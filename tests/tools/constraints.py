"""Write ``ci-templates/constraints.txt``: the newest version of every package that the tool needs.

``make constraints`` runs ``python -m tests.tools.constraints``. pip resolves the dependencies of
``pyproject.toml`` as of today, and installs nothing. It does so for the oldest Python that is
supported: newer ones, such as that of the container, can install the same versions.
"""

import json
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
KIT = ROOT / "ci-templates"
FILE = KIT / "constraints.txt"
HEAD = "# Exact versions for ci-templates/Containerfile, as of a day: make constraints\n"
PIP = (sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", "install")
DRY = ("--dry-run", "--ignore-installed", "--only-binary=:all:", "--report", "-")


PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
OLDEST = PROJECT["requires-python"].removeprefix(">=")


def text_of(packages: Iterable[Mapping[str, Any]]) -> str:
    """Return the file for the packages of a report of pip."""
    metadata = [package["metadata"] for package in packages]
    lines = sorted((f"{data['name']}=={data['version']}" for data in metadata), key=str.lower)
    return HEAD + "".join(f"{line}\n" for line in lines)


def main() -> None:
    """Ask pip, and write the file."""
    command = [*PIP, *DRY, "--python-version", OLDEST, *PROJECT["dependencies"]]
    done = subprocess.run(command, capture_output=True, check=True)
    FILE.write_text(text_of(json.loads(done.stdout)["install"]), "utf-8")


if __name__ == "__main__":
    main()
