"""The keys that text of a log holds which cannot be read."""

import pytest

from mlperf_pkg.infra.source import Source
from mlperf_pkg.log.damage import read_gaps, read_records
from mlperf_pkg.run.model import LogFile
from mlperf_pkg.run.reading import read_run

KEYS = ["opt_name", "opt_epsilon", "opt_gradient_clip_norm", "seed", "eval_accuracy"]
HEAD = b'{"namespace": "", "time_ms": 1, "event_type": "POINT_IN_TIME", "key": "'
TAIL = b'", "value": 1, "metadata": {}}'

TEXTS: list[tuple[str, bytes, set[str]]] = [
    ("a whole key", HEAD + b"seed" + TAIL, {"seed"}),
    ("a key whose record ends after it", HEAD + b'seed", "val', {"seed"}),
    ("a record inside a JSON string", (HEAD + b"seed" + TAIL).replace(b'"', b'\\"'), {"seed"}),
    ("a Python dict", (HEAD + b"seed" + TAIL).replace(b'"', b"'"), {"seed"}),
    ("a key behind another's text", HEAD[:-7] + b'step 7\n"key": "seed' + TAIL, {"seed"}),
    ("a key without its name", b'step 7\n"seed' + TAIL, {"seed"}),
    ("two parts", HEAD + b"op1: step 7\nt_gradient_clip_norm" + TAIL, {"opt_gradient_clip_norm"}),
    ("two parts on a line", HEAD + b"opt_gradwarning ient_clip_norm" + TAIL, {
        "opt_gradient_clip_norm"
    }),
    ("a beginning", HEAD + b"opt_gr", {"opt_gradient_clip_norm"}),
    ("a beginning before other text", HEAD + b"opt_gr1: step 7", {"opt_gradient_clip_norm"}),
    ("a beginning of several", HEAD + b"opt_", set()),
    ("another key", HEAD + b"opt_gradient_clip_normal" + TAIL, set()),
    ("a name in other text", HEAD[:20] + b"'seed' is not given", set()),
    ("a value", HEAD + b'other", "value": "seed"', set()),
    ("nothing", HEAD[:20], set()),
]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "expected"), [row[1:] for row in TEXTS], ids=[row[0] for row in TEXTS]
)
def test_keys(text: bytes, expected: set[str]) -> None:
    (gap,) = read_gaps(b"mllog " + text, 1).gaps
    assert {key for key in KEYS if gap.holds_any({key}, KEYS)} == expected


@pytest.mark.parametrize(
    ("text", "expected"), [(HEAD[:20], True), (HEAD + b"se", False), (HEAD + b"x" + TAIL, False)]
)
def test_text_without_a_name(text: bytes, expected: bool) -> None:
    (gap,) = read_gaps(b"mllog " + text, 1).gaps
    assert (not gap.names) is expected


def test_a_key_that_is_not_text() -> None:
    odd = b':::MLLOG {"time_ms": 1, "key": [], "value": 1, "metadata": {}}\n'
    torn = b":::MLLOG " + HEAD + b"se\n"
    run = read_run(LogFile(Source("log.txt", odd + torn), "training", "5.1"))
    assert {"LOG101", "RUN130"} <= {finding.code for finding in run.findings}


@pytest.mark.parametrize(
    ("value", "other", "expected"),
    [
        (b"1", b"1", 2),
        (b"1", b"1.0", 1),
        (b"null", b"NaN", 1),
        (b"Infinity", b"NaN", 1),
        (b"1e2", b"100.0", 2),
        (b"123456789012345678901234567890", b"123456789012345678901234567890", 2),
        (b'"\\ud800"', b'"\\ud800"', 2),
        (b'{"a": 1, "b": 2}', b'{"b": 2, "a": 1}', 1),
    ],
)
def test_processes_write_equal_values(value: bytes, other: bytes, expected: int) -> None:
    record = b':::MLLOG {"time_ms": 1, "key": "seed", "value": %b, "metadata": {}}\n'
    text = record % value + record % other
    assert read_records(read_gaps(text, 1), text, 1).processes == expected
