"""What the campaign tries: each function makes the case of a random number generator and checks it.

A check that fails raises an exception: ``AssertionError``, or whatever nobody caught.
"""

import atexit
import gzip
import json
import lzma
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from random import Random
from typing import Any
from unittest import mock

import pyrage

from mlperf_pkg.checker.check import check
from mlperf_pkg.checker.values import Options
from mlperf_pkg.checks.descriptions import check_system
from mlperf_pkg.commands.archive.encryption import Encryption, Form, decrypt, encrypting
from mlperf_pkg.commands.export.formats import FORMATS as EXPORTS
from mlperf_pkg.commands.export.formats import Destination
from mlperf_pkg.commands.export.rows import in_order
from mlperf_pkg.commands.review.calendar import ics, read_calendar
from mlperf_pkg.commands.review.evidence import read_evidence
from mlperf_pkg.commands.review.github import take_issues
from mlperf_pkg.commands.review.objections import (
    ObjectionState,
    change_states,
    read_entries,
    with_new,
)
from mlperf_pkg.config import read_config_file
from mlperf_pkg.errors import UserError
from mlperf_pkg.infra.resources import data_folder
from mlperf_pkg.infra.source import Source
from mlperf_pkg.log import reader
from mlperf_pkg.render import FORMATS, View
from mlperf_pkg.results.report import as_json
from mlperf_pkg.rulebook.documents import rounds
from mlperf_pkg.run.model import LogFile
from mlperf_pkg.run.reading import read_run
from tests.helpers.archives import tree_tar, tree_zip
from tests.helpers.exports import written as export_written
from tests.helpers.trees import SYSTEM, simulated, write_submission
from tests.hostile.cases import nested
from tests.parity.mutations import ODD, mutate

Campaign = Callable[[Random], None]

PIECES = (
    *(b"\0", b"\r", b"\n", b"\\", b'"', b"{", b"}", b"[", b"]", b",", b":", b"-", b"1e999", b"NaN"),
    *(b":::MLLOG ", b":::MLL", b":::MLLOG {", b"\xff\xfe", b"\xef\xbb\xbf", b"\xf0\x9f\x98\x80"),
    *(b"[" * 300, b"{" * 300, b"9" * 400, b"9" * 5000, b'"key":', b"null", b"true", b"&a ", b"*a"),
    *(b"%s", b"../", b"!!python/object/apply:os.system", b"<<: *a", b"\\ud800", b"\x1b[31m"),
)
DEEP: tuple[Any, ...] = (nested(300), nested(900), {"a": nested(400)}, "\ud800", "x" * 20_000)
LARGE: tuple[Any, ...] = (-(10**400), "\x1b[31m\ufffe", list(range(20_000)), "[" * 99)
HOSTILE: tuple[Any, ...] = (*ODD, *DEEP, *LARGE)


def spoiled(data: bytes, rng: Random, most: int = 6) -> bytes:
    """Bytes after a few changes: flipped, cut out, doubled, replaced, put in."""
    text = bytearray(data)
    for _ in range(rng.randint(1, most)):
        at = rng.randrange(len(text) + 1)
        end = min(len(text), at + rng.choice((0, 1, 1, 2, 8, 64)))
        match rng.randrange(5):
            case 0 if at < len(text):
                text[at] ^= 1 << rng.randrange(8)
            case 1:
                del text[at:end]
            case 2:
                text[at:at] = text[at:end] * rng.choice((1, 2, 50))
            case 3:
                text[at:end] = rng.choice(PIECES)
            case _:
                text[at:at] = rng.choice(PIECES)
    return bytes(text)


# ---- logs ---------------------------------------------------------------------------------


@cache
def _logs() -> tuple[bytes, ...]:
    return tuple(simulated(name)[0] for name in ("resnet", "bert", "ssd"))


