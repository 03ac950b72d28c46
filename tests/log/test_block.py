"""The lines of a block at once: in C and in Python the same."""

from __future__ import annotations

import json
import struct
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mlperf_pkg.log import block as plain
from mlperf_pkg.log.block import ITSELF, METADATA, TIME, VALUE, Plain, lines_with, outlined, scanned
from mlperf_pkg.log.record import decode

WORDS = (b"eval_error", b"run_stop", b"_plain")
HAS_SCAN = pytest.mark.skipif(not plain.HAS_SCAN, reason="_scan was not compiled")
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


def told(found: Plain | None) -> Any:
    """All that is known of some lines."""
    if not found:
        return None
    parts = [parts_of(found, part) for part in (TIME, VALUE, METADATA, ITSELF)]
    return found.size, found.indexes, found.every, found.scattered, repr(parts)


def parts_of(found: Plain, part: int) -> list[Any]:
    parts = json.loads(found.array(part, range(found.size)))
    assert parts == [json.loads(found.array(part, [place]))[0] for place in range(found.size)]
    return list(parts)


def keys_of(found: Plain) -> list[Any]:
    return [each["key"] for each in parts_of(found, ITSELF)]


RECORDS = st.builds(
    record,
    st.sampled_from(
        ["a", "a1", "a2", "b", "", "run_stop", "eval_error_1", LONGEST_KEY, LONGEST_KEY + "k"]
    ),
    st.sampled_from([1, 2, 22, 0.5, "3", "run_stop", "key", [{"key": 1}]]),
    st.integers(0, 200),
    st.sampled_from([None, {}, {"n": 1}, {"n_1": "plain"}, {"n": "_plain"}, "value"]),
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
    assert told(scanned(text, WORDS)) == told(outlined(text, WORDS))


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
    assert found.size == len(counting) == len(records)
    for name, part in (("time_ms", TIME), ("value", VALUE), ("metadata", METADATA)):
        assert parts_of(found, part) == [getattr(each, name) for each in records]
    keys = keys_of(found)
    assert keys == [each and each.key for each in records]
    assert found.indexes == {
        each: [place for place, key in enumerate(keys) if key == each]
        for each in dict.fromkeys(keys)
    }
    assert found.every == all(line.startswith(b":::MLLOG ") for line in lines)
    without = [
        line.replace(f'"key": "{key}"'.encode(), b"")
        for line, key in zip(counting, keys, strict=True)
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
    ("quote before the token", f'"{record()}\n', None),
    ("cut", f":::MLLOG {{{NAMES}", None),
    ("blank behind", f":::MLLOG {{{NAMES}}} ", None),
    ("needless zero", f"{record('a', 10)}\n{record('a', 10).replace('10', '01')}\n", None),
    ("needless zero of a time", f"{record('a', 1, 10)}\n{record('a', 1, 90).replace('90', '09')}", None),
    ("zeros elsewhere", "\n".join(
        f':::MLLOG {{"key": "a", "value": [{a}], "metadata": {{"n{b}": "{c}"}}, "time_ms": {d}}}'
        for a, b, c, d in [("1.10,-20, 2e-10,3E+10,4.25e10", "10", "10", "20"),
                           ("0.01,-10, 2e-01,3E+00,0.00e00", "00", "01", "10")]
    ), (["a", "a"], True, False)),
    ("value at the end", ':::MLLOG {"key": "a", "time_ms": 1, "metadata": [{}, "}"] , "value": "]" }',
     (["a"], True, False)),
    ("a part that ends the line too soon", ':::MLLOG {"key": "a", "time_ms": 1, "metadata": 1, "value": [}',
     None),
    ("a text that does not end", ':::MLLOG {"key": "a", "time_ms": 1, "metadata": 1, "value": "}', None),
    ("time too long", f"{record('a', 1, 10**18)}\n{record('a', 1, 9 * 10**18)}", None),
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
        assert (keys_of(found), found.every, found.scattered) == expected


def test_without_a_compiler_it_is_python(monkeypatch: pytest.MonkeyPatch) -> None:
    text = record().encode()
    expected = told(plain.plain(text, WORDS))
    monkeypatch.setattr(plain, "HAS_SCAN", False)
    assert expected == told(plain.plain(text, WORDS)) == told(outlined(text, WORDS))


@HAS_SCAN
@given(st.lists(dirty(), max_size=5))
@settings(max_examples=500, deadline=None)
def test_what_was_seen_before_changes_nothing(texts: list[bytes]) -> None:
    plain._memories.clear()
    seen = [told(scanned(text, WORDS)) for text in texts]
    assert seen == [told(outlined(text, WORDS)) for text in texts]


@HAS_SCAN
def test_what_is_no_record_is_not_remembered() -> None:
    wrong = record("a").replace("null", "nuli").encode()
    assert scanned(record("a").encode(), WORDS)
    for text in (wrong, wrong, wrong.replace(b"1", b"2"), record("b").encode() + b"\n" + wrong):
        assert scanned(text, WORDS) is None
    assert told(scanned(record("a").encode(), WORDS)) == told(outlined(record("a").encode(), WORDS))


@HAS_SCAN
def test_more_kinds_than_are_remembered() -> None:
    for first in (0, 1000, 0):
        lines = [record("a" * (n % 9), "b" * n) for n in range(first, first + 1000)]
        text = "\n".join(lines * 2).encode()
        assert told(scanned(text, WORDS)) == told(outlined(text, WORDS))


def memory() -> Any:
    return pytest.importorskip("mlperf_pkg.log._scan").memory(WORDS)


@pytest.mark.parametrize(
    ("function", "arguments", "error"),
    [
        ("memory", (), TypeError),
        ("memory", ([],), TypeError),
        ("memory", (("a_b",),), TypeError),
        ("memory", ((b"",),), ValueError),
        ("memory", ((b"word",),), ValueError),
        ("memory", ((b"a_b",) * 17,), ValueError),
        ("scan", (), TypeError),
        ("scan", (None, b""), ValueError),
        ("scan", (memory, "text"), TypeError),
    ],
)
def test_wrong_arguments(function: str, arguments: Any, error: type[Exception]) -> None:
    module = pytest.importorskip("mlperf_pkg.log._scan")
    made = [each() if callable(each) else each for each in arguments]
    with pytest.raises(error):
        getattr(module, function)(*made)


SPANS = struct.pack("8I", *[0, 4, 1, 2, 3, 3, 0, 0])

# the text, spans, part and places of a cut; what comes of it
CUTS = [
    ((b"text", SPANS, TIME, [0]), b"[text]"),
    ((b"text", SPANS, VALUE, (0, 0)), b"[e,e]"),
    ((b"text", SPANS, METADATA, range(1)), b"[]"),
    ((b"text", SPANS, TIME, []), b"[]"),
    ((b"text", b"", TIME, [0]), IndexError),
    ((b"text", SPANS, TIME, [1]), IndexError),
    ((b"text", SPANS, TIME, [-1]), IndexError),
    ((b"text", SPANS, 4, [0]), IndexError),
    ((b"text", SPANS, -1, [0]), IndexError),
    ((b"tex", SPANS, TIME, [0]), IndexError),
    ((b"text", struct.pack("8I", *[2, 1] * 4), TIME, [0]), IndexError),
    ((b"text", SPANS, TIME, [1 << 80]), OverflowError),
    ((b"text", SPANS, TIME, ["0"]), TypeError),
    ((b"text", SPANS, TIME, 0), TypeError),
    ((b"text",), TypeError),
]


@pytest.mark.parametrize(("arguments", "expected"), CUTS)
def test_cut(arguments: Any, expected: Any) -> None:
    module = pytest.importorskip("mlperf_pkg.log._scan")
    if isinstance(expected, bytes):
        assert module.cut(*arguments) == expected
    else:
        with pytest.raises(expected):
            module.cut(*arguments)
