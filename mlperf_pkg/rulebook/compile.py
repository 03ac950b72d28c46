"""Compile the rulebook into one file: ``python -m mlperf_pkg.rulebook.compile``.

Compiled documents are found by the text of their files, so that an edited file is never mistaken
for what it was. The wheel holds the compiled file; in a checkout ``make`` writes it.
"""

import sys
from pathlib import Path

import msgspec

from mlperf_pkg.errors import RulebookError
from mlperf_pkg.infra.resources import data_folder
from mlperf_pkg.rulebook.documents import COMPILED
from mlperf_pkg.rulebook.problems import RuleFile
from mlperf_pkg.rulebook.validate import expanded, parse


def compiled(folder: Path) -> bytes:
    """Return what all YAML files of a folder say, by their bytes.

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


def compile_rulebook(folder: Path) -> None:
    """Check the rulebook of a checkout and compile it.

    Raises:
        RulebookError: the rulebook is not valid.
    """
    # A build, which needs ``compiled`` alone, has not all libraries that these need.
    from mlperf_pkg.infra.files import write_whole  # noqa: PLC0415
    from mlperf_pkg.rulebook.check import check_rulebook

    check_rulebook(folder)
    write_whole(folder / COMPILED, compiled(folder), replace=True)


def main() -> None:
    """Compile the rulebook of this checkout; exit with a message if it is not valid."""
    try:
        compile_rulebook(data_folder("rules"))
    except RulebookError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
