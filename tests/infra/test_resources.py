"""What is installed, and the message for what is not."""

import json
from pathlib import Path

import pytest

from mlperf_pkg.errors import UserError
from mlperf_pkg.infra.resources import MissingPackageError, installed_version, require


def test_a_package_that_is_installed() -> None:
    assert require("json", "report", "a chart") is json


@pytest.mark.parametrize("module", ["no_such_package", "no_such_package.inner"])
def test_a_package_that_is_not_installed(module: str) -> None:
    with pytest.raises(MissingPackageError) as refused:
        require(module, "report", "a chart")
    message = "a chart needs the package no_such_package: pip install 'mlperf-pkg[report]'"
    assert str(refused.value) == message


def test_the_version_of_what_is_not_installed() -> None:
    message = "mlperf-pkg needs the package no-such-package: pip install 'no-such-package'"
    with pytest.raises(MissingPackageError, match=message):
        installed_version("no-such-package")


@pytest.fixture
def installed_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of packages in which an upgrade was interrupted."""
    for version in ("4.1", "9.9"):
        (tmp_path / f"mlperf_logging-{version}.dist-info").mkdir()
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path


def test_which_of_two_versions_is_installed_is_not_guessed(installed_twice: Path) -> None:
    both = "mlperf_logging-4.1.dist-info and mlperf_logging-9.9.dist-info"
    with pytest.raises(UserError, match=f"mlperf-logging is installed twice, {both}"):
        installed_version("mlperf-logging")
