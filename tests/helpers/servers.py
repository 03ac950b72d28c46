"""A Dask cluster and an S3 server on this machine, spoken to over TCP."""

import os
import socket
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from multiprocessing import get_context
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import pytest

BUCKET = "submissions"
_WORKER = ("--no-nanny", "--no-dashboard", "--nthreads=2")


@dataclass(frozen=True, slots=True)
class Cluster:
    """The address of a scheduler, its process, and those of its workers, which start in a folder of
    their own.
    """

    scheduler: str
    server: BaseProcess
    folder: Path
    stack: ExitStack
    workers: list[BaseProcess] = field(default_factory=list)

    def client(self) -> Any:
        from distributed import Client  # noqa: PLC0415 - may not be installed

        return Client(self.scheduler, timeout=30, set_as_default=False)

    def add_workers(self, number: int) -> None:
        command = ("worker", self.scheduler, *_WORKER)
        processes = (_process(self.folder, *command) for _ in range(number))
        self.workers.extend(map(self.stack.enter_context, processes))
        with self.client() as client:
            client.wait_for_workers(number, timeout=30)


@contextmanager
def dask(folder: Path) -> Iterator[Cluster]:
    """A scheduler without workers."""
    address = f"tcp://127.0.0.1:{_free_port()}"
    with ExitStack() as stack:
        command = ("scheduler", "--host", address, "--no-dashboard")
        server = stack.enter_context(_process(folder, *command))
        started = Cluster(address, server, folder, stack)
        started.client().close()  # once it answers
        yield started


@contextmanager
def _process(folder: Path, *command: str) -> Iterator[BaseProcess]:
    """A fork of a process that has imported what all of them need."""
    context = get_context("forkserver")
    context.set_forkserver_preload([f"distributed.cli.dask_{n}" for n in ("scheduler", "worker")])
    process = context.Process(target=_serve, args=(folder, dict(os.environ), *command))
    process.start()
    try:
        yield process
    finally:
        process.kill()
        process.join()


def _serve(folder: Path, environment: dict[str, str], name: str, *arguments: str) -> None:
    """Serve in a folder; the server of forks has the environment of its first use."""
    os.chdir(folder)
    os.environ.update(environment)
    for descriptor in (1, 2):
        os.dup2(os.open(os.devnull, os.O_WRONLY), descriptor)
    import_module(f"distributed.cli.dask_{name}").main(arguments)


def _free_port() -> int:
    with closing(socket.socket()) as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


@contextmanager
def s3() -> Iterator[None]:
    """A server with an empty bucket, which this process and its children use by environment."""
    import s3fs  # noqa: PLC0415 - may not be installed
    from moto.server import ThreadedMotoServer  # noqa: PLC0415

    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ENDPOINT_URL", f"http://{host}:{port}")
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            patch.setenv(name, "test")
        patch.setenv("AWS_DEFAULT_REGION", "us-east-1")
        s3fs.S3FileSystem.clear_instance_cache()
        s3fs.S3FileSystem().mkdir(BUCKET)
        yield
        s3fs.S3FileSystem().rm(BUCKET, recursive=True)  # the next server is of the same memory
        s3fs.S3FileSystem.clear_instance_cache()
    server.stop()


def upload(folder: Path, to: str) -> str:
    """Put a folder into the bucket; its URL."""
    import s3fs  # noqa: PLC0415 - may not be installed

    url = f"s3://{BUCKET}/{to}"
    s3fs.S3FileSystem().put(str(folder), url, recursive=True)
    return url
