"""The reader against real-world dirt, and against the official parser itself."""

import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mlperf_logging.compliance_checker.mlp_parser.ruleset_200 import parse_generator

from mlperf_pkg.findings import Basis, Finding, Severity, Unchecked, folded
from mlperf_pkg.log import reader as log_reader
from mlperf_pkg.log.block import HAS_SCAN, lines_with
from mlperf_pkg.log.reader import LogReader, first_values
from mlperf_pkg.log.record import Record, decode, decode_line, decode_lines, printable, shown
from tests.helpers.examples import examples
from tests.helpers.stored import compared
from tests.parity.incumbent import quickened

T = ":::MLLOG "
NEEDS_SCAN = pytest.mark.skipif(not HAS_SCAN, reason="_scan was not compiled")


@pytest.fixture(
    params=[pytest.param(True, marks=NEEDS_SCAN, id="in C"), pytest.param(False, id="line by line")]
)
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Find the records of a block with the part in C, or without."""
    if not request.param:
        monkeypatch.setattr(log_reader, "HAS_SCAN", False)


def record(key: Any = "k", value: Any = 1, time_ms: Any = 5, metadata: Any = None) -> str:
    fields = {"key": key, "value": value, "time_ms": time_ms, "metadata": metadata or {}}
    return T + json.dumps(fields)


def read_lines(
    text: str | bytes,
) -> tuple[list[tuple[int, Record | None]], list[Finding], LogReader]:
    data = text.encode("latin-1") if isinstance(text, str) else text
    findings: list[Finding] = []
    reader = LogReader(io.BytesIO(data), "log.txt", findings.append)
    records = [(reader.line_of(number), record) for number, record in enumerate(reader)]
    return records, findings, reader


# name, text, (line, key or None) of each line with a token, (line, code) of each finding
DIRT = [
    ("empty", "", [], []),
    ("no record", "epoch 1\nepoch 2\n", [], []),
    ("plain", f"{record('a')}\n{record('b')}\n", [(1, "a"), (2, "b")], []),
    ("prefix rank", f"\n0: {record('a')}\n\n 12: {record('b')}", [(2, "a"), (4, "b")], []),
    ("CRLF", f"x\r\n{record('a')}\r\n{record('b')}\r\n", [(2, "a"), (3, "b")], []),
    ("CR of a progress bar", f"10%\r20%\r{record('a')}\n{record('b')}\n", [(1, "a"), (2, "b")], []),
    ("no newline at the end", f"{record('a')}", [(1, "a")], []),
    ("spaces around", f"{T}  {record('a')[9:]}  \n", [(1, "a")], []),
    ("NaN", f"{record('a', float('nan'))}\n", [(1, "a")], [(1, "LOG106")]),
    (
        "text",
        record("a", "NaN, -Infinity é").replace("\\u00e9", "é") + "\n",
        [(1, "a")],
        [(1, "LOG107")],
    ),
    (
        "both",
        record("a", ["NaN é", float("inf")]).replace("\\u00e9", "é") + "\n",
        [(1, "a")],
        [(1, "LOG106"), (1, "LOG107")],
    ),
    (
        "NaN twice, and no time twice",
        2 * f"{record('a', float('nan'))}\n" + 2 * f'{T}{{"key": "a"}}\n',
        [(1, "a"), (2, "a"), (3, None), (4, None)],
        [(1, "LOG106"), (2, "LOG106"), (3, "LOG102")],
    ),
    ("Infinity", f"x\n{record('a', float('-inf'))}\n", [(2, "a")], [(2, "LOG106")]),
    (
        "infinite float",
        f'{T}{{"key":"a","value":1e999,"time_ms":1,"metadata":{{}}}}\n',
        [(1, "a")],
        [],
    ),
    ("UTF-8", record("a", "é").replace("\\u00e9", "Ã©") + "\n", [(1, "a")], []),
    ("Latin-1", record("a", "é").replace("\\u00e9", "é") + "\n", [(1, "a")], [(1, "LOG107")]),
    ("key that is not a string", f"{record(5)}\n", [(1, 5)], []),
    ("key that is a list", f"{record([1])}\n", [(1, [1])], []),
    ("time as a string", f"{record('a', 1, '17.5')}\n", [(1, "a")], []),
    ("cut off", f"{record('a')}\n{record('b')[:30]}", [(1, "a"), (2, None)], [(2, "LOG101")]),
    ("bare token", f"{T}\n", [(1, None)], [(1, "LOG101")]),
    ("two on a line", f"{record('a')}{record('b')}\n", [(1, "b")], [(1, "LOG104")]),
    ("text before another token", f"{T}text {record('b')}\n", [(1, "b")], [(1, "LOG104")]),
    (
        "three on a line",
        f"{record('a')} {record('b')} {record('c')}\n",
        [(1, "c")],
        [(1, "LOG104")] * 2,
    ),
    ("text after", f"{record('a')} done\n", [(1, None)], [(1, "LOG103")]),
    (
        "name twice",
        T + '{"key":"a","key":"b","value":1,"time_ms":1,"metadata":{}}',
        [(1, "b")],
        [(1, "LOG105")],
    ),
    (
        "name twice, NaN, and a space that is none in JSON",
        T + '{"key":"a","key":"b","value":NaN,"time_ms":1,"metadata":{}}\v\n',
        [(1, "b")],
        [(1, "LOG106"), (1, "LOG105")],
    ),
    (
        "name twice, another with escapes",
        T
        + '{"key":"a","key":"b","value":1,"time_ms":1,"metadata":{}}\n'
        + T
        + '{"k\\u0065y":"c","value":1,"time_ms":1,"metadata":{}}\n',
        [(1, "b"), (2, "c")],
        [(1, "LOG105")],
    ),
    (
        "number too long",
        f"{record('a', 7).replace('7', '7' * 5000)}\n",
        [(1, None)],
        [(1, "LOG101")],
    ),
    ("no value", f'{T}{{"key":"a","time_ms":1,"metadata":{{}}}}\n', [(1, None)], [(1, "LOG102")]),
    ("no time", f'{T}{{"key":"a","value":1,"metadata":{{}}}}\n', [(1, None)], [(1, "LOG102")]),
    ("time null", f"{record('a', 1, None)}\n", [(1, None)], [(1, "LOG102")]),
    ("time no number", f"{record('a', 1, '1.2.3')}\n", [(1, None)], [(1, "LOG102")]),
    ("array", f"{T}[1]\n", [(1, None)], [(1, "LOG102")]),
    ("deeply nested", f"{T}{'[' * 100_000}\n", [(1, None)], [(1, "LOG101")]),
    (
        "a record on two lines, and two records on one",
        f"{record('a').replace(', ', f',{chr(10)}{T}', 1)}\n{record('b')} {record('c')[9:]}\n",
        [(1, None), (2, None), (3, None)],
        [(3, "LOG103"), (1, "LOG101"), (2, "LOG101")],
    ),
    ("token without space", "x\n:::MLLOG{}\n", [], [(2, "LOG108")]),
    (
        "token of another kind",
        f":::MLLOGX {{}}\n{record('a')}\n:::MLL\n",
        [(2, "a")],
        [(1, "LOG108"), (3, "LOG108")],
    ),
]


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize(("name", "text", "records", "codes"), DIRT, ids=[d[0] for d in DIRT])
def test_dirt(name: str, text: str, records: list[Any], codes: list[Any]) -> None:
    lines, findings, _ = read_lines(text)
    compared(findings)
    assert [(line, record and record.key) for line, record in lines] == records
    assert [(f.line, f.code) for f in findings] == codes


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("text", [d[1] for d in DIRT], ids=[d[0] for d in DIRT])
def test_malformed_lines_are_read_as_officially(text: str) -> None:
    """Same records, same parse errors; it crashes where we say it does."""
    with quickened():
        compare(text.encode("latin-1"))


def test_plain_lines_are_not_read_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_reader, "HAS_SCAN", False)
    monkeypatch.delattr(LogReader, "_read_line")
    assert len(read_lines(f"{record('a')}\n{record('b')}\n")[0]) == 2


TIMELESS = b'{"key": "a", "value": %b, "metadata": {}}'


@pytest.mark.parametrize(
    "line",
    [
        TIMELESS % b"2",
        b" " + TIMELESS % b"2" + b" \t",
        TIMELESS % b"1e999",
        TIMELESS % b"NaN",
        TIMELESS % (b"9" * 4400),
        TIMELESS % b'{"time_ms": 1}',
        TIMELESS % b'1, "tim\\u0065_ms": 1',
        TIMELESS % b'1, "time_ms": "x"',
        (TIMELESS % b"2").replace(b"value", b"worth"),
        (TIMELESS % b"2").replace(b"value", b"v\\u0061lue"),
        TIMELESS % b"2" * 2,
        (TIMELESS % b"2")[:-1],
        b"{}",
        b"[{}]",
        b"",
    ],
)
def test_lines_without_a_time_are_read_together_as_each_alone(line: bytes) -> None:
    lines = [TIMELESS % b"1", line, TIMELESS % b"3"]
    together = decode_lines(lines)
    assert not together or list(together) == list(map(decode_line, lines))


def test_what_only_a_careful_reader_sees_is_kept() -> None:
    _, findings, reader = read_lines(f"{record('a')}{record('b')}\n{record('c')} tail\n")
    assert [record.key for record in reader.unofficial] == ["a", "c"]
    assert [(f.basis, f.severity) for f in findings] == [
        (Basis.ADVICE, Severity.WARNING),
        (Basis.OFFICIAL, Severity.ERROR),
    ]


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize(
    ("text", "is_cut"),
    [
        (record("a")[:40], True),
        (f"{record('a')}\n{record('b')[:-1]}", True),
        (f"{record('a')}\n{T}", True),
        (record("a"), False),
        (f"{record('a')[:40]}\n", False),
        (f"{record('a')[:40]}\nthe launcher ends", False),
        (f"{record('a')} done", False),
        (f'{T}{{"key":"a","time_ms":1}}', False),
    ],
    ids=["first", "second", "token", "whole", "line end", "other text", "text after", "no value"],
)
def test_a_log_is_cut_off_where_it_ends_inside_a_record(text: str, is_cut: bool) -> None:
    _, findings, reader = read_lines(text)
    cut = [f for f in findings if f.message.startswith("the log ends inside this record, after ")]
    assert (reader.is_cut, bool(cut)) == (is_cut, is_cut)


def kinds_of(findings: list[Finding]) -> list[tuple[str, str, tuple[int, ...], int]]:
    """Without the text around the first damaged line of each chunk, and the line after it."""
    kinds = []
    for finding in folded(findings):
        (place,) = finding.places
        kinds.append((finding.code, finding.message, place.lines, place.count))
    return sorted(kinds)


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("chunk", [1, 7, 64, 1 << 20])
def test_chunks_do_not_show(chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "".join(case[1] + "\n" for case in DIRT if case[0] != "deeply nested")
    records, findings, _ = read_lines(text)
    monkeypatch.setattr(log_reader, "CHUNK_BYTES", chunk)
    chunked, chunked_findings, _ = read_lines(text)
    assert repr(chunked) == repr(records)  # repr, as NaN is not equal to itself
    assert kinds_of(chunked_findings) == kinds_of(findings)


@pytest.mark.parametrize("chunk", [1, 64, 256, 1 << 20])
@pytest.mark.parametrize(
    ("line", "codes"),
    [
        ("y" * 1000, []),
        (":::MLLOG " + "y" * 1000, [(2, "LOG109")]),
        ("y" * 1000 + ":::MLLOG {}", [(2, "LOG109")]),
        ("y" * 1000 + ":::MLLOG ", [(2, "LOG109")]),
        (":::MLLOG " + "y" * 280, [(2, "LOG109")]),
    ],
)
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_long_line_is_not_kept_in_memory(
    line: str, codes: list[Any], chunk: int, end: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One without a record is nothing to the official parser."""
    monkeypatch.setattr(log_reader, "CHUNK_BYTES", min(chunk, 256))
    monkeypatch.setattr(log_reader, "MAX_LINE_BYTES", 256)
    records, findings, _ = read_lines(f"x\n{line}{end}{record('a')}\n")
    assert [(line, r and r.key) for line, r in records] == [(3, "a")]
    assert [(f.line, f.code) for f in findings] == codes
    assert all(isinstance(f, Unchecked) for f in findings)
    _, findings, _ = read_lines(f"x\n{line}")
    assert [(f.line, f.code) for f in findings] == codes


