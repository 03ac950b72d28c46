"""A process reads each published log once, also as a copy elsewhere, however many tests check
it.
"""

import sys
from hashlib import blake2b
from pathlib import Path

import pytest
from msgspec.structs import replace

from mlperf_pkg.checker import reading
from mlperf_pkg.findings import Finding
from mlperf_pkg.infra.source import Source
from mlperf_pkg.run.model import LogFile, Run
from mlperf_pkg.run.reading import read_run

PATH = "log"
KEPT: dict[tuple[LogFile, bytes], Run] = {}
"""The run of each log, at whatever path, by the digest of its content."""


def read_once(log: LogFile) -> Run:
    """Read a log as ``read_run``, to which its path is only a name."""
    origin = log.source.origin
    if not isinstance(origin, str | Path) or log.source.compression:
        return read_run(log)
    content = blake2b(Path(origin).read_bytes()).digest()
    key = replace(log, source=Source(PATH, PATH)), content
    if key not in KEPT:
        KEPT[key] = read_run(replace(log, source=Source(PATH, origin)))
    return renamed(KEPT[key], log.source.label)


def renamed(run: Run, path: str) -> Run:
    def moved(finding: Finding) -> Finding:
        places = tuple(replace(place, path=path) for place in finding.places)
        return replace(finding, path=path, places=places)

    return replace(run, path=path, findings=tuple(map(moved, run.findings)))


@pytest.fixture(autouse=True)
def _published_logs_are_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "read_run", read_once)
    # What other processes read is not known here.
    monkeypatch.setattr(reading, "PARALLEL_FROM_BYTES", sys.maxsize)
