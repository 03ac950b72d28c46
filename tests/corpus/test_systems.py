"""Every published system description gets the verdict that the official checker gives it."""

from __future__ import annotations

from pathlib import Path

import pytest

from mlperf_pkg.checks.descriptions import SystemFile, check_system
from mlperf_pkg.findings import Verdict, verdicts_of
from tests.helpers.corpus import corpus_folder, expected, needs_corpus

CORPUS = corpus_folder() or Path("no corpus")
ROUNDS = sorted(folder.name for folder in CORPUS.glob("*v[0-9]*"))

pytestmark = needs_corpus


def check_round(name: str) -> dict[str, SystemFile]:
    """The round's system descriptions by path."""
    usage = "hpc" if name.startswith("hpc") else "training"
    files = sorted((CORPUS / name).glob("*/systems/*.json"))
    paths = {file.relative_to(CORPUS / name).as_posix(): file for file in files}
    return {
        path: check_system(path, file.read_bytes(), usage, name.rpartition("v")[2])
        for path, file in paths.items()
    }


@pytest.mark.parametrize("name", ROUNDS)
def test_official_verdict(name: str) -> None:
    official = {
        path: verdicts_of(system.findings).official for path, system in check_round(name).items()
    }
    assert official == {
        path: Verdict.of(answer != "pass") for path, answer in expected(name)["systems"].items()
    }


@pytest.mark.parametrize("name", ROUNDS)
def test_published_systems_break_no_rule_but_these(name: str) -> None:
    failed = {
        system.path.split("/")[0]
        for system in check_round(name).values()
        if verdicts_of(system.findings).rules is Verdict.FAIL
    }
    assert failed == {"v0.7": {"Alibaba", "SIAT"}, "v1.0": {"PCL"}}.get(name, set())


@pytest.mark.parametrize("name", ROUNDS)
def test_accelerators_are_counted(name: str) -> None:
    readable = [system for system in check_round(name).values() if system.contents is not None]
    assert all(system.accelerators for system in readable)