def _spoiled_log(rng: Random) -> bytes:
    lines = rng.choice(_logs()).splitlines(keepends=True)
    start = rng.randrange(len(lines)) if rng.random() < 0.5 else 0
    log = b"".join(mutate(lines[start : start + rng.choice((5, 50, 5000))], rng))
    return spoiled(log, rng) if rng.random() < 0.7 else log


def scanner(rng: Random) -> None:
    """The scanner in C and the reader in Python give the same result for a log."""
    file = LogFile(Source("result_0.txt", _spoiled_log(rng)), "training", "2.0")
    with mock.patch.object(reader, "CHUNK_BYTES", rng.choice((1 << 20, 1 << 20, 4096, 100))):
        by_scanner = repr(read_run(file))  # as NaN is not equal to itself
        with mock.patch.object(reader, "HAS_SCAN", new=False):
            assert repr(read_run(file)) == by_scanner


def logs(rng: Random) -> None:
    """A loose log has a report, whatever is in it."""
    with _folder() as folder:
        (folder / "result_0.txt").write_bytes(_spoiled_log(rng))
        _check(folder / "result_0.txt", rng)


# ---- descriptions and YAML ----------------------------------------------------------------


@cache
def _description() -> bytes:
    return (data_folder("systems") / f"{SYSTEM}.json").read_bytes()


def descriptions(rng: Random) -> None:
    """A system description has findings, whatever is in it."""
    if rng.random() < 0.5:
        data = spoiled(_description(), rng)
    else:
        fields = json.loads(_description())
        for name in rng.sample(list(fields), rng.randint(1, 3)):
            fields[name] = rng.choice(HOSTILE)
        data = json.dumps(fields).encode()
    system = check_system("x.json", data, "training", rng.choice(list(rounds("training"))))
    json.dumps(as_json(system.findings), allow_nan=False)


CONFIG = b"""\
round: "2.0"
usage: training
platforms: {a*: dgx, b: bow}
waivers:
  - code: SET101
    path: results/x/bert
    reason: agreed
    approved_by: somebody
    until: 2030-01-01
prices:
  bow: {price_usd: 1.5, source: "https://example.com", date: 2026-01-01}
"""


def yaml(rng: Random) -> None:
    """A configuration is read, or refused with a message."""
    with _spoiled_file("mlperf-pkg.yaml", CONFIG, rng) as path:
        read_config_file(path)


OBJECTIONS = b"""\
objections:
  - id: "1"
    against: Mallory
    code: BERT111
    about: [results/x/bert, "result_0.txt:12"]
    state: filed
    by: [ACME, "B, C"]
    note: "a = 1; expected 2"
  - {id: two, against: Mallory, state: open, percent: 1.5 %, scores: {x: 1}, lines: ["x.py:1-2"]}
"""


def objections(rng: Random) -> None:
    """A file of objections is read and extended, or refused with a message."""
    with _spoiled_file("objections.yaml", OBJECTIONS, rng) as path:
        with_new(path, ())
        change_states(path, ["1"], {"state": ObjectionState.WITHDRAWN.value}, None, ["ACME"])
        read_entries(path)


EVIDENCE = b"""\
{"runs": {"A/results/x/bert": [{"digest": "0", "keys": {"seed": ["1", "0"]}, "path": "result_0.txt",
"fingerprint": "AA==", "start_ms": 1.0, "stop_ms": 2.5, "evaluated": [0.5], "evaluated_ms": [null],
"losses": []}]}, "files": {"A/systems/x.json": "00"}, "format": "mlperf-pkg/evidence/1"}
"""
ISSUES = b"""\
[{"number": 1, "title": "a", "body": "Objection `1` of mlperf-pkg.", "state": "OPEN",
"labels": [{"name": "by ACME"}], "url": "u"}, {"number": 2, "title": "b", "state": "CLOSED",
"labels": [{"name": "against Mallory"}, {"name": "waived"}], "url": "v", "author": null,
"body": "https://github.com/o/training_results_v5.1/blob/f00/A/benchmarks/x.py#L1-L2 A/x.py:3"}]
"""


