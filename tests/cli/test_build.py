"""``mlperf-pkg build``: its arguments, what it writes and prints, and its exit status."""

import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from mlperf_pkg.commands.builder.manifest import MANIFEST
from mlperf_pkg.commands.builder.writing import TABLES
from mlperf_pkg.config import CONFIG_NAME
from tests.helpers.program import call
from tests.helpers.workspaces import (
    POD16,
    RESNET,
    RESULTS,
    built_results,
    bytes_below,
    closed_workspace,
    described,
    lay,
    logs_of,
    numbered,
    resnet_workspace,
)

# ---- logs as they come --------------------------------------------------------------------


@pytest.mark.parametrize(
    "layout",
    [
        "logs/{}.log",
        "logs/2022/may/run-{}/slurm.out",
        "logs/bow-pod16/{}",
        "{}.log",
        "logs/tree/results/bow-pod16/resnet/result_{}.txt",
    ],
)
def test_layouts_of_logs(layout: str, tmp_path: Path) -> None:
    root = lay(tmp_path, POD16, numbered(RESNET, layout))
    before = bytes_below(root)
    assert call("build", root, "--division", "closed").exit_code == 0
    tree = bytes_below(root / "submissions" / "Graphcore")
    assert [tree[path] for path in RESULTS] == list(RESNET)
    assert tree["systems/bow-pod16.json"] == POD16["systems/bow-pod16.json"]
    assert {*tree} == {MANIFEST, *TABLES, *RESULTS, "systems/bow-pod16.json"}
    assert {name: bytes_below(root)[name] for name in before} == before


def test_messages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(resnet_workspace(tmp_path))
    explained = call("build", "--explain", "--systems", "systems")
    assert (explained.exit_code, Path("submissions").exists()) == (0, False)
    assert "submitter: Graphcore\n" in explained.stdout
    result = call("build")
    head, _, tables = result.stdout.partition("\n\n")
    assert re.sub(r"19\.\d{3}", "19.000", head).splitlines() == [
        "training 2.0, Graphcore (inferred as the first round after the resnet run of 2022-05-06)",
        (
            "  bow-pod16/resnet  closed    5/5 runs      19.000 minutes, system identified by"
            " submission_platform"
        ),
        "built submissions/Graphcore: 1 system, 1 result set, 5 logs",
        "tables submissions/Graphcore/results.html, .md, .csv, .json",
    ]
    assert tables.startswith("| Submitter | System | Benchmark | Division |")
    assert "\n\nErrors\n  the submission: no benchmarks/ folder" in tables
    assert tables.endswith("\n1 error, 0 warnings, 0 notes\n")
    counts = "0 errors, 1 warning, 0 notes"  # the tree alone may be of results
    assert f"\n{counts}\n" in call("check", "submissions/Graphcore").stdout
    assert result.stderr.startswith("note: the code of resnet is missing")


def test_logs_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    lay(resnet_workspace(tmp_path), {"logs/5.log": RESNET[0].replace(b"G {", b"G{")})
    lay(tmp_path, {"logs/6.zip": b"PK\3\4", "logs/notes.txt": b"text"})
    result = call("build", tmp_path)
    assert result.exit_code == 0
    note = "note: these files are not submitted, as they are not read: "
    (line,) = [line for line in result.stderr.splitlines() if line.startswith(note)]
    assert re.findall(r"logs/\S+ \(.{12}", line) == [
        "logs/5.log (no space fol",
        "logs/6.zip (the zip arch",
    ]


# ---- what is there already ----------------------------------------------------------------


