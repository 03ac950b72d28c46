"""A repository to check."""

from pathlib import Path

import pytest

from tests.helpers.trees import simulated, write_set, write_system


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository with ``logs/`` and ``systems/`` that nothing is wrong with."""
    top = tmp_path / "repository"
    write_set(top / "logs", simulated())
    write_system(top / "systems")
    return top
