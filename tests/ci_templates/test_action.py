"""The GitHub Action: its steps, run as GitHub would, on trees good, bad and hostile."""

import json
import re
from collections import Counter
from pathlib import Path

import pytest

from tests.helpers.ci import ACTION, OFFLINE, Runner, copied, run, stand_in, stand_in_source
from tests.helpers.trees import SYSTEM
from tests.helpers.workspaces import bytes_below

STEPS = ACTION["runs"]["steps"]
EVIL = ("::error::x", "##[add-mask]pass", "`touch pwned`", "$(touch pwned)", "a\n::add-mask::pass")
ALL_EVIL = "".join((*EVIL, '"; touch pwned; ##[error]x'))


@pytest.fixture
def runner(repository: Path, tmp_path: Path) -> Runner:
    temporary = tmp_path / "temporary"
    (repository / ".git").mkdir()
    temporary.mkdir()
    return Runner(repository, temporary)


def spoil(runner: Runner, *edits: tuple[bytes, bytes], number: int = 1, more: bytes = b"") -> None:
    log = runner.workspace / "logs" / f"result_{number}.txt"
    content = log.read_bytes()
    assert [old for old, _ in edits if old not in content] == []
    for old, new in edits:
        content = content.replace(old, new)
    log.write_bytes(content + more)


# ---- the tree is good or bad --------------------------------------------------------------


def test_a_good_tree(runner: Runner) -> None:
    before = bytes_below(runner.workspace)
    done = runner.run()
    verdicts = [done.outputs[name] for name in ("status", "official", "rules")]
    assert (done.status, verdicts) == (0, ["0", "pass", "pass"])
    assert [kind for kind, _ in done.annotations() if kind == "error"] == []
    assert done.annotations()[0][1].startswith("official: pass")
    assert done.summary.startswith("## MLPerf check\n")
    assert bytes_below(runner.workspace) == before
    begin = {"report": '{\n  "format": "mlperf-pkg/', "sarif": '{\n  "$schema"', "junit": "<?xml"}
    assert [
        (name, text)
        for name, text in begin.items()
        if not Path(done.outputs[name]).read_text("utf-8").startswith(text)
    ] == []


def test_a_bad_tree(runner: Runner) -> None:
    spoil(runner, (b'"submission_benchmark"', b'"submission_bench"'))
    done = runner.run()
    verdicts = [done.outputs[name] for name in ("status", "official", "rules")]
    assert (done.status, verdicts) == (1, ["1", "fail", "fail"])
    assert "::error file=logs/result_1.txt,title=RUN119::submission_benchmark is not" in done.log
    assert "error" in {kind for kind, _ in done.annotations()}
    assert "RUN119" in done.summary
    assert Path(done.outputs["sarif"]).is_file()


def test_what_cannot_be_checked(runner: Runner) -> None:
    done = runner.run(args="--ignore=SEET")
    assert (done.status, done.outputs["status"]) == (2, "2")
    assert "no code begins with 'SEET'" in done.log
    message = "The check could not be done: see the log of this step"
    assert done.annotations() == [("error", message)]
    assert done.outputs["official"] == done.outputs["rules"] == "not_checked"
    assert (done.outputs["report"], done.outputs["sarif"], done.summary) == ("", "", "")


def test_inputs(runner: Runner) -> None:
    spoil(runner, (b'"submission_benchmark"', b'"submission_bench"'))
    logs = "\n".join(f"logs/result_{number}.txt" for number in (0, 1))
    done = runner.run(path=f"{logs}\n", round="v2.0", usage="training", args="--select\nLOG\n")
    assert (done.status, done.outputs["rules"]) == (0, "fail")
    report = json.loads(Path(done.outputs["report"]).read_text("utf-8"))
    assert (report["round_reason"], len(report["runs"])) == ("as given", 2)


def test_a_path_below_a_folder_is_one_argument(runner: Runner) -> None:
    (runner.workspace / "logs").rename(runner.workspace / "systems" / "my *")
    assert runner.run(working_directory="systems", path="my *").status == 0


# ---- the tree, or who gives the inputs, is hostile ----------------------------------------


