"""The official tables that commands write into a folder."""

from pathlib import Path

from mlperf_pkg.commands.results.official import OFFICIAL_FILES

TABLES = [name for name in sorted(OFFICIAL_FILES) if "weak" not in name]


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())
