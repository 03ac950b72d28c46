"""The official summarizer, in process, on a copy: it writes into what it reads."""

from __future__ import annotations

import contextlib
import csv
import io
import shutil
from pathlib import Path
from unittest import mock

from mlperf_logging.compliance_checker import mlp_compliance
from mlperf_logging.result_summarizer import result_summarizer

from tests.parity.incumbent import cached_rules

Rows = list[list[str]]


def official_files(tree: Path, usage: str, ruleset: str, scratch: Path) -> dict[str, str]:
    """Return the files that its first run writes for a submission, by name; none if it crashes."""
    copy = shutil.copytree(tree, scratch / "copy" / tree.name)
    written = scratch / "written"
    written.mkdir()
    arguments = ["x", str(copy), usage, ruleset, "--csv", str(written / "summary.csv")]
    mlp_compliance.enqueued_configs.clear()
    silence = io.StringIO()
    try:
        with (
            cached_rules(),
            mock.patch("sys.argv", arguments),
            contextlib.redirect_stdout(silence),
            contextlib.redirect_stderr(silence),
        ):
            result_summarizer.main()
    except NameError:  # what it says of a missing field
        return {}
    finally:
        shutil.rmtree(copy)
    return {path.name: path.read_text("utf-8") for path in written.iterdir()}


def rows(text: str) -> Rows:
    """The rows of a CSV file."""
    return list(csv.reader(io.StringIO(text)))


def tables(text: str) -> list[Rows]:
    """The tables of one file: that of weak scaling is appended to the other one."""
    parts: list[Rows] = []
    for row in rows(text):
        if row[0] == "division":
            parts.append([])
        parts[-1].append(row)
    return parts
