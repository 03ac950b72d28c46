"""One log from its first byte to its end: files that grow, what is certain early, events."""

import errno
import gzip
import lzma
import os
import re
import shutil
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from pathlib import Path
from random import Random
from unittest.mock import Mock

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec.structs import replace

from mlperf_pkg.checker.waivers import Waivers
from mlperf_pkg.commands.watch import session
from mlperf_pkg.commands.watch.events import Ended, Evaluated, FileState, Found, Open, WatchEvent
from mlperf_pkg.commands.watch.session import Follower, Judge, Lines, Session, certain
from mlperf_pkg.config import WaiverConfig
from mlperf_pkg.findings import Basis, Finding, Waiver
from mlperf_pkg.rulebook.rounds import RoundChoice
from mlperf_pkg.run.model import Run
from tests.helpers.archives import zstandard
from tests.helpers.examples import examples
from tests.helpers.logs import doubled, edited, good_log, joined, line_of, records, without
from tests.parity.mutations import mutate

# ---- files that grow, are truncated, moved away and replaced ------------------------------


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "run.log"


@pytest.fixture
def follower(file: Path) -> Iterator[Follower]:
    follower = Follower(file)
    yield follower
    follower.close()


def append(path: Path, data: bytes) -> None:
    with path.open("ab") as stream:
        stream.write(data)


def test_a_file_that_appears_and_grows(
    file: Path, follower: Follower, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert follower.poll() == ("missing", b"")
    file.write_bytes(b"")
    assert follower.poll() == (None, b"")
    append(file, b"one\ntw")
    assert follower.poll() == (None, b"one\ntw")
    monkeypatch.setattr(session, "BLOCK_BYTES", 4)
    append(file, b"o three")
    assert [follower.poll() for _ in range(3)] == [(None, b"o th"), (None, b"ree"), (None, b"")]


@pytest.mark.parametrize("new", [b"", b"new", b"other", b"much more than there was before"])
def test_a_truncated_file_is_read_again(file: Path, follower: Follower, new: bytes) -> None:
    file.write_bytes(b"first")
    follower.poll()
    file.write_bytes(new)
    assert follower.poll() == ("truncated", new)
    assert follower.poll() == (None, b"")


def test_a_file_moved_away_is_read_to_its_end_first(file: Path, follower: Follower) -> None:
    """And again when it is back, or when another one takes its place."""
    append(file, b"first")
    follower.poll()
    aside = file.with_suffix(".aside")
    append(file, b" more")
    file.rename(aside)
    assert follower.poll() == (None, b" more")
    assert follower.poll() == ("missing", b"")
    aside.rename(file)
    assert follower.poll() == (None, b"")
    append(file, b" last")
    file.rename(aside)
    file.write_bytes(b"new")
    assert follower.poll() == (None, b" last")
    assert follower.poll() == ("replaced", b"new")


LINES = st.lists(
    st.sampled_from([b":::MLLOG {}", b"a", b"", b"\n", b"\r", b"\r\n", b":::ML", b"x :::MLLOG"])
)


@given(LINES, st.integers(1, 7))
def test_records_keep_their_lines(parts: list[bytes], size: int) -> None:
    data = b"".join(parts)
    lines = Lines()
    for start in range(0, len(data), size):
        lines.add(data[start : start + size])
    end = max(data.rfind(b"\n"), data.rfind(b"\r")) + 1
    assert lines.partial == data[end:]
    assert numbered(bytes(lines.text)) == numbered(data[:end])


def numbered(text: bytes) -> list[tuple[int, bytes]]:
    """The lines with a record, by the number of LF before them."""
    return [
        (number, line)
        for number, whole in enumerate(text.split(b"\n"))
        for line in whole.split(b"\r")
        if b":::MLL" in line
    ]


def test_a_line_without_an_end_does_not_fill_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "MAX_LINE_BYTES", 20)
    lines = Lines()
    for _ in range(10):
        lines.add(b":::MLLOG x")
    assert (lines.partial, lines.too_long) == (b"", 1)
    lines.add(b"end\n:::MLLOG y\n")
    assert bytes(lines.text) == b"\n:::MLLOG y\n"