def test_force_replaces_own_trees_only(tmp_path: Path) -> None:
    root = resnet_workspace(tmp_path)
    tree = root / "submissions/Graphcore"
    readme = f"extra_files: {{README.md: {tree.relative_to(root)}/README.md, legal: legal}}"
    assert call("build", root).exit_code == 0
    assert call("build", root).stderr.endswith("Graphcore exists already; --force replaces it\n")
    lay(root, {"legal/a/b": b"c", CONFIG_NAME: readme.encode()})
    lay(tree, {"README.md": b"ours"})
    assert call("build", root, "--force").exit_code == 0
    assert [bytes_below(tree)[name] for name in ("README.md", "legal/a/b")] == [b"ours", b"c"]
    refused = call("pack", tree)
    assert (refused.exit_code, "no benchmarks/ folder" in refused.stdout) == (1, True)
    code = {"code/README.md": b"`sh run_and_time.sh`", "code/config.sh": b""}
    lay(root, code, {CONFIG_NAME: f"{readme}\ncode: {{resnet: code}}".encode()})
    assert call("build", root, "--force").exit_code == 0
    assert call("pack", tree).exit_code == 0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({}, "link: added or changed since the submission was built"),
        ({"benchmarks/resnet/run.sh": b"train"}, "benchmarks/resnet/run.sh, link: added"),
        (
            {MANIFEST: b'{"format": "mlperf-pkg/manifest/1"}'},
            f"{MANIFEST}: the file is not a manifest",
        ),
        ({MANIFEST: b"{}"}, "was not built by mlperf-pkg"),
    ],
)
def test_force_never_deletes_what_was_not_built(
    change: dict[str, bytes], message: str, tmp_path: Path
) -> None:
    root = resnet_workspace(tmp_path)
    tree = root / "submissions/Graphcore"
    assert call("build", root).exit_code == 0
    (tree / "link").symlink_to("/etc")
    before = bytes_below(lay(tree, change))
    result = call("build", root, "--force")
    assert (result.exit_code, message in result.stderr) == (2, True)
    assert bytes_below(tree) == before


@pytest.fixture
def linked(tmp_path: Path) -> Path:
    """A workspace with links to a file and to code outside it."""
    root = lay(resnet_workspace(tmp_path / "ws"), {"x": b"1"})
    lay(tmp_path, {"outside": b"secret", "code/run_and_time.sh": b""})
    (root / "link").symlink_to("../outside")
    (root / "code").symlink_to("../code")
    return root


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("extra_files: {Results.md: x}", "Results.md: not copied: the same name as results.md"),
        ("extra_files: {a/../../b: x}", "a/../../b: not copied: a path with '..'"),
        ("extra_files: {README: nowhere}", "nowhere is not a file or a folder"),
        ("extra_files: {README: link}", ": link; with --allow-outside, they are copied"),
        ("code: {resnet: code}", ": code; with --allow-outside, they are copied"),
        ("code: {resnet: OUTSIDE/code}", "OUTSIDE/code; with --allow-outside, they"),
    ],
)
def test_extra_files_and_code_that_are_refused(setting: str, message: str, linked: Path) -> None:
    outside = str(linked.parent)
    lay(linked, {CONFIG_NAME: setting.replace("OUTSIDE", outside).encode()})
    result = call("build", linked)
    assert (result.exit_code, (linked / "submissions").exists()) == (2, False)
    assert message.replace("OUTSIDE", outside) in result.stderr


def test_an_option_copies_what_is_outside_the_workspace(linked: Path) -> None:
    lay(linked, {CONFIG_NAME: f"code: {{resnet: {linked.parent}/code}}".encode()})
    assert call("build", linked, "--allow-outside").exit_code == 0
    tree = bytes_below(linked / "submissions/Graphcore")
    assert "benchmarks/resnet/implementations/code/run_and_time.sh" in tree


def test_nothing_valid_is_left(tmp_path: Path) -> None:
    result = call("build", resnet_workspace(tmp_path, RESNET[:4]), "--invalid", "drop")
    assert result.exit_code == 1
    assert (
        "note: a result set is left out, because bow-pod16/resnet is not valid:\n"
        "  results/bow-pod16"
    ) in result.stderr
    assert "no result set is valid, so nothing is left to build" in result.stderr


# ---- refusals, and the options that override them -----------------------------------------


