"""Names of processors, accelerators and availabilities in their spellings."""

import pytest

from mlperf_pkg.checks.descriptions import statuses
from mlperf_pkg.checks.names import Likeness, likeness, published_spelling, words_of
from mlperf_pkg.published.results import published_results
from tests.helpers.published import published_set
from tests.tools.names import FILE, text

WORDS = [
    ("NVIDIA H100-SXM5-80GB", "80gb h100 sxm"),
    ("H100 SXM 80 GB", "80gb h100 sxm"),
    ("NVIDIA H100 80GB HBM3", "80gb h100"),
    ("NVIDIA A100 - PCIe - 80 GB", "80gb a100 pcie"),
    ("NVIDIA A100-PCIE-80GB (300W)", "80gb a100 pcie"),
    ("NVIDIA A100-SXM4-40GB(400W)", "40gb a100 sxm"),
    ("Nvidia Tesla V100", "v100"),
    ("NVIDIA Blackwell GPU (B200-SXM-180GB)", "180gb b200 sxm"),
    ("NVIDIA Blackwell Ultra GPU (GB300)", "gb300"),
    ("Blackwell", "blackwell"),
    ("AMD Instinct MI325X 256GB HBM3e", "256gb mi325x"),
    ("Intel(R) Gaudi(R) 2 AI Accelerator", "gaudi2"),
    ("Habana Gaudi2", "gaudi2"),
    ("TPU_v4", "tpu v4"),
    ("TPU-trillium", "tpu trillium"),
    ("NVIDIA® H200™", "h200"),
    ("N/A", ""),
    ("none", ""),
    ("", ""),
]


@pytest.mark.parametrize(("name", "words"), WORDS)
def test_words(name: str, words: str) -> None:
    assert words_of(name) == frozenset(words.split())


@pytest.mark.parametrize(
    ("name", "other_name", "expected"),
    [
        ("NVIDIA H100-SXM5-80GB", "NVIDIA H100-SXM5-80GB", Likeness.SAME),
        ("NVIDIA H100-SXM5-80GB", "h100 sxm (80 gb)", Likeness.SPELLING),
        ("NVIDIA H100-SXM5-80GB", "NVIDIA H100", Likeness.NAME),
        ("TPU", "TPU-v4", Likeness.NAME),
        ("NVIDIA H100-SXM5-80GB", "NVIDIA H100-PCIe-80GB", None),
        ("NVIDIA H100-SXM5-80GB", "NVIDIA H200-SXM5-141GB", None),
        ("Habana Gaudi", "Habana Gaudi2", None),
        ("N/A", "TPU", None),
    ],
)
def test_likeness(name: str, other_name: str, expected: Likeness | None) -> None:
    result_set = published_set(accelerator_model=name)
    other_set = published_set(accelerator_model=other_name)
    assert likeness(result_set, other_set) is likeness(other_set, result_set) is expected


@pytest.mark.parametrize(
    ("processor", "expected"),
    [("xeon 8480+", Likeness.SAME), ("EPYC", Likeness.PROCESSOR)],
)
def test_likeness_without_accelerators(processor: str, expected: Likeness) -> None:
    xeon = published_set(accelerator_model="N/A", host_processor="Xeon 8480+")
    other_set = published_set(accelerator_model="N/A", host_processor=processor)
    assert likeness(xeon, other_set) is expected


def test_the_names_are_those_of_the_published_results() -> None:
    assert FILE.read_text("utf-8") == text(published_results().sets)


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