# ---- what is certain early is still there at the end: no finding is ever taken back -------


RESNET = good_log()
KINDS = [
    ("resnet", "closed", "2.0"),
    ("resnet", "open", "2.0"),
    ("bert", "closed", "1.0"),
    ("maskrcnn", "closed", "0.7"),
    ("stable_diffusion", "closed", "4.0"),
    ("llama31_8b", "closed", "6.0"),
    ("minigo", "closed", "1.1"),
]


def judged(log: bytes, round_: str = "2.0") -> Run:
    return Judge("log.txt", choice=RoundChoice(round_))(log)


def codes(findings: Iterable[Finding]) -> set[tuple[str, str]]:
    return {(finding.code, finding.severity) for finding in findings}


def until(log: bytes, key: str) -> bytes:
    """The log to the first record of a key, with it."""
    return b"".join(log.splitlines(keepends=True)[: line_of(log, key)])


@examples(200)
@example(("bert", "closed", "1.0"), 457, 0.5, 0.5)  # an evaluation is logged later
@given(st.sampled_from(KINDS), st.integers(0, 2**32), st.floats(0, 1), st.floats(0, 1))
def test_nothing_is_taken_back(
    kind: tuple[str, str, str], seed: int, early: float, late: float
) -> None:
    log = b"\n".join(mutate(good_log(*kind).splitlines(), Random(seed)))
    parts = (log[: round(part * len(log))] for part in sorted((early, late)))
    before, after = (codes(certain(judged(Lines().add(part), kind[2]))) for part in parts)
    assert before <= after <= codes(judged(log, kind[2]).findings)


@pytest.mark.parametrize(
    ("log", "code"),
    [
        (edited(RESNET, "global_batch_size", value="many"), "RN101"),
        (edited(RESNET, "submission_status", value="good"), "RUN104"),
        (doubled(RESNET, "global_batch_size", value=7), "RN101"),
        (RESNET.replace(b'"value"', b'"value', 1), "LOG101"),
        (joined([r for r in records(RESNET) if r["key"] != "init_stop"]), "RUN108"),
    ],
    ids=["not a number", "unknown status", "logged at odds", "not a record", "missing record"],
)
def test_a_wrong_record_is_certain_before_the_end(log: bytes, code: str) -> None:
    early = certain(judged(until(log, "run_start")))
    assert [finding.code for finding in early if finding.code.startswith(code)]


def test_a_good_log_is_never_wrong() -> None:
    lines = RESNET.splitlines(keepends=True)
    assert [
        end for end in range(0, len(lines), 7) if certain(judged(b"".join(lines[:end]))) != []
    ] == []


def test_rules_wait_until_it_is_known_which_apply() -> None:
    log = edited(without(RESNET, "opt_name"), "submission_status", value="good")
    assert certain(judged(log)) == []


# ---- events -------------------------------------------------------------------------------


GOOD = good_log("bert")
WRONG = edited(GOOD, "submission_status", value="good")


class Log:
    """A log that grows, and a session that follows it."""

    def __init__(self, path: Path, waivers: Waivers | None = None) -> None:
        self.path = path
        self.now = 0.0
        judge = Judge(str(path), choice=RoundChoice("2.0"), waivers=waivers or Waivers())
        self.session = Session(judge, lambda: self.now)

    def tick(self, data: bytes | None = None, seconds: float = 10.0) -> list[WatchEvent]:
        """Append, let time pass, and ask."""
        if data is not None:
            append(self.path, data)
        self.now += seconds
        return list(self.session.tick())


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Log]:
    log = Log(tmp_path / "run.log")
    yield log
    log.session.close()


def kinds(events: list[WatchEvent]) -> list[str]:
    return [str(event.__struct_config__.tag) for event in events]