def test_ambiguous_platform_until_the_configuration_resolves_it(tmp_path: Path) -> None:
    tf = {"systems/pod16-tf.json": described("bow-pod16")}
    root = lay(tmp_path, POD16, tf, numbered(logs_of("Bow Pod16"), "logs/{}.log"))
    result = call("build", root)
    assert result.exit_code == 1
    assert (
        "Bow Pod16/resnet/closed: SET125: it is unclear which system wrote these logs"
        in result.stderr
    )
    heading = f"Complete the following lines, and save them as {root / CONFIG_NAME}:\n"
    _, _, block = result.stderr.partition(heading)
    key = "bow-pod16 or pod16-tf for resnet on Bow Pod16"
    assert f"systems:\n  {key}:\n    platforms:\n    - Bow Pod16\n" in block
    (root / CONFIG_NAME).write_text(block.partition("\nnothing")[0].replace(key, "pod16-tf"))
    result = call("build", root)
    assert result.exit_code == 0
    assert ", system identified by a platform in mlperf-pkg.yaml\n" in result.stdout
    assert built_results(root) == [path.replace("bow-pod16", "pod16-tf") for path in RESULTS]


def test_every_reason_is_reported(tmp_path: Path) -> None:
    root = lay(
        resnet_workspace(tmp_path, RESNET[:4]),
        numbered(logs_of("bow-pod16", "bert", runs=11), "logs/b{}.log"),
        numbered(logs_of("bow-pod64-open", "rnnt", "open"), "logs/o{}.log"),
        {"logs/strange.log": b':::MLLOG {"key": "run_start"}'},
    )
    result = call("build", root)
    assert result.exit_code == 1
    assert [
        text
        for text in (
            "error: 1 log (logs/strange.log): line 1: this record cannot be read, as it lacks",
            "error: Graphcore/bow-pod64-open/rnnt/open: SET110: submission_division is open",
            "error: bow-pod16/resnet is not valid:\n",
            (
                ": SET101: the number of runs (files result_*.txt) is 4; expected 5 [rules and"
                " official checker]\n"
            ),
            (
                ": SET101: the number of runs (files result_*.txt) is 11; expected 10"
                " [official checker]\n"
            ),
            "    hint: --choose-runs submits the 10 consecutive runs whose result is closest to",
        )
        if text not in result.stderr
    ] == []
    assert result.stderr.endswith("\nnothing was built\n")
    assert not (root / "submissions").exists()


# ---- what cannot be done ------------------------------------------------------------------


def test_no_output_inside_the_logs(tmp_path: Path) -> None:
    root = resnet_workspace(tmp_path)
    before = bytes_below(root)
    result = call("build", root, "--output", root / "logs")
    inside = f"the output folder {root}/logs/Graphcore is inside the input folder {root}/logs;"
    assert (result.exit_code, inside in result.stderr) == (2, True)
    assert bytes_below(root) == before


