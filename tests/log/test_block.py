"""A block of lines: the scanner in C and the reader line by line find the same."""

import io
import json
import math
import re
import struct
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mlperf_pkg.findings import Finding
from mlperf_pkg.log import reader as log_reader
from mlperf_pkg.log.block import (
    HAS_SCAN,
    METADATA,
    TIME,
    VALUE,
    Block,
    ScannedBlock,
    Scanner,
    lines_with,
    scanner,
)
from mlperf_pkg.log.reader import LogReader
from mlperf_pkg.log.record import Record, decode, raw_records, tails_of
from tests.helpers.examples import examples

WORDS = (b"eval_error", b"run_stop", b"_plain")
NEEDS_SCAN = pytest.mark.skipif(not HAS_SCAN, reason="_scan was not compiled")

NAMES = '"key": "a", "value": 1, "metadata": {}, "time_ms": 5'
PIECES = [
    *[":::MLLOG ", ":::MLL", ":::ML1L", ":::MLLOG{", ":::mllog ", ":", "M"],
    *[
        '"key"',
        '"value"',
        '"metadata"',
        '"time_ms"',
        '"k1ey"',
        "key",
        '"',
        '""',
        "{",
        "}",
        "[",
        "]",
    ],
    *[word.decode() for word in WORDS],
    *["run_s1top", "run_", "_", "stop", "1", "2.5", "-", ",", " ", "\t", "\n", "\n\n"],
    *["\r", "\r\n", "\\", "é", "\0", "x" * 600, "9" * 600],
]


def record(key: str = "a", value: Any = 1, time_ms: int = 5, metadata: Any = None) -> str:
    fields = {"key": key, "value": value, "time_ms": time_ms, "metadata": metadata}
    return ":::MLLOG " + json.dumps(fields)


LONGEST_KEY = "k" * (1200 - len(record("")))


def scan(text: bytes) -> ScannedBlock | None:
    return scanner(WORDS).scan(text, 0)


def contents(block: Block) -> Any:
    """All that a block returns; by repr, as NaN is not equal to itself."""
    records = block.records()
    readable = [index for index, record in enumerate(records) if record is not None]
    parts = [
        [read(indexes) for read in (block.select, block.times, block.values, block.metadata)]
        for indexes in (readable, *([index] for index in readable))
    ]
    mentions = [
        [(on_line, line) for on_line, lines in block.mentions(words) for line in lines]
        for words in (WORDS, WORDS[:1])
    ]
    shape = (block.first, block.size, block.unread, block.indexes)
    return repr((shape, records, parts, mentions))


def all_of(text: bytes, *, in_c: bool) -> Any:
    """All that a reader returns and reports of a log, with the part in C or without it."""
    findings: list[Finding] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(log_reader, "HAS_SCAN", in_c)
        reader = LogReader(io.BytesIO(text), "log.txt", findings.append, WORDS)
        blocks = list(reader.blocks())
    lines = [reader.line_of(number) for number in range(sum(block.size for block in blocks))]
    state = (reader.crash, reader.parse_errors, repr(reader.unofficial), findings)
    return [contents(block) for block in blocks], lines, state


def is_plain(line: bytes) -> bool:
    """Whether a line may be scanned, by what ``Scanner.scan`` documents."""
    if b":::ML" not in line:
        return True
    head, token, raw = line.partition(b":::MLLOG ")
    return (
        token != b""
        and line.count(b":::ML") == 1
        and b'"' not in head
        and raw.startswith(b"{")
        and raw.endswith(b"}")
        and all(
            raw.count(name) == 1 for name in (b'"key"', b'"value"', b'"metadata"', b'"time_ms"')
        )
        and line.isascii()
        and not set(b"\\\r") & set(line)
        and len(line) <= 1200
        and len(raw_records(raw)) == 1
    )


def lines_of(text: bytes) -> list[bytes]:
    return text.removesuffix(b"\n").split(b"\n") if text else []


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
    lambda pieces: "".join(pieces).encode("latin-1")
)