def changes(events: list[WatchEvent]) -> list[str]:
    return [event.change for event in events if isinstance(event, FileState)]


def test_a_good_run(log: Log) -> None:
    assert changes(log.tick()) == ["missing"]
    assert log.tick() == []
    half = len(GOOD) * 9 // 10
    events = log.tick(GOOD[:half])
    assert changes(events) == ["appeared"]
    assert {"run", "evaluation", "progress"} <= set(kinds(events))
    log.tick(GOOD[half:].rstrip(b"\n"))  # the last line has no end until nothing follows
    assert not log.session.log.done
    *_, last = log.tick()
    assert isinstance(last, Ended)
    assert (last.status, last.lost, last.errors, log.session.log.done) == (
        "success",
        False,
        0,
        True,
    )


def test_each_evaluation_is_reported_once_however_the_log_grows(log: Log) -> None:
    events = [event for at in range(0, len(GOOD), 997) for event in log.tick(GOOD[at : at + 997])]
    reported = [event.position for event in events if isinstance(event, Evaluated)]
    logged = [r["metadata"]["epoch_num"] for r in records(GOOD) if r["key"] == "eval_accuracy"]
    assert reported == logged
    assert kinds(events).count("run") == 1


def test_a_wrong_record_is_reported_when_its_line_is_complete(log: Log) -> None:
    at = WRONG.index(b'"good"')
    end = WRONG.index(b"\n", at)
    assert "finding" not in kinds(log.tick(WRONG[:at]))
    assert log.tick(WRONG[at:end]) == []
    events = log.tick(WRONG[end : end + 1])
    assert [event.finding.found for event in events if isinstance(event, Found)] == ["good"]
    assert (kinds(events).count("lost"), log.session.log.lost, log.session.log.done) == (
        1,
        True,
        False,
    )
    log.tick(WRONG[end + 1 :])
    assert kinds(log.tick()) == ["end"]


def test_what_is_absent_is_open_at_run_start_and_wrong_at_the_end(log: Log) -> None:
    events = log.tick(without(GOOD, "cache_clear"))
    assert [event.missing for event in events if isinstance(event, Open)] == [("cache_clear",)]
    assert "finding" not in kinds(events)
    assert kinds(log.tick()) == ["finding", "lost", "end"]


@pytest.mark.parametrize("replace", [True, False])
def test_a_new_file_starts_anew(log: Log, replace: bool) -> None:
    log.tick(WRONG[: len(WRONG) // 2])
    assert log.session.log.lost
    if replace:
        log.path.rename(log.path.with_suffix(".old"))
    log.path.write_bytes(b"")
    events = log.tick(GOOD)
    assert changes(events) == ["replaced" if replace else "truncated"]
    assert kinds(log.tick())[-1] == "end"
    assert not log.session.log.lost


@pytest.mark.parametrize(
    ("basis", "lost"), [(Basis.RULES, False), (Basis.BOTH, True), (Basis.OFFICIAL, True)]
)
def test_a_waived_finding_loses_what_the_official_checker_rejects(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, basis: Basis, lost: bool
) -> None:
    waiver = WaiverConfig("RUN104", "run.log", Waiver("agreed", "Jane", "2999-12-31"), 1)
    log, waive = Log(tmp_path / "run.log", waivers=Waivers((waiver,))), Waivers.waive_run

    def with_basis(waivers: Waivers, run: Run) -> Run:
        waived = waive(waivers, run)
        return replace(waived, findings=tuple(replace(f, basis=basis) for f in waived.findings))

    monkeypatch.setattr(Waivers, "waive_run", with_basis)
    events = log.tick(WRONG) + log.tick()
    assert [event.finding.waiver for event in events if isinstance(event, Found)] == [waiver.waiver]
    assert log.session.log.lost is lost
    log.session.close()


def test_judging_takes_a_tenth_of_the_time_at_most(
    log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    judged: list[int] = []
    judge = Judge.__call__

    def slow(self: Judge, text: bytes) -> Run:
        judged.append(len(text))
        log.now += 60
        return judge(self, text)

    monkeypatch.setattr(Judge, "__call__", slow)
    lines = GOOD.splitlines(keepends=True)
    for line in lines[:100]:
        log.tick(line, seconds=10)
    assert len(judged) in (1, 2)


# ---- compressed ---------------------------------------------------------------------------


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress, zstandard])
def test_a_compressed_log_is_followed(log: Log, pack: Callable[[bytes], bytes]) -> None:
    packed = pack(GOOD)
    half = len(packed) // 2
    for part in (packed[:3], packed[3:half], packed[half:]):
        log.tick(part)
    assert kinds(log.tick())[-1] == "end"


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (gzip.compress(GOOD)[:10] + b"x" * 99, "the gzip data is damaged"),
        (GOOD.decode().encode("utf-16"), "the log is UTF-16 text; expected UTF-8 text"),
    ],
    ids=["damaged gzip", "UTF-16"],
)
def test_what_is_no_text(log: Log, data: bytes, message: str) -> None:
    events = [*log.tick(data), *log.tick()]
    (problem,) = [e for e in events if isinstance(e, FileState) and e.change == "unreadable"]
    assert problem.message.startswith(message)