def issues(rng: Random) -> None:
    """Issues and evidence are read, or refused with a message; what is written can be read."""
    with _spoiled_file("evidence.json", EVIDENCE, rng) as path:
        for runs in read_evidence(path).runs.values():
            assert [logged.run.path for logged in runs] == [logged.path for logged in runs]
    with _spoiled_file("issues.json", ISSUES, rng) as path:
        states = path.with_name("objections.yaml")
        states.write_bytes(OBJECTIONS)
        take_issues(states, path)
        read_entries(states)


CALENDAR = b"""\
submission: 2026-10-16  # 13:00 Pacific
objections: 2026-10-23
"""


def calendar(rng: Random) -> None:
    """The dates of a review are read and written, or refused with a message."""
    with _spoiled_file("calendar.yaml", CALENDAR, rng) as path:
        ics(read_calendar(path), View())


# ---- exports ------------------------------------------------------------------------------


@cache
def _export(ending: str) -> dict[str, bytes]:
    """The files of an export of a row of each table."""
    with _folder() as folder:
        path = export_written(folder, ending)
        files = path.iterdir() if path.is_dir() else [path]
        return {file.relative_to(folder).as_posix(): file.read_bytes() for file in files}


def exports(rng: Random) -> None:
    """An export is read as one may be written, or refused with a message."""
    ending = rng.choice(sorted(EXPORTS))
    with _folder() as folder:
        files = _export(ending)
        hostile = rng.choice(sorted(files))
        for name, data in files.items():
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_bytes(spoiled(data, rng) if name == hostile else data)
        with _refused(path := folder / f"results{ending}"):
            rows = Destination(path).read()
            assert in_order(rows) == rows


@contextmanager
def _spoiled_file(name: str, content: bytes, rng: Random) -> Iterator[Path]:
    with _folder() as folder, _refused(folder / name):
        (folder / name).write_bytes(spoiled(content, rng))
        yield folder / name


@contextmanager
def _refused(path: Path) -> Iterator[None]:
    """What is refused has a message that names the file."""
    try:
        yield
    except UserError as error:
        assert str(path) in str(error)  # noqa: PT017 - the message is what is tested


# ---- archives -----------------------------------------------------------------------------


@cache
def _archives() -> tuple[tuple[str, bytes], ...]:
    log = simulated("resnet")[0][:8000]
    files = {f"a/results/{SYSTEM}/resnet/result_{number}.txt": log for number in range(2)}
    packed = tree_tar(files, top="")
    return (
        ("x.tar", packed),
        ("x.tar.gz", gzip.compress(packed)),
        ("x.tar.xz", lzma.compress(packed)),
        ("x.zip", tree_zip(files)),
        ("x.log.gz", gzip.compress(log)),
        ("x.log.xz", lzma.compress(log)),
    )


def archives(rng: Random) -> None:
    """An archive is read, or refused with a message; no other file is written."""
    name, data = rng.choice(_archives())
    with _folder() as folder:
        inner = folder / "inner"
        inner.mkdir()
        (inner / name).write_bytes(spoiled(data, rng))
        with _refused(inner):
            _check(inner, rng)
        assert [path.name for path in folder.rglob("*")] == ["inner", name]


# ---- encrypted archives -------------------------------------------------------------------


@cache
def _encrypted() -> tuple[tuple[bytes, bytes], ...]:
    """An identity, if there is one, and a file that it decrypts, of each form."""
    key = pyrage.x25519.Identity.generate()
    packed = gzip.compress(b"packed")
    by_age = pyrage.encrypt(packed, [key.to_public()])
    as_text = pyrage.encrypt(packed, [key.to_public()], armored=True)
    with _folder() as folder:
        with encrypting(folder / "x", Encryption(Form.OFFICIAL, "secret")) as sink:
            sink(packed)
        by_aes = (folder / "x").read_bytes()
    identity = str(key).encode()
    return ((identity, by_age), (identity, as_text), (SSH_KEY, by_age), (b"", by_aes))


