"""What is installed, and the message for what is not."""

import json
import shlex
from importlib import metadata
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from mlperf_pkg.errors import UserError
from mlperf_pkg.infra import resources
from mlperf_pkg.infra.resources import (
    PACKAGE,
    MissingPackageError,
    installed_version,
    package_source,
    packages_of,
    require,
)


def test_a_package_that_is_installed() -> None:
    assert require("json", "report", "a chart") is json


@pytest.mark.parametrize("module", ["no_such_package", "no_such_package.inner"])
def test_a_package_that_is_not_installed(module: str) -> None:
    with pytest.raises(MissingPackageError) as refused:
        require(module, "report", "a chart")
    message = "a chart needs the package no_such_package: pip install 'jinja2<4,>=3.1' 'vl-convert"
    assert str(refused.value).startswith(message)


def test_the_version_of_what_is_not_installed() -> None:
    message = "mlperf-pkg needs the package no-such-package: pip install no-such-package"
    with pytest.raises(MissingPackageError, match=message):
        installed_version("no-such-package")


@pytest.mark.parametrize(
    ("recorded", "expected"),
    [
        pytest.param(None, ["mlperf-pkg"], id="index"),
        pytest.param({"url": "file:///a b.whl"}, ["mlperf-pkg @ file:///a b.whl"], id="wheel"),
        pytest.param(
            {"url": "file:///clone", "dir_info": {}}, ["mlperf-pkg @ file:///clone"], id="checkout"
        ),
        pytest.param(
            {"url": "https://x/y", "vcs_info": {"vcs": "git", "commit_id": "e5"}},
            ["mlperf-pkg @ git+https://x/y@e5"],
            id="repository",
        ),
    ],
)
def test_how_to_install_it_again(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    recorded: dict[str, Any] | None,
    expected: list[str],
) -> None:
    """As pip recorded it in ``direct_url.json``."""
    text = None if recorded is None else json.dumps(recorded)
    installed = Mock(read_text=Mock(return_value=text))
    monkeypatch.setattr(metadata, "distribution", lambda _: installed)
    monkeypatch.setattr(resources, "PACKAGE", tmp_path / "mlperf_pkg")
    assert shlex.split(package_source()) == expected


def test_how_to_install_a_checkout_again() -> None:
    assert shlex.split(package_source()) == ["-e", str(PACKAGE.parent)]


def test_the_packages_of_an_extra_without_an_installation(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a checkout that runs from its source, pip takes the folder."""
    monkeypatch.setattr(metadata, "requires", Mock(side_effect=metadata.PackageNotFoundError()))
    assert shlex.split(packages_of("report")) == [f"{PACKAGE.parent}[report]"]


@pytest.fixture
def installed_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of packages in which an upgrade was interrupted."""
    for version in ("4.1", "9.9"):
        (tmp_path / f"mlperf_logging-{version}.dist-info").mkdir()
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path


def test_which_of_two_versions_is_installed_is_not_guessed(installed_twice: Path) -> None:
    both = "mlperf_logging-4.1.dist-info and mlperf_logging-9.9.dist-info"
    with pytest.raises(UserError, match=f"mlperf-logging is installed twice .{both}"):
        installed_version("mlperf-logging")