@pytest.mark.parametrize("other", [Path.mkdir, os.mkfifo, lambda path: path.symlink_to(path.name)])
def test_a_log_that_becomes_something_else(log: Log, other: Callable[[Path], object]) -> None:
    """It is reported once, and followed again when it is a file."""
    log.tick(GOOD[:-20])
    log.path.unlink()
    other(log.path)
    assert changes(log.tick()) == ["unreadable"]
    assert log.tick() == []
    log.path.rename(log.path.with_suffix(".other"))
    log.path.write_bytes(GOOD)
    log.tick()
    assert kinds(log.tick())[-1] == "end"


def test_a_folder_that_is_deleted_and_made_again(tmp_path: Path) -> None:
    """Also where the next poll finds the log again, or a file in place of the folder."""
    log = Log(tmp_path / "job" / "run.log")
    log.path.parent.mkdir()
    log.tick(GOOD[:2000])
    shutil.rmtree(log.path.parent)
    assert changes(log.tick()) == ["missing"]
    log.path.parent.touch()
    assert log.tick() == []
    log.path.parent.unlink()
    log.path.parent.mkdir()
    assert changes(log.tick(GOOD[:4000])) == ["appeared", "replaced"]
    shutil.rmtree(log.path.parent)
    log.path.parent.mkdir()
    assert changes(log.tick(GOOD)) == ["replaced"]
    assert kinds(log.tick())[-1] == "end"
    log.session.close()


