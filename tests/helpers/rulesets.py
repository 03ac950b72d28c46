"""Rounds of which the installed mlperf-logging has no ruleset: there is nothing to compare with."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

import pytest

from mlperf_pkg.infra.resources import installed_version
from mlperf_pkg.rulebook.documents import rounds, usages
from mlperf_pkg.rulebook.load import load_round
from mlperf_pkg.rulebook.rounds import has_ruleset
from tests.tools.upstream import differences
from tests.tools.upstream.expressions import official_rules

EVERY_ROUND = [(usage, name) for usage in usages() for name in rounds(usage)]
WITH_RULESET = [kind for kind in EVERY_ROUND if has_ruleset(*kind)]


def require_ruleset(usage: str, round_name: str) -> None:
    """Skip the test where mlperf-logging cannot check logs of a round."""
    if not has_ruleset(usage, round_name):
        ruleset = load_round(usage, round_name).ruleset
        pytest.skip(
            f"mlperf-logging {installed_version('mlperf-logging')} has no ruleset"
            f" {ruleset} of {usage}"
        )


@contextmanager
def only_rounds_with_ruleset() -> Iterator[None]:
    """Let ``differences_from`` compare only rounds of which the installed version has a ruleset.

    It derives our side only once, as tests change the other side alone.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(differences, "official_rules", cache(official_rules))
        patch.setattr(
            differences, "rounds", lambda usage: [name for of, name in WITH_RULESET if of == usage]
        )
        yield
