"""The campaign itself: some cases of each kind, and those that once failed."""

import pytest

from tests.fuzz import campaigns
from tests.fuzz.__main__ import NAMES, kept_seeds


def test_every_campaign_is_run() -> None:
    assert set(NAMES) == set(campaigns.CAMPAIGNS)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("name", NAMES)
def test_cases(name: str, seed: int) -> None:
    campaigns.run(name, seed)


@pytest.mark.parametrize(("name", "seed"), kept_seeds())
def test_cases_that_once_failed(name: str, seed: str) -> None:
    campaigns.run(name, int(seed))