def test_a_carriage_return_ends_a_long_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_reader, "CHUNK_BYTES", 64)
    monkeypatch.setattr(log_reader, "MAX_LINE_BYTES", 256)
    records, findings, _ = read_lines(f":::MLLOG {'y' * 1000}\r{record('a')}\n")
    assert [r and r.key for _, r in records] == ["a"]
    assert [f.code for f in findings] == ["LOG109"]


def test_shown() -> None:
    assert [
        (value, text)
        for value, text in [
            (1.5, "1.5"),
            ("a\nb", '"a\\nb"'),
            ("Ã©", '"é"'),
            ("\ud800", '"?"'),
            ("x" * 100, '"' + "x" * 76 + "..."),
            ({"a": [None, True]}, '{"a": [null, true]}'),
        ]
        if shown(value) != text
    ] == []
    assert printable("é") == "é"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(
    st.fixed_dictionaries(
        {"key": st.text() | JSON, "time_ms": st.integers() | st.floats() | JSON, "value": JSON},
        optional={"metadata": JSON, "namespace": JSON, "extra": JSON},
    ),
    st.booleans(),
    st.text(alphabet=" \t\x0b\x1c\x85\xa0}x,", max_size=3),
)
@examples(300)
def test_any_json_is_read_as_the_official_parser_reads_it(
    fields: dict[str, Any], ascii_only: bool, tail: str
) -> None:
    text = json.dumps(fields, ensure_ascii=ascii_only).encode("utf-8", "surrogatepass")
    compare(T.encode() + text + tail.encode("latin-1"))


