"""A check on a real Dask cluster, with and without a real S3 server: the report stays the same."""

import os
import signal
import threading
from collections.abc import Iterator
from importlib.util import find_spec
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import pytest

from mlperf_pkg.checker.check import check
from mlperf_pkg.checker.values import Options
from mlperf_pkg.errors import UserError
from mlperf_pkg.infra import cluster as executors
from mlperf_pkg.render.table import json_text
from mlperf_pkg.results.report import as_json
from mlperf_pkg.simulate import RoundPlan, write_round
from tests.helpers import servers
from tests.helpers.servers import Cluster

if not all(map(find_spec, ("distributed", "moto", "s3fs"))):  # which take a second to import
    pytest.skip("needs pip install 'mlperf-pkg[test-cluster]'", allow_module_level=True)


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A round of two submitters, with logs of power."""
    root = tmp_path_factory.mktemp("rounds") / "training_results_v5.1"
    chosen = ("llama31_405b",)  # whose sets have three runs
    plan = RoundPlan("training", "5.1", systems=2, submitters=2, benchmarks=chosen, power=True)
    write_round(plan, root)
    return root


@pytest.fixture(scope="module")
def url(tree: Path) -> Iterator[str]:
    with servers.s3():
        yield servers.upload(tree, tree.name)


@pytest.fixture(scope="module")
def cluster(url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A cluster of two workers, which is refused while it has none."""
    assert url  # the workers inherit the address of the server
    with servers.dask(tmp_path_factory.mktemp("workers")) as started:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(executors, "_SECONDS", 0.1)
            with started.client() as client, pytest.raises(UserError, match="no worker is conn"):
                executors._check_workers(client, started.scheduler)
        started.add_workers(2)
        yield started


@pytest.fixture(scope="module")
def expected(tree: Path) -> str:
    return report(str(tree))


def report(argument: str, **options: Any) -> str:
    return json_text(as_json(check([argument], Options(**options)).report))


def test_a_cluster_gives_the_same_report(
    cluster: Cluster, tree: Path, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Relative paths are those of this process."""
    assert expected.count('"records"') > 5
    monkeypatch.chdir(tree.parent)
    assert report(tree.name, scheduler=cluster.scheduler) == expected


def test_a_cluster_reads_from_a_store(cluster: Cluster, url: str, expected: str) -> None:
    assert report(url, scheduler=cluster.scheduler) == expected


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_store_gives_the_same_report(
    url: str, expected: str, jobs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mlperf_pkg.checker.reading.PARALLEL_FROM_BYTES", 0)
    assert report(url, jobs=jobs) == expected


def test_workers_with_another_version_are_refused(
    cluster: Cluster, tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(executors, "__version__", "99")
        executors.identity.cache_clear()
        with pytest.raises(UserError, match=r"worker tcp://.* this machine has mlperf-pkg 99 "):
            report(str(tree), scheduler=cluster.scheduler)
    executors.identity.cache_clear()


def test_a_worker_that_comes_later_is_refused() -> None:
    with pytest.raises(UserError, match=r"a worker has mlperf-pkg .* this machine has other"):
        executors._call("other", (), int, [])


def test_a_file_that_workers_do_not_see_is_reported(
    cluster: Cluster, tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "result_0.txt"
    log.write_bytes(next(tree.rglob("result_0.txt")).read_bytes())
    submit = executors._Batches.submit

    def changing(self: executors._Batches, *arguments: Any) -> Any:
        log.write_text("another file")
        return submit(self, *arguments)

    monkeypatch.setattr(executors._Batches, "submit", changing)
    with pytest.raises(UserError, match=r"result_0\.txt: a worker does not see this file"):
        report(str(log), scheduler=cluster.scheduler)


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("", "not the address of a Dask scheduler"),
        ("here", "not the address of a Dask scheduler"),
        ("tcp://127.0.0.1", "not the address of a Dask scheduler"),
        ("http://[::1]:1", "not the address of a Dask scheduler"),
        ("tcp://127.0.0.1:9", "no Dask scheduler answers"),
    ],
)
def test_a_scheduler_that_cannot_be_used(
    address: str, message: str, tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(executors, "_SECONDS", 0.1)
    with pytest.raises(UserError, match=message):
        report(str(tree), scheduler=address)


# ---- the end of a cluster: these tests come last, in this order ----


def stop(process: BaseProcess) -> None:
    if process.pid and process.is_alive():
        os.kill(process.pid, signal.SIGSTOP)


def test_a_worker_that_is_killed_does_not_show(
    cluster: Cluster, url: str, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is stopped before it is given any work, and killed when the other has done some."""
    submit = executors._Batches.submit
    done = threading.Event()
    victim, _ = cluster.workers

    def kill(_: object) -> None:
        victim.kill()
        done.set()

    def watched(self: executors._Batches, *arguments: Any, **more: Any) -> Any:
        stop(victim)
        future = submit(self, *arguments, **more)
        future.add_done_callback(kill)
        return future

    monkeypatch.setattr(executors._Batches, "submit", watched)
    assert report(url, scheduler=cluster.scheduler) == expected
    assert done.is_set()
    victim.join()
    assert victim.exitcode == -signal.SIGKILL


def test_a_lost_last_worker_is_reported(
    cluster: Cluster, tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    submit_all = executors._Batches.map

    def alone(self: executors._Batches, *arguments: Any, **more: Any) -> Any:
        for worker in cluster.workers:
            worker.kill()
        monkeypatch.setattr(executors, "_SECONDS", 1)
        return submit_all(self, *arguments, **more)

    monkeypatch.setattr(executors._Batches, "map", alone)
    with pytest.raises(UserError, match="no worker is connected to the scheduler"):
        report(str(tree), scheduler=cluster.scheduler)
    cluster.add_workers(1)


def test_a_lost_scheduler_is_reported(
    cluster: Cluster, tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    submit_all = executors._Batches.map

    def cut_off(self: executors._Batches, *arguments: Any, **more: Any) -> Any:
        stop(cluster.workers[-1])
        results = submit_all(self, *arguments, **more)
        cluster.server.kill()
        return results

    monkeypatch.setattr(executors._Batches, "map", cut_off)
    with pytest.raises(UserError, match="the connection to the scheduler is lost"):
        report(str(tree), scheduler=cluster.scheduler)
