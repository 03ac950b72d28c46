"""The page of all rounds, of the published results."""

import pytest

from mlperf_pkg.commands.page.history import History, published_history
from mlperf_pkg.published.results import published_results


@pytest.fixture(scope="session")
def record() -> History:
    return published_history(published_results())
