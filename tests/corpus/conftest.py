"""A process reads each published log once for each path in reports, however many tests check it."""

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path

import pytest

from mlperf_pkg.checker import reading
from mlperf_pkg.run.model import LogFile, Run
from mlperf_pkg.run.reading import read_run
from tests.helpers.corpus import CORPUS

read_once = cache(read_run)


@pytest.fixture(autouse=True)
def _published_logs_are_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def read(file: LogFile) -> Run:
        origin = file.source.origin
        published = isinstance(origin, str | Path) and str(origin).startswith(str(CORPUS))
        return read_once(file) if published else read_run(file)

    monkeypatch.setattr(reading, "read_run", read)
    # What other processes read is not known here.
    monkeypatch.setattr(reading, "PARALLEL_FROM_BYTES", sys.maxsize)
