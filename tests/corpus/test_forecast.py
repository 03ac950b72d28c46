"""How near the expected end is to the real one at half of published runs."""

from collections.abc import Iterator
from statistics import median

import pytest

from tests.helpers.corpus import CORPUS, needs_corpus
from tests.helpers.halfway import forecast_of, halfway

MOST = 20  # logs of one round


def logs_of(round_: str, benchmark: str) -> Iterator[bytes]:
    paths = sorted(CORPUS.glob(f"{round_}/*/results/*/{benchmark}/result_*.txt"))
    yield from (path.read_bytes() for path in paths[:: max(1, len(paths) // MOST)])


@needs_corpus
@pytest.mark.parametrize(
    ("round_", "benchmark", "bound"),
    [
        ("v2.0", "bert", 0.12),
        ("v2.0", "resnet", 0.06),
        ("v3.1", "gpt3", 0.06),
        ("v5.0", "rgat", 0.08),
        ("v5.1", "flux1", 0.06),
        ("v5.1", "llama2_70b_lora", 0.08),
        ("v5.1", "llama31_8b", 0.08),
    ],
)
def test_the_median_error(round_: str, benchmark: str, bound: float) -> None:
    errors = []
    for log in logs_of(round_, benchmark):
        course, run = halfway(log, "training", round_.removeprefix("v"))
        forecast = forecast_of(course, run)
        if forecast and run.minutes and run.converged:
            errors.append(abs(forecast.minutes / run.minutes - 1))
    if not errors:
        pytest.skip(f"no forecast of {benchmark} in {round_}")
    assert median(errors) < bound
