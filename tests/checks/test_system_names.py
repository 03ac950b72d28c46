"""Spellings of processors, accelerators and availabilities, from the published results."""

from __future__ import annotations

import pytest

from mlperf_pkg.checks.names import published_spelling
from mlperf_pkg.checks.system_schema import statuses
from mlperf_pkg.published.results import published_results
from tests.helpers.published import published_set
from tests.tools.names import FILE, text


def test_the_names_are_those_of_the_published_results() -> None:
    assert FILE.read_text("utf-8") == text(published_results().sets)


def test_the_spelling_of_most_submitters() -> None:
    sets = [
        *(published_set(accelerator_model="Chip-X 80GB", submitter="A") for _ in range(4)),
        *(published_set(accelerator_model="Chip X-80GB", submitter=name) for name in "BC"),
        *(published_set(accelerator_model="Rare") for _ in range(4)),
        *(published_set(accelerator_model="n/a") for _ in range(9)),
    ]
    assert '"accelerator_model_name": [\n    "Chip X-80GB"\n  ]' in text(sets)


@pytest.mark.parametrize(
    ("field", "name", "spelling"),
    [
        ("accelerator_model_name", "nvidia h200 sxm5 141gb", "NVIDIA H200-SXM5-141GB"),
        ("host_processor_model_name", "AMD EPYC(TM) 9654", "AMD EPYC 9654"),
        (
            "host_processor_model_name",
            "Intel Xeon Platinum 8480+",
            "Intel(R) Xeon(R) Platinum 8480+",
        ),
        ("accelerator_model_name", "tpu", None),
        ("accelerator_model_name", "H300", None),
    ],
)
def test_spellings(field: str, name: str, spelling: str | None) -> None:
    assert published_spelling(field, name) == spelling


def test_every_published_status_is_known() -> None:
    published = {row.status.strip().lower() for row in published_results().sets} - {""}
    assert published <= {*statuses("training", "1.0")}