# name, text, (keys, contiguous, scattered) of the block, None where it is read line by line
BLOCKS = [
    ("nothing", "", ([], True, False)),
    (
        "records",
        f"{record('a')}\n{record('b')}\n{record('a', 7)}\n",
        (["a", "b", "a"], True, False),
    ),
    ("prefix", f"{record('a')}\n0: {record('b')}\n", (["a", "b"], True, False)),
    ("other lines", f"{record('a')}\n\nx\n{record('b')}\n", (["a", "b"], False, False)),
    ("word in a key", f"{record('run_stop')}\n", (["run_stop"], True, False)),
    ("word in a value", f"{record('a', 'run_stop')}\n", (["a"], True, True)),
    ("word on another line", f"{record('a')}\nrun_stop\n", (["a"], False, False)),
    ("word that digits divide", f"{record('a', 'run_s1top')}\n", (["a"], True, False)),
    (
        "keys that differ in digits",
        f"{record('a1')}\n{record('a2')}\n",
        (["a1", "a2"], True, False),
    ),
    ("CR on another line", f"10%\r20%\n{record('a')}\n", (["a"], False, False)),
    ("too long", f"{record(LONGEST_KEY + 'k')}\n", None),
    ("CR", f"{record('a')}\r\n", None),
    ("backslash", record("a", "\n"), None),
    ("not ASCII", record("a") + "é", None),
    ("two records", record("a") + record("b"), None),
    ("look-alike", f"{record('a')}\n:::MLLOGX\n", None),
    ("look-alike that digits divide", f"{record('a')}\n:::M1LLOG {{}}\n", (["a"], False, False)),
    ("name twice", record("a", {"key": 1}), None),
    ("name missing", ':::MLLOG {"key": "a", "value": 1, "metadata": {}}', None),
    ("name that digits divide", f":::MLLOG {{{NAMES}}}".replace("value", "valu1e"), None),
    ("key that is not text", f":::MLLOG {{{NAMES}}}".replace('"a"', "1"), None),
    ("not a record", f":::MLLOG {{{NAMES}]}}", None),
    ("quote before the token", f'"{record()}\n', None),
    ("cut", f":::MLLOG {{{NAMES}", None),
    ("blank behind", f":::MLLOG {{{NAMES}}} ", None),
    ("needless zero", f"{record('a', 10)}\n{record('a', 10).replace('10', '01')}\n", None),
    (
        "needless zero of a time",
        f"{record('a', 1, 10)}\n{record('a', 1, 90).replace('90', '09')}",
        None,
    ),
    (
        "zeros elsewhere",
        "\n".join(
            (
                f':::MLLOG {{"key": "a", "value": [{a}], "metadata": {{"n{b}":'
                f' "{c}"}}, "time_ms": {d}}}'
            )
            for a, b, c, d in [
                ("1.10,-20, 2e-10,3E+10,4.25e10", "10", "10", "20"),
                ("0.01,-10, 2e-01,3E+00,0.00e00", "00", "01", "10"),
            ]
        ),
        (["a", "a"], True, False),
    ),
    (
        "value at the end",
        ':::MLLOG {"key": "a", "time_ms": 1, "metadata": [{}, "}"] , "value": "]" }',
        (["a"], True, False),
    ),
    (
        "a part that ends the line too soon",
        ':::MLLOG {"key": "a", "time_ms": 1, "metadata": 1, "value": [}',
        None,
    ),
    (
        "a string that does not end",
        ':::MLLOG {"key": "a", "time_ms": 1, "metadata": 1, "value": "}',
        None,
    ),
    ("time too long", f"{record('a', 1, 10**18)}\n{record('a', 1, 9 * 10**18)}", None),
    ("from line to line", f":::MLLOG {{{NAMES}\n:::MLLOG }}{{{NAMES}}}\n", None),
    ("no, two, one", f"x\n{record('a')}\n:::MLLOG {{}}\n", None),
]


@NEEDS_SCAN
@pytest.mark.parametrize(("name", "text", "expected"), BLOCKS, ids=[b[0] for b in BLOCKS])
def test_blocks(name: str, text: str, expected: Any) -> None:
    block = scan(text.encode("latin-1"))
    if block is None:
        assert expected is None
    else:
        keys = [record.key for record in block.records()]
        assert (keys, block.contiguous, block.scattered) == expected


@pytest.mark.parametrize("text", [b[1] for b in BLOCKS], ids=[b[0] for b in BLOCKS])
def test_blocks_without_a_compiler(text: str) -> None:
    data = text.encode("latin-1")
    assert all_of(data, in_c=False) == all_of(data, in_c=HAS_SCAN)


