"""What a mistyped name may have meant."""

from __future__ import annotations

import pytest

from mlperf_pkg.nearest import did_you_mean

KNOWN = ("bert", "resnet", "unet3d", "2.0", "2.1")


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("brt", "; did you mean bert?"),
        ("RESNET", "; did you mean resnet?"),
        ("2.00", "; did you mean 2.0?"),
        ("vgg", ""),
        ("", ""),
    ],
)
def test_did_you_mean(name: str, said: str) -> None:
    assert did_you_mean(name, KNOWN) == said