@given(st.binary(max_size=60))
@examples(300)
def test_any_bytes_are_read_as_the_official_parser_reads_them(noise: bytes) -> None:
    compare(b"ab" + T.encode() + noise)


def compare(data: bytes) -> None:
    records, _, reader = read_lines(data)
    try:
        lines, errors = parse_generator(io.StringIO(data.decode("latin-1"), newline=None))
    except (TypeError, KeyError, OverflowError, RecursionError):
        assert reader.crash
        return
    assert reader.crash is None
    assert reader.parse_errors == len(errors)
    assert all(isinstance(r.time_ms, int | float) for _, r in records if r)
    ours = [repr((r.key, float(r.time_ms), r.value, r.metadata)) for _, r in records if r]
    theirs = [(x.key, x.timestamp, x.value["value"], x.value["metadata"]) for x in lines]
    assert ours == [repr(fields) for fields in theirs]


@pytest.mark.parametrize(
    ("line", "text"),
    [
        (
            "{}",
            "this record cannot be read, as it lacks the fields time_ms, key, value, metadata: {}",
        ),
        ("[1]", "this record cannot be read, as it is an array and not an object: [1]"),
        (
            '{"a',
            "the record is torn: its line ends after ':::MLLOG {\"a'; expected a whole record",
        ),
        (
            record("a", 1, None)[len(T) :],
            "this record cannot be read, as its time_ms is null; expected a number of"
            " milliseconds since 1970",
        ),
        (
            record("a", 1, "x")[len(T) :],
            'this record cannot be read, as its time_ms is "x"; expected a number of'
            " milliseconds since 1970",
        ),
        (
            record("a")[len(T) :] + " x",
            'text follows the record "a" on its line, so the official parser rejects the log',
        ),
    ],
)
def test_a_message_shows_what_was_found(line: str, text: str) -> None:
    _, (finding,), _ = read_lines(f"{T}{line}\n")
    assert finding.text == text