@NEEDS_SCAN
def test_only_lines_that_are_not_proven_are_forgotten() -> None:
    scanner = Scanner(WORDS)
    plain = f"{record('a')}\n".encode()
    scattered = f"{record('a')}\n{record('b', 'run_stop')}\n".encode()
    cut = f"{record('a')}\n:::MLLOG {{{NAMES}]}}\n".encode()
    blocks = [scanner.scan(text, 0) for text in (plain, scattered, cut, scattered, cut, plain)]
    assert [block and block.scattered for block in blocks] == [False, True, None, True, None, False]
    (memory,) = scanner._idle
    module = pytest.importorskip("mlperf_pkg.log._scan")
    assert [module.scan(memory, text)[0] for text in (plain, scattered)] == [0, 1]


@NEEDS_SCAN
@given(st.lists(dirty() | NOISE, max_size=5))
@example([b"", b"\n", b"5", f"{record()}\n5".encode()])
@examples(1000)
def test_both_ways_find_the_same_whatever_was_seen_before(texts: list[bytes]) -> None:
    scanner.cache_clear()
    scanned = [all_of(text, in_c=True) for text in texts]
    assert scanned == [all_of(text, in_c=False) for text in texts]
    plain = [all(map(is_plain, lines_of(text))) for text in texts]
    assert [scan(text) is not None for text in texts] == plain


@NEEDS_SCAN
@given(st.lists(RECORDS, max_size=20))
@examples(300)
def test_records_differ_from_samples_in_digits_only(lines: list[str]) -> None:
    block = scan("\n".join(lines).encode()) or Block(b"", 0, [])
    samples = {key: outlines(block, indexes) for key, indexes in block.samples.items()}
    assert samples == {key: outlines(block, indexes) for key, indexes in block.indexes.items()}


def outlines(block: Block, indexes: list[int]) -> set[str]:
    """The values and metadata of records, with 0 for each digit."""
    texts = [repr((record.value, record.metadata)) for record in block.select(indexes)]
    return {re.sub(r"\d", "0", text) for text in texts}


@NEEDS_SCAN
def test_a_line_that_is_not_a_record_is_not_remembered() -> None:
    right = record("a").encode()
    wrong = record("a").replace("null", "nuli").encode()
    assert scan(right)
    assert [
        text
        for text in (wrong, wrong, wrong.replace(b"1", b"2"), record("b").encode() + b"\n" + wrong)
        if scan(text) is not None
    ] == []
    assert scan(right)
    assert all_of(right, in_c=True) == all_of(right, in_c=False)


@pytest.mark.parametrize("letter", "bcb")
@NEEDS_SCAN
def test_more_kinds_than_the_cache_holds(letter: str) -> None:
    lines = [record("a" * (n % 9), letter * n) for n in range(1000)]
    text = "\n".join(lines * 2).encode()
    assert scan(text)
    assert all_of(text, in_c=True) == all_of(text, in_c=False)


@NEEDS_SCAN
def test_logs_of_a_process_share_a_scanner_that_threads_may_use() -> None:
    assert scanner(WORDS) is scanner(WORDS)
    assert scanner(WORDS) is not scanner(WORDS[:1])
    shared = Scanner(WORDS)
    texts = ["".join(f"{record(key, n)}\n" for n in range(200)).encode() for key in "abcdefgh"] * 4
    with ThreadPoolExecutor(8) as pool:
        blocks = list(pool.map(lambda text: shared.scan(text, 0), texts))
    scanned = [block and block.records() for block in blocks]
    assert scanned == [list(map(decode, lines_with((b":::MLLOG ",), text))) for text in texts]


def test_wrong_arguments() -> None:
    module = pytest.importorskip("mlperf_pkg.log._scan")
    rows: list[tuple[str, Any, type[Exception]]] = [
        ("memory", ([],), TypeError),
        ("scan", (), TypeError),
        ("scan", (None, b""), ValueError),
        ("scan", (module.memory(), "text"), TypeError),
    ]
    for function, arguments, error in rows:
        with pytest.raises(error):
            getattr(module, function)(*arguments)


SPANS = struct.pack("8I", *[0, 4, 1, 2, 3, 3, 0, 0])

