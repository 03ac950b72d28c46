"""Find submissions and logs in a folder, and sort the files of one without a submission."""

import errno
import gzip
import lzma
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mlperf_pkg.errors import UserError
from mlperf_pkg.infra.source import Source, content_of
from mlperf_pkg.submission import find
from mlperf_pkg.submission.find import find_input, find_inputs, find_part, find_parts, labels
from mlperf_pkg.submission.model import (
    Input,
    Place,
    PowerFolder,
    SetName,
    Submission,
    Why,
    set_name,
)
from tests.helpers.archives import tree_tar, tree_zip, zstandard
from tests.helpers.trees import SYSTEM, remove, simulated, write_set, write_submission, write_system
from tests.helpers.workspaces import lay

LOG = simulated()[0]


def bytes_of(source: Source) -> bytes:
    with source.open() as stream:
        return stream.read()


@pytest.mark.parametrize(
    ("files", "logs"),
    [
        ({"a.log": LOG}, ["a.log"]),
        ({"b.txt": LOG, "a.out": LOG, "noext": LOG}, ["a.out", "b.txt", "noext"]),
        ({"deep/er/a.log": LOG, "deep/b.log": LOG}, ["deep/b.log", "deep/er/a.log"]),
        ({"a.log": LOG, "notes.txt": b"hello", "code.py": LOG, "x.json": LOG}, ["a.log"]),
        ({"a.log": LOG, ".hidden/b.log": LOG, ".c.log": LOG}, ["a.log"]),
        ({"result_0.txt": b"", "a.log": LOG}, ["a.log", "result_0.txt"]),
        ({"a [1].log": LOG, "b\n.log": LOG}, ["a [1].log", "b\n.log"]),
        ({"results/a.log": LOG}, ["results/a.log"]),
        ({"a.log-20240501": LOG, "job.o4711": LOG}, ["a.log-20240501", "job.o4711"]),
        ({"a.0": LOG, "a.stdout": LOG, "b.log.bak": LOG}, ["a.0", "a.stdout", "b.log.bak"]),
        ({"run.sub": b"grep ':::MLLOG ' $LOG\n", "a.log": LOG}, ["a.log"]),
        ({"a.0": LOG.replace(b":::MLLOG ", b":::MLLOG  ")}, ["a.0"]),
        ({"a.LOG": LOG, "b.csv": LOG, "c.pt": LOG, "d.rst": b"text"}, ["a.LOG"]),
    ],
)
def test_loose_logs(tmp_path: Path, files: dict[str, bytes], logs: list[str]) -> None:
    contents = find_input(str(lay(tmp_path, files)))
    assert [place.label for place in contents.logs] == logs
    assert contents.submissions == ()
    name = Path(logs[0]).name
    assert [place.label for place in find_input(str(tmp_path / logs[0])).logs] == [name]


def test_a_submission(tmp_path: Path) -> None:
    root = write_submission(tmp_path / "Graphcore", "resnet", "bert")
    lay(root / "results" / SYSTEM, {"resnet/scaling.json": b"{}", "resnet/run.log": b"x"})
    (submission,) = find_input(str(root)).submissions
    assert submission.name == "Graphcore"
    assert [place.label for place in submission.systems] == [f"systems/{SYSTEM}.json"]
    bert, resnet = submission.result_sets
    assert (bert.place.label, bert.name_of("A")) == (f"{WHOLE}/bert", f"A/{SYSTEM}/bert")
    assert (len(bert.logs), len(resnet.logs)) == (10, 5)
    assert resnet.others == ("run.log", "scaling.json")
    assert (bert.scaling, resnet.scaling) == (None, "{}")
    (tested,) = submission.tested
    assert (tested.place.label, tested.folders) == (f"results/{SYSTEM}", ("bert", "resnet"))


def test_small_files_that_are_too_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = ["package_checker_params", f"{WHOLE}/privateid.json", f"{WHOLE}/resnet/scaling.json"]
    lay(write_submission(tmp_path), dict.fromkeys(texts, b"{}"))
    monkeypatch.setattr(find, "_MAX_BYTES", 1)
    contents = find_input(str(tmp_path))
    assert contents.submissions[0].result_sets[0].scaling is None
    assert sorted(file.place.label for file in contents.unread) == sorted(texts)
    assert all(f.why is Why.UNCHECKED and "larger than" in f.reason for f in contents.unread)


