"""``mlperf-pkg --rules FOLDER``: rules of one's own beside those of the package."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mlperf_pkg import __version__
from mlperf_pkg.infra.parallel import pool
from mlperf_pkg.rulebook.documents import rounds
from tests.helpers.own_rules import BENCHMARK_FILE, FILES, written
from tests.helpers.program import call
from tests.helpers.trees import simulated, write_set

OWN = ("--round", "99.0", "--benchmark", "ownb", "--system", "x")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with ``our-rules`` and with logs of the benchmark that only they have."""
    root = tmp_path_factory.mktemp("made")
    rules = written(root / "our-rules", FILES)
    result = call("--rules", rules, "simulate", root / "logs", *OWN, "--submitter", "ACME")
    assert result.exit_code == 0, result.stderr
    return root


@pytest.fixture
def workspace(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of it."""
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def report(*arguments: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(call(*arguments, "--format", "json").stdout)
    return document


@pytest.mark.parametrize(
    "command", [["check", "logs"], ["rules", "list"], ["rules", "show", "OWNB102"]]
)
def test_after_the_command_as_before_it(workspace: Path, command: list[str]) -> None:
    after = call(*command, "--rules", "our-rules")
    assert after.output == call("--rules", "our-rules", *command).output
    assert after.output != call(*command).output


def test_the_next_check_in_the_process_does_not_know_them(workspace: Path) -> None:
    with_ours, without = report("--rules", "our-rules", "check", "logs"), report("check", "logs")
    assert (with_ours["round"], with_ours["verdict"]["rules"]) == ("99.0", "pass")
    assert with_ours["tool"]["rulebook"].startswith(f"{__version__} and our-rules (")
    assert "99.0" not in (without["round"], *rounds("training"))
    assert without["tool"]["rulebook"] == __version__


def test_the_environment_names_the_folder(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLPERF_PKG_RULES", "our-rules")
    assert report("check", "logs")["round"] == "99.0"


@pytest.mark.parametrize("forked", [True, False])
def test_processes_know_them(
    workspace: Path, forked: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = report("--rules", "our-rules", "check", "logs")
    monkeypatch.setattr("mlperf_pkg.checker.reading.PARALLEL_FROM_BYTES", 0)
    monkeypatch.setattr(
        "mlperf_pkg.infra.parallel.pool", lambda jobs, **_: pool(jobs, forked=forked)
    )
    assert report("--rules", "our-rules", "check", "logs", "--jobs", "2") == expected


@pytest.fixture(scope="module")
def scheduler() -> Iterator[str]:
    """That of a cluster whose worker is a thread, which knows as little of these rules as a
    process.
    """
    reason = "needs pip install 'mlperf-pkg[test-cluster]'"
    distributed = pytest.importorskip("distributed", reason=reason)
    with distributed.LocalCluster(
        n_workers=1, processes=False, protocol="tcp", dashboard_address="127.0.0.1:0"
    ) as cluster:
        yield cluster.scheduler_address


def test_workers_of_a_cluster_know_them_and_one_that_has_others_is_refused(
    workspace: Path, scheduler: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = ("--rules", "our-rules", "check", "logs", "--scheduler", scheduler)
    assert report(*arguments) == report(*arguments[:-2])
    digests = iter(("ours",))
    digest = "mlperf_pkg.infra.resources.digest_of"
    monkeypatch.setattr(digest, lambda *patterns: next(digests, "another"))
    result = call(*arguments)
    assert result.exit_code == 2
    assert "our-rules: a worker has other rules in this folder than this machine" in result.stderr


def test_a_rule_is_added_to_a_round_of_the_package(tmp_path: Path) -> None:
    logs = write_set(tmp_path / "logs", simulated())
    extra = "closed:\n  our_key: {code: OUR101, occurs: once, source: our own}\n"
    rules = written(tmp_path / "rules", {"training/2.0/resnet.yaml": extra})
    result = call("--rules", rules, "check", logs)
    assert result.exit_code == 1
    problem = "our_key is not logged; expected once (5 of 5 runs; first result_0.txt)  error OUR101"
    assert problem in result.stdout
    assert call("check", logs).exit_code == 0


def test_a_mistake_is_reported_before_anything_else(workspace: Path) -> None:
    path = workspace / "our-rules" / BENCHMARK_FILE
    path.write_text(path.read_text().replace("equals", "equal"))
    result = call("--rules", "our-rules", "check", "logs")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == (
        "mlperf-pkg: error: our-rules/training/99.0/ownb.yaml:11:"
        " unknown constraint 'equal' of OWNB102; did you mean 'equals'?\n"
    )