WORDS = (b"ab", b"run_stop", b"\\")
LINES = st.lists(
    st.sampled_from([T, "ab", "run_stop", "\\", " ", "\r", "\n", "{}", ":::MLLOG", "é", "b"]),
    max_size=30,
)


@given(LINES)
def test_lines_with_words_are_those_of_a_plain_search(pieces: list[str]) -> None:
    text = "".join(pieces).encode("latin-1").replace(b"\r", b"\n")
    lines = [line for line in text.split(b"\n") if any(word in line for word in WORDS)]
    expected = [line.rpartition(T.encode())[2] for line in lines if T.encode() in line]
    assert list(lines_with(WORDS, text)) == expected


@given(st.lists(st.sampled_from("abc"), max_size=12), st.sampled_from([1, 40, 1 << 16]))
def test_first_values_are_those_of_a_whole_reading(keys: list[str], size: int) -> None:
    text = "".join(f"x\n{record(key, number)}\n" for number, key in enumerate(keys))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(log_reader, "HEAD_BYTES", size)
        values = first_values(io.BytesIO(text.encode()), "ab")
    assert values == {key: keys.index(key) for key in "ab" if key in keys}


def test_a_key_spelt_with_escapes_is_found() -> None:
    line = record("seed").replace('"seed"', '"s\\u0065ed"')
    assert first_values(io.BytesIO(line.encode()), ("seed",)) == {"seed": 1}