def test_a_round_of_submissions(tmp_path: Path) -> None:
    for name in ("B", "A"):
        write_submission(tmp_path / name)
    contents = find_input(str(tmp_path), "v2.0")
    assert [s.name for s in contents.submissions] == ["A", "B"]
    assert contents.submissions[0].systems[0].label == f"v2.0/A/systems/{SYSTEM}.json"


def test_results_that_are_not_a_folder(tmp_path: Path) -> None:
    write_submission(tmp_path / "A")
    write_system(tmp_path / "B" / "systems")
    (tmp_path / "B" / "results").write_text("")
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "results").write_text("")  # no submission
    contents = find_input(str(tmp_path))
    assert [submission.name for submission in contents.submissions] == ["A"]
    unread = [f"{file.place.label}: {file.reason}" for file in contents.unread]
    assert unread == ["B/results: Not a directory"]


@pytest.mark.parametrize(
    ("argument", "label", "first"),
    [
        (f"A/results/{SYSTEM}/resnet", "", "result_0.txt"),
        (f"A/results/{SYSTEM}", "resnet", "resnet/result_0.txt"),
        ("A/results", f"{SYSTEM}/resnet", f"{SYSTEM}/resnet/result_0.txt"),
        ("link", "", "result_0.txt"),
        ("links", "resnet", "resnet/result_0.txt"),
        (f"A/results/{SYSTEM}/resnet/..", "resnet", "resnet/result_0.txt"),
    ],
)
def test_a_result_set_alone(tmp_path: Path, argument: str, label: str, first: str) -> None:
    root = write_submission(tmp_path / "A")
    (tmp_path / "link").symlink_to(root / "results" / SYSTEM / "resnet")
    (tmp_path / "links").symlink_to(root / "results" / SYSTEM)
    (root / "results" / SYSTEM / "resnet" / "run.log").write_bytes(simulated()[0])
    contents = find_input(str(tmp_path / argument))
    (files,) = contents.result_sets
    assert (files.place.label, files.system, files.benchmark) == (label, SYSTEM, "resnet")
    assert next(place.label for place in files.logs) == first
    assert (len(files.logs), files.others, contents.logs) == (5, ("run.log",), ())
    assert contents.workspace is None  # but a part of a submission


def test_a_result_set_behind_a_link(tmp_path: Path) -> None:
    write_set(tmp_path / "a" / "real" / WHOLE / "resnet", simulated()[:1])
    (tmp_path / "link").symlink_to(tmp_path / "a" / "real" / WHOLE / "resnet")
    sets = find_input(str(tmp_path)).result_sets
    names = [(files.place.label, files.system, files.benchmark) for files in sets]
    assert names == [(label, SYSTEM, "resnet") for label in (f"a/real/{WHOLE}/resnet", "link")]


def test_a_result_set_as_the_parent_of_the_working_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write_submission(tmp_path / "A") / "results" / SYSTEM / "resnet" / "inner"
    folder.mkdir()
    monkeypatch.chdir(folder)
    (files,) = find_input("..").result_sets
    assert (files.system, files.benchmark, len(files.logs)) == (SYSTEM, "resnet", 5)


@pytest.mark.parametrize(
    ("folder", "expected"),
    [
        ("results/x/resnet", SetName("x", "resnet")),
        ("/a/b/results/x/resnet", SetName("x", "resnet")),
        ("results/x/strong/deepcam", SetName("x", "deepcam", "strong")),
        ("results/x/weak/deepcam", SetName("x", "deepcam", "weak")),
        ("results/x/strong", None),
        ("results/x", None),
        ("results/.x/resnet", None),
        ("results/x/.resnet", None),
        ("result/x/resnet", None),
        ("results/x/resnet/old", None),
    ],
)
def test_the_path_of_a_result_set(folder: str, expected: SetName | None) -> None:
    assert set_name(folder) == expected


