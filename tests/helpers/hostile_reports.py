"""Reports about files whose names and contents try to act."""

import os

from hypothesis import strategies as st

from mlperf_pkg.findings import Basis, Severity, Waiver
from mlperf_pkg.results.report import Report
from tests.helpers.reports import NOT_CHECKED, finding, report, result_set, run, system

EVIL = (
    "\x1b[2J\r\n::error file=x::no\n##[error]no ::stop-commands::x %0A%25,:"
    "]]></failure><script a='\"'>&amp;[a](http://x){0}\ud800\udcff\x00\ufffe\u202e"
)
FILE = EVIL.replace("\ud800", "").replace("\x00", "")  # what a file can be called


def hostile(text: str = EVIL, file: str = FILE) -> Report:
    """A report that says ``text`` wherever a log can, about ``file``."""
    return report(
        round_reason=text,
        systems=(system(id=text, path=file, submitter=text),),
        result_sets=(result_set(path=file, system=text, benchmark=text, submitter=text),),
        runs=(run(path=f"{file}/a", benchmark=text), run(path=f"b{file}", verdict=NOT_CHECKED)),
        findings=[
            finding(file, 3, message=text, hint=text, found=text, expected=text, source=text),
            finding(f"{file}/a", message=text, waiver=Waiver(text, text, text)),
            finding("other", message=text, severity=Severity.WARNING, basis=Basis.RULES),
        ],
    )


def names() -> st.SearchStrategy[str]:
    """Names that a file can have."""
    whole = st.binary(min_size=1).map(lambda name: name.replace(b"\0", b"0").replace(b"/", b":"))
    return whole.filter(lambda name: name not in (b".", b"..")).map(os.fsdecode)


def texts() -> st.SearchStrategy[str]:
    """What a log can say."""
    return st.text(st.characters(exclude_categories=()), min_size=1)