SSH_KEY = b"""\
-----BEGIN OPENSSH PRIVATE KEY-----
b3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQAAAAAAAAABAAAAMwAAAAtzc2gtZW
QyNTUxOQAAACAaAQIDBAUGBwgJCgsMDQ4PEBESExQVFhcYGRobHB0eHwAAAIgAAAAAAAAA
-----END OPENSSH PRIVATE KEY-----
"""


def encrypted(rng: Random) -> None:
    """An encrypted file is decrypted, or refused with a message, whatever the identity is."""
    identity, data = rng.choice(_encrypted())
    with _folder() as folder:
        (folder / "x").write_bytes(spoiled(data, rng) if rng.random() < 0.6 else data)
        (folder / "key").write_bytes(spoiled(identity, rng) if rng.random() < 0.6 else identity)
        with _refused(folder):
            key = folder / "key" if identity else None
            decrypt(folder / "x", folder / "plain", key, lambda: "secret")


# ---- submissions --------------------------------------------------------------------------


@cache
def _submission() -> Path:
    folder = tempfile.mkdtemp(prefix="fuzz-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return write_submission(Path(folder) / "Mallory")


SMALL_FILES = ("scaling.json", "package_checker_params", "power/result_0/node_0.txt", "power")
VALUES = (b'{"scaling_factor": 1.05}', b"rcp-bypass", b"seed-checker-bypass\n", b"")


def sets(rng: Random) -> None:
    """A submission with one hostile key, or one hostile file, has a report."""
    with _folder() as folder:
        tree = folder / "training_results_v2.0" / "Mallory"
        shutil.copytree(_submission(), tree)
        logs = sorted(tree.glob("results/*/*/result_*.txt"))
        if rng.random() < 0.2:
            path = logs[0].parent / rng.choice(SMALL_FILES)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(spoiled(rng.choice(VALUES), rng))
        else:
            _make_hostile(rng.sample(logs, rng.choice((1, 1, len(logs)))), rng)
        _check(tree.parent, rng)


def _make_hostile(paths: list[Path], rng: Random) -> None:
    """Give the records of a key another value, or one in their metadata."""
    records = [json.loads(line[9:]) for line in paths[0].read_bytes().splitlines()]
    key, value = rng.choice(sorted({record["key"] for record in records})), rng.choice(HOSTILE)
    names = sorted({name for r in records if r["key"] == key for name in r["metadata"] or ()})
    name = rng.choice((None, None, "time_ms", "metadata", *names))
    for path in paths:
        lines = []
        for line in path.read_bytes().splitlines():
            record = json.loads(line[9:])
            if record["key"] == key:
                if name in names:
                    record["metadata"][name] = value
                else:
                    record[name or "value"] = value
            lines.append(b":::MLLOG " + json.dumps(record).encode())
        path.write_bytes(b"\n".join(lines))


# ---- shared by all campaigns --------------------------------------------------------------


@contextmanager
def _folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
        yield Path(folder)


def _check(path: Path, rng: Random) -> None:
    """Check a path and render the report, which must not contain a defect of ours."""
    report = check([str(path)], Options(jobs=1)).report
    json.dumps(as_json(report), allow_nan=False)
    FORMATS[rng.choice(sorted(FORMATS))](report, View(80))
    defects = [finding.text for finding in report.findings if finding.code.startswith("CHECK")]
    assert not defects, defects


_OF_TEXT = (scanner, logs, descriptions, yaml, objections, issues, calendar)
ALL = (*_OF_TEXT, exports, archives, encrypted, sets)
CAMPAIGNS: Mapping[str, Campaign] = {campaign.__name__: campaign for campaign in ALL}


def run(campaign: str, seed: int) -> None:
    """Run one case."""
    CAMPAIGNS[campaign](Random(f"{campaign} {seed}"))
