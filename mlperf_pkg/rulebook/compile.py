"""Compile the rulebook into one file: ``python -m mlperf_pkg.rulebook.compile``.

Compiled documents are found by the text that they were made of, so that an edited file is never
taken for what it was.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from mlperf_pkg.infra.resources import data_folder
from mlperf_pkg.rulebook.load import COMPILED
from mlperf_pkg.rulebook.strictyaml import parse


def compiled(folder: Path) -> bytes:
    """What all YAML files of a folder hold, by their texts."""
    texts = [(path, path.read_bytes()) for path in sorted(folder.rglob("*.yaml"))]
    return msgspec.msgpack.encode({data: parse(path, data) for path, data in texts})


if __name__ == "__main__":
    FOLDER = data_folder("rules")
    (FOLDER / COMPILED).write_bytes(compiled(FOLDER))