@pytest.mark.parametrize("below", [f"{SYSTEM}/resnet", f"{SYSTEM}/weak/resnet"])
@pytest.mark.parametrize("argument", ["submission", "system", "result set"])
def test_a_set_alone_has_the_flags_of_its_submission(
    tmp_path: Path, argument: str, below: str
) -> None:
    root = tmp_path / "Graphcore"
    folders = {
        "submission": root,
        "system": root / "results" / SYSTEM,
        "result set": root / "results" / below,
    }
    write_set(folders["result set"], simulated()[:1])
    (root / "package_checker_params").write_text("rcp_bypass")
    (folders["system"] / "package_checker_params").write_text("seed-checker-bypass")
    content = find_input(str(folders[argument]))
    sets = [*content.result_sets, *(s for sub in content.submissions for s in sub.result_sets)]
    assert [files.flags for files in sets] == [{"rcp-bypass", "seed-checker-bypass"}]


def test_hpc_has_a_level_more(tmp_path: Path) -> None:
    for scaling in ("strong", "weak"):
        write_set(tmp_path / "A" / "results" / "s" / scaling / "deepcam", simulated()[:1])
    (tmp_path / "A" / "systems").mkdir()
    (submission,) = find_input(str(tmp_path / "A")).submissions
    labelled = [(files.place.label, files.system) for files in submission.result_sets]
    assert labelled == [(f"results/s/{scaling}/deepcam", "s") for scaling in ("strong", "weak")]


BOTH = frozenset({"rcp-bypass", "seed-checker-bypass"})


@pytest.mark.parametrize(
    "case",
    [
        (b"rcp-bypass", {"rcp-bypass"}, {"rcp-bypass"}, ()),
        (b"rcp-bypass\n", {"rcp-bypass"}, set(), ("rcp-bypass",)),
        (b"rcp_bypass\nseed_checker_bypass\n", BOTH, set(), tuple(sorted(BOTH))),
        (b"rcp-bypass\r\nseed-checker-bypass", BOTH, {"seed-checker-bypass"}, ("rcp-bypass",)),
        (b"rcp-bypass\nrcp-bypass", {"rcp-bypass"}, {"rcp-bypass"}, ()),
        (b"--rcp-bypass", {"rcp-bypass"}, set(), ("rcp-bypass",)),
        (
            b"--rcp-bert-train-samples\r\n",
            {"rcp-bert-train-samples"},
            set(),
            ("rcp-bert-train-samples",),
        ),
        (b" seed-checker-bypass", {"seed-checker-bypass"}, set(), ("seed-checker-bypass",)),
        (b"", set(), set(), ()),
    ],
)
@pytest.mark.parametrize("level", ["", f"results/{SYSTEM}", f"results/{SYSTEM}/resnet"])
def test_flags(tmp_path: Path, level: str, case: Any) -> None:
    params, at_top, below, ignored = case
    root = write_submission(tmp_path)
    (root / level / "package_checker_params").write_bytes(params)
    (submission,) = find_input(str(root)).submissions
    assert submission.result_sets[0].flags == (below if level else at_top)
    assert submission.flags == (set() if level else at_top)
    (read,) = submission.params.values()
    assert read.ignored == (ignored if level else ())
    assert read.crash is None


@pytest.mark.parametrize("level", ["", f"results/{SYSTEM}", f"results/{SYSTEM}/resnet"])
def test_flags_that_cannot_be_read(tmp_path: Path, level: str) -> None:
    root = write_submission(tmp_path)
    (root / level / "package_checker_params").mkdir()
    (submission,) = find_input(str(root)).submissions
    (read,) = submission.params.values()
    assert (read.flags, read.crash) == (frozenset(), "it cannot be read (Is a directory)")


def test_links_out_of_the_argument_are_not_followed(tmp_path: Path) -> None:
    lay(tmp_path, {"secret/x.log": LOG, "in/a.log": LOG, "in/below/b.log": LOG})
    inside = tmp_path / "in"
    (inside / "out.log").symlink_to(tmp_path / "secret" / "x.log")
    (inside / "folder").symlink_to(tmp_path / "secret")
    (inside / "broken.log").symlink_to(tmp_path / "nowhere")
    (inside / "below" / "again").symlink_to(inside)
    (inside / "same.log").symlink_to("a.log")
    contents = find_input(str(inside))
    assert [p.label for p in contents.logs] == ["a.log", "below/b.log", "same.log"]
    skipped = sorted(place.label for place in contents.skipped)
    assert skipped == ["below/again", "broken.log", "folder", "out.log"]