@pytest.mark.usefixtures("way")
@given(st.lists(st.sampled_from(DIRT).map(lambda case: case[1]), max_size=6), st.integers(0, 3))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_blocks_are_read_as_their_lines_are(texts: list[str], clean: int) -> None:
    """The records of a block are those of its lines, decoded one by one."""
    text = "\n".join([*texts, *[record(f"k{n}") for n in range(clean)]]).encode("latin-1")
    blocks = LogReader(io.BytesIO(text), "log.txt", lambda _: None).blocks()
    raws = lines_with((T.encode(),), text.replace(b"\r", b"\n"))
    assert repr([r for block in blocks for r in block.records()]) == repr(list(map(decode, raws)))


_PEAK = """
import resource, sys
from pathlib import Path
from mlperf_pkg.infra.source import Source
from mlperf_pkg.run.reading import LogFile, read_run
peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
small, large = (LogFile(Source(path, Path(path))) for path in sys.argv[1:])
read_run(small)
before = peak()
read_run(large)
sys.stdout.write(str((peak() - before) >> 10))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="resident memory is in KiB on Linux only")
def test_memory_does_not_grow_with_the_log(tmp_path: Path) -> None:
    """40 MiB of records with a key that rules check take less than 24 MiB."""
    lines = "".join(record("eval_accuracy", 0.5, n, {"epoch_num": n}) + "\n" for n in range(4096))
    small, large = tmp_path / "small.txt", tmp_path / "large.txt"
    small.write_text(lines, "ascii")
    large.write_text(record("run_start") + "\n" + lines * ((40 << 20) // len(lines)), "ascii")
    arguments = [sys.executable, "-c", _PEAK, str(small), str(large)]
    grown = subprocess.run(arguments, capture_output=True, check=True, text=True).stdout
    assert int(grown) < 24
