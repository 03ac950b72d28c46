"""Where runs begin and end in a file, as shapes of records that are one letter each."""

from io import BytesIO

import pytest

from mlperf_pkg.log.spans import spans_of
from mlperf_pkg.submission.raw_logs import mentions_in
from tests.helpers.logs import line

KEYS = {
    "c": "cache_clear",
    "i": "init_start",
    "h": "submission_benchmark",
    "o": "submission_org",
    "g": "global_batch_size",
    "s": "seed",
    "R": "run_start",
    "e": "eval_accuracy",
    "S": "run_stop",
}


def text_of(shape: str) -> bytes:
    """Records 12 seconds apart; after ``!`` the clock is that of another process, at its start."""
    lines = []
    minutes = 0.0
    for letter in shape:
        if letter == "!":  # the clock of another process, from its start
            minutes = 0.0
        elif letter == ".":
            lines.append(b"text of a launcher\n")
        else:
            minutes += 0.2
            lines.append(line(KEYS[letter], minutes))
    return b"".join(lines)


@pytest.mark.parametrize(
    ("shape", "sizes"),
    [
        pytest.param("chogsiReeS", [10], id="one run"),
        pytest.param("chogiReeSchogiReeS", [9, 9], id="two runs"),
        pytest.param("hogiReeShogiReeShogiReeS", [8, 8, 8], id="three runs"),
        pytest.param("hogiReeS..hogiReeS", [10, 8], id="text of a launcher after a run"),
        pytest.param("schogiReeSschogiReeS", [10, 10], id="the seed comes first"),
        pytest.param("ichogReeSichogReeS", [9, 9], id="the header comes later"),
        pytest.param("hogiReeSiReeS", [8, 5], id="a second run without a header"),
        pytest.param("hogiRehogiReeS", [6, 8], id="an aborted run, then another"),
        pytest.param("chogiRechogiReeS", [7, 9], id="an aborted run, then one that clears first"),
        pytest.param("hogi!hogiReeS", [12], id="the header of another process"),
        pytest.param("hogi.......hogiReeS", [19], id="two headers in close succession"),
        pytest.param("hhoogiiRReeeeSS", [15], id="two processes, interleaved"),
        pytest.param("hogiRhogiReeS", [5, 8], id="a run that crashed before it evaluated"),
        pytest.param("hogiReiReeS", [11], id="resumed from a checkpoint"),
        pytest.param("hogiReeS!hogiReeS", [8, 8], id="processes, one after another"),
        pytest.param("hogiReeSS!ReeS", [13], id="a process without a header, written late"),
        pytest.param("iReeSho", [7], id="the header at the end"),
        pytest.param("hogi", [4], id="a crash before the start"),
    ],
)
def test_spans(shape: str, sizes: list[int]) -> None:
    text = text_of(shape)
    spans = spans_of(BytesIO(text))
    assert [last - first + 1 for first, last in (span.lines for span in spans)] == sizes
    lines = text.splitlines(keepends=True)
    for span in spans:
        whole = b"".join(lines[span.lines[0] - 1 : span.lines[1]])
        assert text[span.start : span.start + span.size] == whole


def test_a_crash_long_before_the_run_is_no_part_of_it() -> None:
    text = text_of("cho") + text_of("gg" * 300 + "choiReeS")
    spans = spans_of(BytesIO(text))
    assert [(span.lines, span.started) for span in spans] == [
        ((1, 603), False),
        ((604, 611), True),
    ]


@pytest.mark.parametrize(
    ("text", "headers", "starts", "started"),
    [
        (b"", 0, 0, True),
        (b"no record\n", 0, 0, True),
        (text_of("hogsi"), 1, 0, False),
        (text_of("hogiReS"), 1, 1, True),
        (text_of("hhRR"), 2, 2, True),
        (b"x" * ((1 << 20) - 4) + b"run_start", 0, 1, True),  # across the end of a block
        (b"x" * ((1 << 20) - 20) + b"run_start run_start", 0, 2, True),
    ],
)
def test_mentions(text: bytes, headers: int, starts: int, started: bool) -> None:
    mentions = mentions_in(BytesIO(text))
    assert (mentions.headers, mentions.starts, mentions.started) == (headers, starts, started)


@pytest.mark.parametrize(
    ("text", "round_"),
    [
        (b':::MLL 1558.1 run_start: {"value": null}\n', "0.6"),
        (b":::MLPv0.5.0 resnet 1541.1 (x.py:1) run_start\n", "0.5"),
        (b":::MLPv0.6.0 resnet 1541.1 (x.py:1) run_start\n", "0.6"),
        (b":::MLLX 1558\n", None),
        (b":::MLL 1558.1 run_start\n" + text_of("h"), None),
        (text_of("h"), None),
    ],
)
def test_old_formats(text: bytes, round_: str | None) -> None:
    reason = (
        f"this is the format of round {round_}; the rules begin with round 0.7" if round_ else None
    )
    assert mentions_in(BytesIO(text)).old_format == reason
