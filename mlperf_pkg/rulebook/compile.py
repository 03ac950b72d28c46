"""Compile the rulebook into one file: ``python -m mlperf_pkg.rulebook.compile``.

Compiled documents are found by the text of their files, so that an edited file is never mistaken
for what it was. The wheel holds the compiled file; in a checkout ``make`` writes it.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from mlperf_pkg.rulebook.definitions import expanded
from mlperf_pkg.rulebook.problems import RuleFile
from mlperf_pkg.rulebook.strictyaml import parse


def compiled(folder: Path) -> bytes:
    """Return what all YAML files of a folder say, by their texts.

    They are not validated, which takes libraries that a build of the package does not need.

    Raises:
        RulebookError: a file is not valid YAML.
    """
    documents = {}
    for path in sorted(folder.rglob("*.yaml")):
        file = RuleFile(path, (Path(folder.name) / path.relative_to(folder)).as_posix())
        data = path.read_bytes()
        documents[data] = expanded(parse(file, data))
    return msgspec.msgpack.encode(documents)


def main() -> None:
    """Validate the rulebook of a checkout and compile it.

    Raises:
        RulebookError: the rulebook is not valid.
    """
    from mlperf_pkg.infra.resources import data_folder  # noqa: PLC0415 - a build needs neither
    from mlperf_pkg.rulebook.files import COMPILED  # noqa: PLC0415

    folder = data_folder("rules")
    (folder / COMPILED).write_bytes(compiled(folder))


if __name__ == "__main__":
    main()