@pytest.mark.parametrize("number", [errno.EACCES, errno.EIO, errno.EMFILE])
def test_a_log_that_cannot_be_read_for_a_while(
    log: Log, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The reason is given once, and the log is followed from where it was."""
    log.tick(GOOD[:-20])
    with monkeypatch.context() as patch:
        error = OSError(number, os.strerror(number))
        patch.setattr(session, "open_file", Mock(side_effect=error))
        (event,) = log.tick()
        assert isinstance(event, FileState)
        reason = f"the log cannot be read ({os.strerror(number)}); mlperf-pkg tries again"
        assert (event.change, event.message) == ("unreadable", reason)
        assert log.tick() == []
    assert "run" not in kinds(log.tick(GOOD[-20:]))
    assert kinds(log.tick())[-1] == "end"


@pytest.mark.parametrize("jump_ms", [-36_000_000, -90_000, 10**9, 10**14], ids=str)
def test_a_clock_that_jumps(log: Log, jump_ms: int) -> None:
    """Each event can be shown, and each evaluation is reported once."""
    at = GOOD.index(b"\n", GOOD.index(b"eval_accuracy")) + 1
    stamp = re.compile(rb'(?<="time_ms": )\d+')
    jumped = stamp.sub(lambda time: b"%d" % (int(time[0]) + jump_ms), GOOD[at:])
    happened = log.tick(GOOD[:at]) + log.tick(jumped) + log.tick()
    lines = [line for event in happened for line in event.lines("run.log", datetime.now())]
    assert len(lines) >= len(happened)
    assert kinds(happened).count("evaluation") == GOOD.count(b"eval_accuracy")
    assert kinds(happened)[-1] == "end"


# ---- what can be repaired -----------------------------------------------------------------


def lines_of(log: bytes) -> list[bytes]:
    return log.splitlines(keepends=True)


def changed(key: str, old: bytes, new: bytes) -> bytes:
    """The good log with another text on the first line of a key."""
    lines = lines_of(GOOD)
    at = line_of(GOOD, key) - 1
    lines[at] = lines[at].replace(old, new)
    return b"".join(lines)


@pytest.mark.parametrize(
    ("text", "codes"),
    [
        (b"".join(line * 8 for line in lines_of(GOOD)), {"LOG114", "BERT112"}),
        (doubled(GOOD, "run_start"), {"RUN151"}),
        (changed("cache_clear", b"\n", b" cleared\n"), {"LOG103", "RUN105"}),
        (changed("seed", b'"value"', b'"va1: step 7\n'), {"LOG101"}),
        (changed("cache_clear", b'"value"', b'"va1: step 7\n'), {"LOG101", "RUN105"}),
        (changed("run_stop", b":::MLLOG ", b":::MLLOG"), {"RUN109"}),
    ],
    ids=["processes", "equal repeat", "text after", "torn", "a torn record", "marker"],
)
def test_what_can_be_repaired_is_not_lost(log: Log, text: bytes, codes: set[str]) -> None:
    """Its findings are reported, and at the end the run has failed."""
    lines = lines_of(text)
    step = len(lines) // 5
    events = []
    for start in range(0, len(lines), step):
        events += log.tick(b"".join(lines[start : start + step]))
    events += log.tick()
    errors = {e.finding.code for e in events if isinstance(e, Found) and e.finding.is_error}
    assert errors <= codes
    assert "lost" not in kinds(events)
    assert not log.session.log.lost
    assert log.session.log.failed is log.session.log.done


@pytest.mark.parametrize("value", [float("nan"), float("inf")], ids=str)
def test_an_evaluation_that_is_not_finite_is_reported_at_once(log: Log, value: float) -> None:
    at = line_of(GOOD, "eval_accuracy", 2)
    head = b"".join(lines_of(GOOD)[:at])
    broken = edited(b"".join(lines_of(head)[-1:]), "eval_accuracy", value=value)
    events = log.tick(b"".join(lines_of(head)[:-1]))
    assert "RUN168" not in {e.finding.code for e in events if isinstance(e, Found)}
    events = log.tick(broken)
    (warning,) = [event.finding for event in events if isinstance(event, Found)]
    assert (warning.code, warning.severity.value) == ("RUN168", "warning")
    (evaluation,) = [event for event in events if isinstance(event, Evaluated)]
    words = evaluation.words(datetime.now())
    assert words.endswith(": warning: the value is not a finite number")


def test_equal_evaluations_of_processes_are_one(log: Log) -> None:
    events = log.tick(b"".join(line * 4 for line in lines_of(GOOD)))
    reported = [event.position for event in events if isinstance(event, Evaluated)]
    assert len(reported) == len(set(reported)) > 3


@pytest.mark.parametrize(
    ("choice", "reason"),
    [
        (RoundChoice("2.0"), "as given"),
        (RoundChoice("2.0", "from the folder name v2.0"), "from the folder name v2.0"),
        (None, "inferred as the first round after the bert run of 2022-05-06"),
    ],
    ids=["given", "folder", "inferred"],
)
def test_only_what_was_given_is_as_given(choice: RoundChoice | None, reason: str) -> None:
    assert Judge("log.txt", choice=choice)(GOOD).round_reason == reason