def test_a_hostile_tree(runner: Runner) -> None:
    """As names of files, in values and keys, and in lines that are not records."""
    for number, evil in enumerate(EVIL):
        value = json.dumps(evil)[1:-1].encode()
        olds, more = (b"Graphcore", b"seed", b"success"), f"\n{evil}\n:::MLLOG {evil}\n".encode()
        edits = [(b'"%s"' % old, b'"%s"' % value) for old in olds]
        spoil(runner, *edits, number=number, more=more)
        log = runner.workspace / "logs" / f"result_{number}.txt"
        log.rename(log.with_name(evil))
    for name in ("json", "venv", "pip", "sitecustomize", "click"):
        (runner.workspace / f"{name}.py").write_text("open('pwned', 'w')\n")
    before = bytes_below(runner.workspace)
    done = runner.run()
    assert done.status == 1
    assert all(evil.split("\n")[0] in done.log for evil in EVIL)
    kinds = Counter(kind for kind, _ in done.annotations())
    assert set(kinds) == {"error", "warning", "notice"}
    assert kinds.total() == len(re.findall(r"(?m)^::(?:error|warning|notice) ", done.log))
    assert bytes_below(runner.workspace) == before
    assert not list(runner.temporary.rglob("pwned"))


@pytest.mark.parametrize(
    "inputs",
    [
        dict.fromkeys(("round", "usage"), ALL_EVIL),
        *({name: ALL_EVIL} for name in ("path", "args", "build")),
        *({"path": "--output=pwned"}, {"build": "closed --logs=/"}),
    ],
)
def test_hostile_inputs(inputs: dict[str, str], runner: Runner) -> None:
    before = bytes_below(runner.workspace)
    done = runner.run(**inputs)
    assert done.status == 2
    assert {kind for kind, _ in done.annotations()} <= {"error", "warning", "notice"}
    assert bytes_below(runner.workspace) == before


# ---- build --------------------------------------------------------------------------------


def test_build(runner: Runner) -> None:
    done = runner.run(build="closed")
    assert done.status == 0
    tree = Path(done.outputs["submissions"]) / "Graphcore"
    assert (tree / "results" / SYSTEM / "resnet" / "result_4.txt").is_file()
    table = (tree / "results.md").read_text("utf-8")
    assert done.summary.endswith(f"## MLPerf submission\n\n{table}")
    assert not (runner.workspace / "submissions").exists()


def test_what_cannot_be_built(runner: Runner) -> None:
    done = runner.run(build="open")
    assert (done.status != 0, done.outputs["submissions"]) == (True, "")
    assert done.annotations()[-1] == ("error", "No submission was built: see the log of this step")


# ---- the tool is installed ----------------------------------------------------------------


@pytest.mark.parametrize("version", ["", "a wheel"])
def test_install(runner: Runner, tmp_path: Path, copying: str, version: str) -> None:
    """That of the action's own commit, or what ``version`` says; nothing of what is checked."""
    if version:
        source = stand_in(tmp_path / "wheels")
    else:
        source = stand_in_source(tmp_path / "source")
        runner.action = source
    for name in ("venv", "pip", "json"):
        (runner.workspace / f"{name}.py").write_text("open('pwned', 'w')\n")
    runner.more = {**OFFLINE, "PATH": copying}
    before = bytes_below(runner.workspace)
    done = runner.run(version=str(source) if version else "")
    assert done.status == 0
    (tool,) = runner.temporary.glob("mlperf-pkg-*/bin/mlperf-pkg")
    assert tool.parents[1].name.startswith("mlperf-pkg-env.") == bool(version)
    assert bytes_below(runner.workspace) == before
    if not version:  # as GitHub would restore it
        runner.more = {"PIP_NO_INDEX": "1", "PIP_CACHE_DIR": str(tmp_path / "empty")}
        assert runner.run(version="").status == 0
        assert list(runner.temporary.glob("mlperf-pkg-*/bin/mlperf-pkg")) == [tool]


def test_a_cached_environment_is_of_one_source(tmp_path: Path) -> None:
    """Its name changes with every file that is installed, and with no other."""
    (script,) = [step["run"] for step in STEPS if step.get("id") == "environment"]
    source, output = copied(tmp_path / "source"), tmp_path / "output"

    def name() -> str:
        more = {"RUNNER_TEMP": "/temporary", "GITHUB_OUTPUT": str(output)}
        done = run("bash", "-e", "-c", script, cwd=tmp_path, ACTION_PATH=str(source), **more)
        assert done.returncode == 0, done.stdout
        text = output.read_text("utf-8")
        output.unlink()
        return text

    names = [name()]
    assert re.fullmatch(r"name=(mlperf-pkg-\w{64})\nfolder=/temporary/\1\n", names[0])
    own = ("setup.py", "mlperf_pkg/cli/main.py", "rules/new.yaml")
    for path in ("build/lib.py", "mlperf_pkg/new.pyc", *own):
        (source / path).parent.mkdir(exist_ok=True)
        (source / path).write_text("changed")
        names.append(name())
    assert [names.index(name) for name in names] == [0, 0, 0, 3, 4, 5]


# ---- how it is written --------------------------------------------------------------------


def test_no_expression_in_a_script() -> None:
    assert [step["name"] for step in STEPS if "${{" in step.get("run", "")] == []
