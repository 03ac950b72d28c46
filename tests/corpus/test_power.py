"""The energy of published result sets is the official one."""

from __future__ import annotations

import pytest

from mlperf_pkg.checker.check import check
from mlperf_pkg.checker.values import Options
from tests.helpers.corpus import corpus_folder, expected, needs_corpus


@needs_corpus
@pytest.mark.parametrize(("tree", "name", "sets"), [("v4.1", "Dell", 1), ("v5.0", "Lenovo", 4)])
def test_published_energy(tree: str, name: str, sets: int) -> None:
    folder = corpus_folder()
    assert folder is not None
    report = check([str(folder / tree / name)], Options()).report
    published = {
        path.removeprefix(f"{name}/"): facts["energy_joules"]
        for path, facts in expected(tree)["result_sets"].items()
        if path.startswith(f"{name}/")
    }
    energies = {row.path: row.energy_joules for row in report.result_sets}
    assert sum(energy is not None for energy in published.values()) == sets
    assert energies == pytest.approx(published)
    errors = {f.code for f in report.findings if f.severity.value == "error"}
    assert not any(code.startswith("POW") for code in errors)
