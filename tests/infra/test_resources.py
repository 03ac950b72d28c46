"""What is installed, and the message for what is not."""

import json

import pytest

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