@pytest.mark.parametrize("options", [[], ["--output", "submissions"]])
def test_no_output_over_the_input(
    options: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(resnet_workspace(tmp_path))
    assert call("build").exit_code == 0
    result = call("build", "submissions/Graphcore", *options, "--force")
    assert (result.exit_code, "; choose another --output" in result.stderr) == (2, True)


@pytest.mark.parametrize(
    ("folders", "message"),
    [
        (
            ["systems"],
            "the folder {root}/systems/ with the system descriptions cannot be read (No such file"
            " or directory); name the right folder with 'build --systems', or write a description:",
        ),
        (
            ["systems", "logs"],
            "put the log files into {root}/logs/, or name their folder with 'build --logs'",
        ),
    ],
)
@pytest.mark.parametrize(("command", "status"), [("build", 2), ("init", 0)])
def test_nothing_to_read(
    command: str, status: int, folders: list[str], message: str, tmp_path: Path
) -> None:
    root = resnet_workspace(tmp_path)
    for folder in folders:
        shutil.rmtree(root / folder)
    result = call(command, root)
    assert (result.exit_code, message.format(root=root) in result.stderr) == (status, True)


def test_advice_names_the_folder_of_descriptions(tmp_path: Path) -> None:
    root = resnet_workspace(tmp_path)
    (root / "described").mkdir()
    result = call("build", root, "--systems", root / "described")
    assert result.exit_code == 1
    assert 'a file described/<system>.json with "division": "closed"' in result.stderr
    assert "--division closed -o described/bow-pod16.json' in the workspace" in result.stderr


@pytest.mark.parametrize(
    ("config", "status"), [("", 1), ("organizations: [acm*]", 0), ("submitter: ACME", 0)]
)
def test_logs_of_another_organisation(config: str, status: int, tmp_path: Path) -> None:
    root = resnet_workspace(tmp_path, logs_of("bow-pod16", organization="ACME"))
    lay(root, {CONFIG_NAME: config.encode()})
    result = call("build", root, "--invalid", "keep")
    advice = "list ACME under organizations in mlperf-pkg.yaml"
    assert (result.exit_code, advice in result.stderr) == (status, bool(status))


@pytest.fixture
def described_as_open(tmp_path: Path) -> Path:
    """A workspace of closed logs, whose system is described as open."""
    open_ = {"systems/bow-pod16.json": described("bow-pod16", division="open")}
    return lay(tmp_path, open_, numbered(RESNET, "logs/{}.log"))


def test_closed_logs_of_a_system_that_is_described_as_open(described_as_open: Path) -> None:
    result = call("build", described_as_open)
    assert result.exit_code == 1
    assert "to submit closed runs as open, use 'mlperf-pkg build --as-open'" in result.stderr


@pytest.mark.parametrize("options", [[], ["--division", "open", "--force"]])
def test_closed_runs_are_submitted_as_open_on_demand(
    options: list[str], described_as_open: Path
) -> None:
    result = call("build", described_as_open, "--as-open", *options)
    assert result.exit_code == 0
    assert "bow-pod16/resnet: submitted as Open because of --as-open" in result.stderr
    tree = bytes_below(described_as_open / "submissions/Graphcore")
    assert [tree[path] for path in RESULTS] == list(RESNET)


# ---- one division is built into the tree of the other one ---------------------------------

POD64_OPEN = {"systems/bow-pod64-open.json": described("bow-pod64", division="open")}
OPEN = logs_of("bow-pod64-open", "resnet", "open")
DIVISIONS = {"closed": {"bow-pod16"}, "open": {"bow-pod64-open"}}
TREE = "submissions/Graphcore"
Change = Callable[[Path], object]
CONFIG = b"code: {bert: src, resnet: src}\nextra_files: {README.md: README}\n"


def both_divisions(root: Path) -> Path:
    """Two Closed result sets, and an Open one that has a benchmark and code in common with them."""
    files = {CONFIG_NAME: CONFIG, "src/run_and_time.sh": b"", "src/README.md": b"", "README": b"1"}
    return lay(closed_workspace(root), POD64_OPEN, numbered(OPEN, "logs/o{}.log"), files)


def systems_of(root: Path) -> set[str]:
    return {path.name for path in (root / TREE / "results").iterdir()}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace of both divisions, of which Closed is built."""
    root = both_divisions(tmp_path_factory.mktemp("built"))
    assert call("build", root, "--division", "closed").exit_code == 0
    return root


@pytest.fixture
def beside(built: Path, tmp_path: Path) -> Path:
    """A copy of it."""
    return Path(shutil.copytree(built, tmp_path / "workspace"))


def test_one_after_the_other_is_both_at_once(tmp_path: Path) -> None:
    root = both_divisions(tmp_path)
    result = call("build", root, "--division", "open")
    assert (result.exit_code, systems_of(root)) == (0, DIVISIONS["open"])
    assert ("note: these logs are left out, as they are of the closed division: ") in result.stderr
    before = bytes_below(root / TREE)
    result = call("build", root, "--division", "closed")
    assert result.exit_code == 0
    assert " of the open division in " in result.stderr
    assert "note: left out" not in result.stderr
    in_turn = bytes_below(root / TREE)
    assert before.items() - in_turn.items() == {(n, before[n]) for n in (MANIFEST, *TABLES)}
    assert call("build", root, "--force").exit_code == 0
    assert bytes_below(root / TREE) == in_turn


@pytest.mark.parametrize("division", DIVISIONS)
def test_a_division_that_is_there_is_replaced_by_force(division: str, tmp_path: Path) -> None:
    root = both_divisions(tmp_path)
    assert call("build", root).exit_code == 0
    before = bytes_below(root / TREE)
    refused = call("build", root, "--division", division)
    message = f"Graphcore: has results of the {division} division already; --force repl"
    assert (refused.exit_code, message in refused.stderr) == (2, True)
    assert call("build", root, "--division", division, "--force").exit_code == 0
    assert bytes_below(root / TREE) == before


# ---- what would be lost -------------------------------------------------------------------


def config(text: bytes) -> Change:
    return lambda root: lay(root, {CONFIG_NAME: text})


def description(**fields: str) -> Change:
    return lambda root: lay(root, {"systems/bow-pod16.json": described("bow-pod16", **fields)})


def without(pattern: str) -> Change:
    def remove(root: Path) -> None:
        for path in root.glob(pattern):
            path.unlink()

    return remove


BERT = "results/bow-pod16/bert/result_"
CODE = "benchmarks/bert/implementations/src/"


@pytest.mark.parametrize(
    ("change", "options", "first"),
    [
        (without("logs/b0.log"), (), f"{BERT}0.txt,\n  {BERT}1.txt,\n"),
        (description(hw_notes="liquid"), (), "must keep:\n  systems/bow-pod16.json\n"),
        (description(division="open"), ("--as-open",), "systems/bow-pod16.json\n"),
        (without("systems/bow-pod16.json"), (), f"{BERT}0.txt,\n"),
        (
            lambda root: lay(root, {"src/run_and_time.sh": b"train"}),
            (),
            f"{CODE}run_and_time.sh,\n",
        ),
        (
            config(b"extra_files: {README.md: README}"),
            (),
            f"{CODE}README.md,\n  {CODE}run_and_time.sh,\n",
        ),
        (config(CONFIG), ("--leave-out", "bow-pod16/bert"), f"{CODE}README.md,\n"),
    ],
)
def test_the_other_division_is_never_lost(
    beside: Path, change: Change, options: tuple[str, ...], first: str
) -> None:
    """Not even by force."""
    change(beside)
    before = bytes_below(beside)
    more = "--dry-run" if options else "--force"
    result = call("build", beside, "--division", "open", *options, more)
    assert result.exit_code == 2
    assert f"{TREE}: " in result.stderr
    assert first in result.stderr
    assert "or choose another --output\n" in result.stderr
    assert bytes_below(beside) == before


def test_extra_files_of_both_change_by_force(beside: Path) -> None:
    lay(beside, {"README": b"2"})
    before = bytes_below(beside)
    result = call("build", beside, "--division", "open")
    assert (result.exit_code, bytes_below(beside)) == (2, before)
    assert ": this build would change or remove README.md; --force allows this\n" in result.stderr
    assert call("build", beside, "--division", "open", "--force").exit_code == 0
    assert bytes_below(beside / TREE)["README.md"] == b"2"
    assert systems_of(beside) == DIVISIONS["closed"] | DIVISIONS["open"]


def test_what_was_not_built_is_never_lost(beside: Path) -> None:
    lay(beside / TREE, {"results/bow-pod16/bert/result_0.txt": b"by hand", "results.md": b"mine"})
    before = bytes_below(beside)
    result = call("build", beside, "--division", "open", "--force")
    assert (result.exit_code, bytes_below(beside)) == (2, before)
    assert (
        ": results.md, results/bow-pod16/bert/result_0.txt: added or changed since" in result.stderr
    )


@pytest.mark.parametrize(
    "options", [("--invalid", "drop"), ("--leave-out", "bow-pod64-open/resnet")]
)
def test_nothing_of_the_division_is_no_addition(options: tuple[str, str], beside: Path) -> None:
    (beside / "logs/o0.log").unlink()
    before = bytes_below(beside)
    result = call("build", beside, "--division", "open", *options)
    assert (result.exit_code, bytes_below(beside)) == (1, before)