# the text, spans, part and indexes of a cut; what it returns, or the error that it raises
CUTS: list[tuple[Any, Any]] = [
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


# the times of records, and whether they ascend as text of one length
TIMES: list[tuple[str, bool]] = [
    ("", True),
    ("5", True),
    ("15 15 16", True),
    ("16 15", False),
    ("9 10", False),
    ("10 9", False),
    ("-5 -4", False),
    ("1.5 1.6", False),
    ("1e3", False),
]


@NEEDS_SCAN
@pytest.mark.parametrize(("times", "ascend"), TIMES)
def test_times_that_ascend(times: str, ascend: bool) -> None:
    lines = [record().replace('"time_ms": 5', f'"time_ms": {time}') for time in times.split()]
    block = scan("\n".join(lines).encode())
    assert block
    assert block.ascends(range(block.size)) is ascend


@pytest.mark.parametrize(
    ("times", "ascend"),
    [([], True), ([5, 5.5], True), ([6, 5], False), ([5, math.nan, 3, 4], False)],
)
def test_times_that_were_read_ascend(times: list[float], ascend: bool) -> None:
    block = Block(b"", 0, [Record("a", time, 1, {}) for time in times])
    assert block.ascends(range(block.size)) is ascend


@NEEDS_SCAN
@given(st.lists(st.integers(0, 1 << 60)))
@examples(200)
def test_times_ascend_only_if_their_numbers_do(times: list[int]) -> None:
    block = scan("\n".join([record(time_ms=time) for time in times]).encode())
    assert block
    indexes = range(block.size)
    assert block.ascends(indexes) <= Block.ascends(block, indexes)
    of_first = block.ascends(indexes, from_first=True)
    assert of_first <= Block.ascends(block, indexes, from_first=True)
    assert of_first >= block.ascends(indexes)


@pytest.mark.parametrize(
    ("times", "of_first"),
    [
        pytest.param([100, 300, 200], True, id="none before the first"),
        pytest.param([200, 300, 100], False, id="one before the first"),
        pytest.param([100, 100], True, id="equal"),
        pytest.param([100], True, id="one"),
        pytest.param([], True, id="none"),
    ],
)
@pytest.mark.parametrize("is_scanned", [pytest.param(True, marks=NEEDS_SCAN), False])
def test_times_are_compared_with_the_first(
    times: list[int], of_first: bool, is_scanned: bool
) -> None:
    block = block_of([record(time_ms=time) for time in times], is_scanned=is_scanned)
    assert block.ascends(range(block.size), from_first=True) is of_first


def block_of(lines: list[str], *, is_scanned: bool) -> Block:
    text = "\n".join(lines).encode()
    block = scan(text) if is_scanned else Block(text, 0, [decode(line) for line in tails_of(text)])
    assert block
    return block


def is_small(value: Any) -> bool:
    return bool(value < 10)


def has_file(metadata: Any) -> bool:
    return "file" in metadata


@pytest.mark.parametrize(
    ("part", "tests", "expected"),
    [
        pytest.param(VALUE, (), True, id="no test"),
        pytest.param(VALUE, (is_small,), True, id="values pass"),
        pytest.param(VALUE, (is_small, float.is_integer), False, id="one test fails"),
        pytest.param(METADATA, (has_file,), False, id="one record fails"),
        pytest.param(METADATA, (is_small,), TypeError, id="a test raises"),
    ],
)
@pytest.mark.parametrize("is_scanned", [pytest.param(True, marks=NEEDS_SCAN), False])
def test_a_part_of_all_records_passes_all_tests(
    part: int, tests: Any, expected: Any, is_scanned: bool
) -> None:
    lines = [record(value=1.5, metadata={"file": "a"}), record(value=2.0, metadata={})]
    block = block_of(lines, is_scanned=is_scanned)
    for _ in range(2):  # the answer, and then what is remembered of it
        with pytest.raises(expected) if expected is TypeError else nullcontext():
            assert block.all_pass(part, tests, range(block.size)) is expected


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ((b"text", SPANS, [0], False), False),
        ((b"1234", SPANS, [0, 0], False), True),
        ((b"1234", SPANS, [0, 0], True), True),
        ((b"1234", SPANS, [], False), True),
        ((b"1234", SPANS, [1], False), False),
        ((b"123", SPANS, [0], False), False),
        ((b"1234", SPANS, [1 << 80], False), OverflowError),
        ((b"1234", SPANS, ["0"], False), TypeError),
        ((b"1234", SPANS, 0, False), TypeError),
        ((b"1234",), TypeError),
    ],
)
def test_ascend(arguments: Any, expected: Any) -> None:
    module = pytest.importorskip("mlperf_pkg.log._scan")
    if isinstance(expected, bool):
        assert module.ascend(*arguments) is expected
    else:
        with pytest.raises(expected):
            module.ascend(*arguments)