def test_a_folder_that_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lay(tmp_path, {"a.log": LOG, "closed/b.log": LOG})
    read = os.scandir

    def scandir(folder: str) -> object:
        if folder.endswith("closed"):
            raise PermissionError(errno.EACCES, "Permission denied")
        return read(folder)

    monkeypatch.setattr(os, "scandir", scandir)
    (file,) = find_input(str(tmp_path)).unread
    assert (file.place.label, file.reason) == ("closed", "Permission denied")
    assert file.why is Why.UNCHECKED


@pytest.mark.parametrize("argument", ["", "/logs", "/logs/s", "/logs/s/a.log"])
def test_the_name_of_a_workspace(tmp_path: Path, argument: str) -> None:
    lay(tmp_path, {"logs/s/a.log": LOG, "systems/s.json": b"{}"})
    workspace = find_input(f"{tmp_path}{argument}", f"ws{argument}").workspace
    assert workspace
    labels_ = [workspace.label, *(place.label for place in workspace.systems)]
    assert labels_ == ["ws", "ws/systems/s.json"]


def test_nothing_there(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    with pytest.raises(UserError, match=r"no MLPerf log in .*/logs "):
        find_input(str(tmp_path / "logs"))
    with pytest.raises(UserError, match=r"no such file or folder; did you mean .*logs\?"):
        find_input(str(tmp_path / "lgos"))
    with pytest.raises(
        UserError, match=r"9\.9: .*; for round 9\.9, name the folder of its submissions"
    ):
        find_input("9.9")
    with pytest.raises(
        UserError, match="/dev/null: not a file or a folder, but a pipe, a device or a"
    ):
        find_input("/dev/null")


@pytest.mark.parametrize(
    ("log", "paths"),
    [
        ("result_0.old.txt", ["power/result_0/node_0.txt"]),
        ("result_1.txt", []),
        ("result_2.txt", []),
    ],
)
def test_the_power_logs_of_a_run(log: str, paths: list[str]) -> None:
    results = {"result_0": ("node_0.txt", "notes.txt"), "result_1": None}
    power = PowerFolder(Place("power", "power"), results)
    assert [place.label for place in power.logs_of(f"set/{log}")] == paths


def test_labels() -> None:
    assert labels(["a/"]) == [""]
    assert labels(["a/", "b/c.log"]) == ["a", "b/c.log"]


@pytest.mark.parametrize(
    ("head", "reason"),
    [
        (b"age-encryption.org/v1\n", "an archive, not a log; 'mlperf-pkg verify"),
        (b"Salted__12345678", "an archive, not a log; 'mlperf-pkg verify"),
        (b"\x1f\x8b\x08", "cannot be read: the gzip data is damaged"),
        (b"PK\x03\x04", "cannot be read: the zip archive is damaged"),
    ],
)
def test_an_archive_that_cannot_be_read(tmp_path: Path, head: bytes, reason: str) -> None:
    archive = lay(tmp_path, {"ACME.tar.gz": head + LOG}) / "ACME.tar.gz"
    with pytest.raises(UserError, match=rf"ACME\.tar\.gz: {reason}"):
        find_input(str(archive))


@pytest.mark.parametrize(
    ("name", "read"),
    [
        ("results", lambda tree: tree.result_sets),
        ("systems", lambda tree: tree.systems),
        (f"results/{SYSTEM}/resnet/scaling.json", lambda tree: tree.result_sets[0].scaling),
        (f"results/{SYSTEM}/privateid.json", lambda tree: tree.tested[0].private_id),
        (f"results/{SYSTEM}/resnet/package_checker_params", lambda tree: tree.params),
        ("package_checker_params", lambda tree: tree.params),
        (f"results/{SYSTEM}/resnet/power", lambda tree: tree.result_sets[0].power),
    ],
    ids=["results", "systems", "scaling", "private id", "flags of a set", "flags", "power"],
)
@pytest.mark.parametrize("alone", [True, False], ids=["alone", "in a round"])
def test_a_link_out_of_the_tree_is_named_and_not_opened(
    tmp_path: Path, name: str, read: Callable[[Submission], object], alone: bool
) -> None:
    outside = write_submission(tmp_path / "outside")
    files = {
        f"results/{SYSTEM}/resnet/scaling.json": b"{}",
        f"results/{SYSTEM}/privateid.json": b"{}",
        f"results/{SYSTEM}/resnet/package_checker_params": b"rcp-bypass",
        f"results/{SYSTEM}/resnet/power/result_0/node_0.txt": b"",
        "package_checker_params": b"rcp_bypass",
    }
    lay(outside, files)
    link = write_submission(tmp_path / "round" / "ACME") / name
    if link.exists():
        remove(link)
    link.symlink_to(outside / name)
    top = tmp_path / "round" / ("ACME" if alone else "")
    contents = find_input(str(top))
    (submission,) = contents.submissions
    assert not read(submission)
    assert [place.path for place in contents.skipped] == [link]


def test_a_link_inside_the_tree_is_followed(tmp_path: Path) -> None:
    root = write_submission(tmp_path / "ACME")
    (root / "results").rename(root / "real")
    (root / "results").symlink_to("real")
    contents = find_input(str(root))
    assert len(contents.submissions[0].result_sets) == 1
    assert contents.skipped == ()


WHOLE = f"results/{SYSTEM}"


@pytest.mark.parametrize(
    ("argument", "prefix", "sets"),
    [
        ("Org", "", [f"{WHOLE}/bert", f"{WHOLE}/resnet"]),
        ("Org/results", "", [f"{WHOLE}/bert", f"{WHOLE}/resnet"]),
        (f"Org/{WHOLE}", "", [f"{WHOLE}/bert", f"{WHOLE}/resnet"]),
        (f"Org/{WHOLE}/bert", "", [f"{WHOLE}/bert"]),
        (f"Org/{WHOLE}/bert", "x", [f"Org/{WHOLE}/bert"]),
        ("Org.tar", "", [f"Org.tar/Org/{WHOLE}/bert", f"Org.tar/Org/{WHOLE}/resnet"]),
    ],
)
def test_a_part_of_a_submission(argument: str, prefix: str, sets: list[str], org: Path) -> None:
    """Its result sets keep the names that they have in the whole, whose systems are described."""
    shutil.make_archive("Org", "tar", org.parent, "Org")
    (submission,) = find_part(argument, prefix).submissions
    assert [result_set.place.label for result_set in submission.result_sets] == sets
    assert [Path(place.label).stem for place in submission.systems] == [SYSTEM]
    assert submission.entries == ()
    (one,) = find_part(argument, prefix, lambda files: files.benchmark == "bert").submissions
    assert [result_set.benchmark for result_set in one.result_sets] == ["bert"]


@pytest.fixture
def org(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A submission of two sets, in the current folder."""
    monkeypatch.chdir(tmp_path)
    return write_submission(tmp_path / "Org", "resnet", "bert")


def test_parts_named_twice_are_found_once(org: Path) -> None:
    first, second = find_parts([f"Org/{WHOLE}/bert", "Org"])
    assert (first.submissions, len(second.submissions[0].result_sets)) == ((), 2)
    names = [f"Org/{WHOLE}/bert", f"Org/{WHOLE}/resnet"]
    sets = [files for part in find_parts(names) for files in part.submissions[0].result_sets]
    assert [files.place.label for files in sets] == names


@pytest.mark.parametrize(
    ("arguments", "read", "reasons"),
    [
        (["Org", "Other"], [0, 1], []),
        (["Org", "Org/"], [0], ["Org has the same logs"]),
        (["Org", "Org"], [0], ["it is the same as Org"]),
        (["Org/results", "Org"], [1], ["Org has the same logs"]),
        (["link", "Org"], [0], ["link has the same logs"]),
    ],
)
def test_the_same_logs_are_read_once(
    arguments: list[str], read: list[int], reasons: list[str], org: Path
) -> None:
    write_submission(org.with_name("Other"))
    org.with_name("link").symlink_to("Org")
    inputs = find_inputs(arguments)
    assert [index for index, one in enumerate(inputs) if one.submissions or one.every_log] == read
    elsewhere = [unread for one in inputs for unread in one.unread]
    assert [u.reason for u in elsewhere if u.why is Why.TWICE] == reasons


def tar(**files: bytes) -> bytes:
    return tree_tar(files, top="")


def zipped(**files: bytes) -> bytes:
    return tree_zip(files)


GZ, XZ, ZST = gzip.compress(LOG, mtime=0), lzma.compress(LOG), zstandard(LOG)


def found(root: Path, files: dict[str, bytes]) -> Input:
    return find_input(str(lay(root, {**files, "run.log": LOG})))


def unread(contents: Input) -> dict[str, tuple[str, Why]]:
    return {file.place.label: (file.reason, file.why) for file in contents.unread}


@pytest.mark.parametrize(
    "files",
    [
        {"a.log.gz": GZ},
        {"a.log.xz": XZ},
        {"a.log.zst": ZST},
        {"result_0.txt.gz": GZ},
        {"result_0.txt.zst": zstandard(b"")},
        {"a.gz": XZ},
        {"a.log": ZST},
        {"a": GZ},
        {"x.tar/a.log": LOG},
        {"node_0.txt": LOG},
        {"power/result_0/notes.txt": LOG},
    ],
    ids=", ".join,
)
def test_one_more_log(tmp_path: Path, files: dict[str, bytes]) -> None:
    contents = found(tmp_path, files)
    assert sorted(log.label for log in contents.logs) == sorted([*files, "run.log"])
    assert contents.unread == ()
    (log,) = (log for log in contents.logs if log.label in files)
    assert bytes_of(log.source) in (LOG, b"")


@pytest.mark.parametrize(
    ("archive", "logs"),
    [
        ({"x.tar": tar(**{"a.log": LOG, "b/c.log": LOG})}, ["x.tar/a.log", "x.tar/b/c.log"]),
        ({"x.tgz": gzip.compress(tar(a=LOG))}, ["x.tgz/a"]),
        ({"x.txz": lzma.compress(tar(a=GZ))}, ["x.txz/a"]),
        ({"d/x.zip": zipped(**{"a.log": LOG, ".hidden": LOG, "a.py": LOG})}, ["d/x.zip/a.log"]),
        ({"x.zip": zipped(**{"a.log.xz": XZ})}, ["x.zip/a.log.xz"]),
        ({"x.log": tar(a=LOG)}, ["x.log/a"]),
    ],
)
def test_logs_in_an_archive(tmp_path: Path, archive: dict[str, bytes], logs: list[str]) -> None:
    contents = found(tmp_path, archive)
    expected = dict.fromkeys(["run.log", *logs], LOG)
    assert {log.label: bytes_of(log.source) for log in contents.logs} == expected
    assert len(contents.logs) == len(expected)


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"README.txt": b"hello"}, {"README.txt": "no line contains ':::MLLOG '"}),
        ({"a.txt.gz": gzip.compress(b"hello")}, {"a.txt.gz": "no line contains ':::MLLOG '"}),
        ({"empty.txt": b"", "LICENSE": b"x", "data.csv.gz": gzip.compress(b"x")}, {}),
        ({"a.log.gz": GZ[:-9]}, {}),  # which the check of the log reports
        ({"power/result_0/node_0.txt": b"no log"}, {}),
        ({"a.log.gz": GZ[:3] + b"x" * 99}, {"a.log.gz": "the gzip data is damaged"}),
        ({"a.gz": gzip.compress(XZ)}, {"a.gz": "compressed twice"}),
        ({"a.tar": tar(**{"b.zip": zipped(a=LOG)})}, {"a.tar/b.zip": "an archive in an archive"}),
        ({"a.tar.gz": gzip.compress(tar(a=LOG))[:-9]}, {"a.tar.gz": "the gzip data is cut off"}),
        ({"a.zip": b"PK\3\4"}, {"a.zip": "the zip archive is damaged"}),
        ({"a.txt": b"Salted__12345678"}, {"a.txt": "an archive, not a log"}),
        ({"a.tar": tar(**{"../a.log": LOG})}, {"a.tar/../a.log": "a path with '..'"}),
        ({"run.log.bak": LOG}, {"run.log.bak": "a backup of run.log"}),
        ({"a.tar": tar(a=LOG, **{"a~": LOG})}, {"a.tar/a~": "a backup of a"}),
        ({"run.log.bak": LOG.replace(b"G {", b"G{")}, {}),  # which the repair of run.log leaves
    ],
    ids=", ".join,
)
def test_what_is_not_read(
    tmp_path: Path, files: dict[str, bytes], expected: dict[str, str]
) -> None:
    reasons = unread(found(tmp_path, files))
    assert reasons.keys() == expected.keys()
    assert [
        (name, (reason, why))
        for name, (reason, why) in reasons.items()
        if not reason.startswith(expected[name])
    ] == []
    assert [
        (name, (reason, why))
        for name, (reason, why) in reasons.items()
        if (why is Why.NOT_A_LOG) != reason.startswith(("no line", "a backup"))
    ] == []


@pytest.mark.parametrize(
    ("line", "reason", "has_command"),
    [
        (b":::MLLOG{", "no space follows the marker ':::MLLOG' in the line '", True),
        (b":::mllog {", "the marker is ':::mllog' in the line '", True),
        (b"::MLLOG {", "the marker is '::MLLOG' in the line '", True),
        (b"{", "there is no marker before the record in the line '", False),
    ],
    ids=["no space", "other case", "no colon", "none"],
)
def test_a_file_of_damaged_records(
    tmp_path: Path, line: bytes, reason: str, has_command: bool
) -> None:
    """It is not a run, and says what its lines have in place of the marker."""
    text = b"text\n" + LOG.replace(b":::MLLOG {", line)
    (file,) = found(tmp_path, {"node1/a.log": text}).unread
    assert (file.place.label, file.why) == ("node1/a.log", Why.DAMAGED)
    assert file.reason.startswith(reason)
    assert (file.hint or "").endswith(" a.log") is has_command


def test_only_files_of_damaged_records(tmp_path: Path) -> None:
    folder = lay(tmp_path, {"a.log": LOG.replace(b"G {", b"G{"), "b.txt": b"text"})
    with pytest.raises(UserError, match=r"not read: a.log \(no space follows the marker"):
        find_input(str(folder))


def test_a_file_without_permission(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: Path, size: int) -> object:
        if path.name == "secret.log":
            raise PermissionError
        return content_of(path, size)

    monkeypatch.setattr(find, "content_of", refuse)
    reasons = unread(found(tmp_path, {"secret.log": LOG}))
    assert reasons == {"secret.log": ("no permission to read it", Why.PROBLEM)}


@pytest.mark.parametrize("name", ["ACME.tar.gz", "ACME.zip"])
@pytest.mark.parametrize("top", ["", "ACME/"])
def test_a_submission_in_an_archive(tmp_path: Path, name: str, top: str) -> None:
    root = write_submission(tmp_path / "tree")
    names = {f"{top}{p.relative_to(root)}": p for p in root.rglob("*") if p.is_file()}
    files = {path: file.read_bytes() for path, file in names.items()}
    data = zipped(**files) if name.endswith("zip") else gzip.compress(tar(**files))
    (tmp_path / name).write_bytes(data)
    (submission,) = find_input(str(tmp_path / name)).submissions
    assert submission.name == "ACME"
    (result_set,) = submission.result_sets
    assert result_set.place.label == f"{name}/{top}results/{SYSTEM}/resnet"
    assert len(result_set.logs) == 5


def test_a_round_in_an_archive(tmp_path: Path) -> None:
    root = write_submission(tmp_path / "tree")
    paths = [path for path in root.rglob("*") if path.is_file()]
    names = {f"v2.0/{name}/{path.relative_to(root)}": path for name in "AB" for path in paths}
    (tmp_path / "x.tar").write_bytes(tar(**{name: p.read_bytes() for name, p in names.items()}))
    submissions = find_input(str(tmp_path / "x.tar")).submissions
    assert [s.place.label for s in submissions] == ["x.tar/v2.0/A", "x.tar/v2.0/B"]


def test_archives_beside_submissions(tmp_path: Path) -> None:
    write_submission(tmp_path / "ACME")
    for name in ("ACME.tar.gz", "mlperf_submission_ACME.tar.gz", "Other.tar.gz", "x.txt"):
        (tmp_path / name).write_bytes(b"")
    contents = find_input(str(tmp_path))
    assert unread(contents) == {"Other.tar.gz": ("an archive beside submissions", Why.PROBLEM)}


def test_the_error_names_what_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "x.zip").write_bytes(b"PK\3\4")
    with pytest.raises(UserError, match=r"no MLPerf log in .*; not read: x\.zip \(the zip"):
        find_input(str(tmp_path))
