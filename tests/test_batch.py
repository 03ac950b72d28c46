"""The lines of a block at once: in C and in Python the same."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mlperf_pkg import batch
from mlperf_pkg.batch import Plain, lines_with, outlined, scanned
from mlperf_pkg.record import decode

WORDS = (b"eval_error", b"run_stop", b"plain")
HAS_SCAN = pytest.mark.skipif(not batch.HAS_SCAN, reason="_scan was not compiled")
WAYS = [pytest.param(scanned, marks=HAS_SCAN, id="in C"), pytest.param(outlined, id="in Python")]

NAMES = '"key": "a", "value": 1, "metadata": {}, "time_ms": 5'
PIECES = [
    *[":::MLLOG ", ":::MLL", ":::ML1L", ":::MLLOG{", ":::mllog ", ":", "M"],
    *['"key"', '"value"', '"metadata"', '"time_ms"', '"k1ey"', "key", '"', '""', "{", "}", "[", "]"],
    *[word.decode() for word in WORDS],
    *["run_s1top", "run_", "_", "stop", "1", "2.5", "-", ",", " ", "\t", "\n", "\n\n"],
    *["\r", "\r\n", "\\", "é", "\0", "x" * 600, "9" * 600],
]  # fmt: skip


def record(key: str = "a", value: Any = 1, time_ms: int = 5, metadata: Any = None) -> str:
    fields = {"key": key, "value": value, "time_ms": time_ms, "metadata": metadata}
    return ":::MLLOG " + json.dumps(fields)


LONGEST_KEY = "k" * (1200 - len(record("")))

RECORDS = st.builds(
    record,
    st.sampled_from(
        ["a", "a1", "a2", "b", "", "run_stop", "eval_error_1", LONGEST_KEY, LONGEST_KEY + "k"]
    ),
    st.sampled_from([1, 2, 22, 0.5, "3", "run_stop", "key", [{"key": 1}]]),
    st.integers(0, 200),
    st.sampled_from([None, {}, {"n": 1}, {"n": "plain"}, "value"]),
)
LINES = st.builds(
    "{}{}{}{}".format,
    st.sampled_from(["", "", "", "0: ", "10: ", "run_stop ", "x_", "7"]),
    RECORDS | st.just("loss 0.5"),
    st.sampled_from(["", "", "", " ", "5", "}"]),
    st.sampled_from(["\n"] * 5 + ["", "\r\n", "\n\n"]),
)


@st.composite
def dirty(draw: st.DrawFn) -> bytes:
    """Records, with a few pieces put in somewhere or in the place of something."""
    text = "".join(draw(st.lists(LINES, max_size=6)))
    for _ in range(draw(st.integers(0, 2))):
        at = draw(st.integers(0, len(text)))
        text = text[:at] + draw(st.sampled_from(PIECES)) + text[at + draw(st.integers(0, 3)) :]
    return text.encode("latin-1")


NOISE = st.lists(st.sampled_from(PIECES), max_size=30).map(
    lambda each: "".join(each).encode("latin-1")
)


@HAS_SCAN
@given(dirty() | NOISE)
@example(b"")
@example(b"\n")
@example(b"5")
@example(f"{record()}\n5".encode())
@settings(max_examples=2000, deadline=None)
def test_both_ways_find_the_same(text: bytes) -> None:
    assert scanned(text, WORDS) == outlined(text, WORDS)


@pytest.mark.parametrize("way", WAYS)
@given(text=dirty())
@settings(max_examples=500, deadline=None)
def test_plain_is_what_the_lines_say(way: Any, text: bytes) -> None:
    found = way(text, WORDS)
    if found is None:
        return
    lines = text.splitlines(keepends=True) if b"\r" not in text else text.split(b"\n")
    counting = [line for line in lines if b":::MLLOG " in line]
    records = list(map(decode, lines_with((b":::MLLOG ",), text)))
    assert [(each.key, each.time_ms) for each in found.entries] == [
        (each.key, each.time_ms) for each in records if each
    ]
    assert len(found.entries) == len(counting)
    assert found.places == {
        key: [place for place, each in enumerate(found.entries) if each.key == key]
        for key in dict.fromkeys(each.key for each in found.entries)
    }
    assert found.every == all(line.startswith(b":::MLLOG ") for line in lines)
    without = [
        line.replace(f'"key": "{each.key}"'.encode(), b"")
        for line, each in zip(counting, found.entries, strict=True)
    ]
    assert found.scattered == any(word in line for word in WORDS for line in without)


# name, text, what is found (None: a closer look), as (keys, every, scattered)
BLOCKS = [
    ("nothing", "", ([], True, False)),
    ("records", f"{record('a')}\n{record('b')}\n{record('a', 7)}\n", (["a", "b", "a"], True, False)),
    ("no end", f"{record('a')}\n{record('b')}", (["a", "b"], True, False)),
    ("prefix", f"{record('a')}\n0: {record('b')}\n", (["a", "b"], False, False)),
    ("other lines", f"{record('a')}\n\nx\n{record('b')}\n", (["a", "b"], False, False)),
    ("word in a key", f"{record('run_stop')}\n", (["run_stop"], True, False)),
    ("word in a value", f"{record('a', 'run_stop')}\n", (["a"], True, True)),
    ("word before the token", f"run_stop {record('a')}\n", (["a"], False, True)),
    ("word on another line", f"{record('a')}\nrun_stop\n", (["a"], False, False)),
    ("word that digits divide", f"{record('a', 'run_s1top')}\n", (["a"], True, False)),
    ("keys that differ in digits", f"{record('a1')}\n{record('a2')}\n", (["a1", "a2"], True, False)),
    ("empty key", f"{record('')}\n", ([""], True, False)),
    ("CR on another line", f"10%\r20%\n{record('a')}\n", (["a"], False, False)),
    ("almost as long as can be", f"{record(LONGEST_KEY)}\n", ([LONGEST_KEY], True, False)),
    ("too long", f"{record(LONGEST_KEY + 'k')}\n", None),
    ("CR", f"{record('a')}\r\n", None),
    ("backslash", record("a", "\n"), None),
    ("no ASCII", record("a") + "é", None),
    ("two records", record("a") + record("b"), None),
    ("look-alike", f"{record('a')}\n:::MLLOGX\n", None),
    ("look-alike that digits divide", f"{record('a')}\n:::ML1LOG {{}}\n", (["a"], False, False)),
    ("name twice", record("a", {"key": 1}), None),
    ("name missing", ':::MLLOG {"key": "a", "value": 1, "metadata": {}}', None),
    ("name that digits divide", f":::MLLOG {{{NAMES}}}".replace("value", "valu1e"), None),
    ("key no text", f":::MLLOG {{{NAMES}}}".replace('"a"', "1"), None),
    ("no record", f":::MLLOG {{{NAMES}]}}", None),
    ("cut", f":::MLLOG {{{NAMES}", None),
    ("blank behind", f":::MLLOG {{{NAMES}}} ", None),
    ("from line to line", f":::MLLOG {{{NAMES}\n:::MLLOG }}{{{NAMES}}}\n", None),
    ("no, two, one", f"x\n{record('a')}\n:::MLLOG {{}}\n", None),
]  # fmt: skip


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("name", "text", "expected"), BLOCKS, ids=[b[0] for b in BLOCKS])
def test_blocks(way: Any, name: str, text: str, expected: Any) -> None:
    found: Plain | None = way(text.encode("latin-1"), WORDS)
    if found is None:
        assert expected is None
    else:
        keys = [each.key for each in found.entries]
        assert (keys, found.every, found.scattered) == expected


def test_without_a_compiler_it_is_python(monkeypatch: pytest.MonkeyPatch) -> None:
    text = record().encode()
    expected = batch.plain(text, WORDS)
    monkeypatch.setattr(batch, "HAS_SCAN", False)
    assert expected == batch.plain(text, WORDS) == outlined(text, WORDS)


@pytest.mark.parametrize("arguments", [(), ("text", ()), (b"", []), (record().encode(), ("word",))])
def test_wrong_arguments(arguments: Any) -> None:
    module = pytest.importorskip("mlperf_pkg._scan")
    with pytest.raises(TypeError):
        module.scan(*arguments)
