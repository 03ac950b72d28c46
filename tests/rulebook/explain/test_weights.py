"""The basis and severity that ``findings.yaml`` declares are those that findings have."""

from collections.abc import Iterator

import pytest

from mlperf_pkg.findings import Basis
from mlperf_pkg.rulebook.load import Code, codes
from tests.checks.test_traps import INVENTED, PASSED, REJECTED


def declared(code: Code) -> set[tuple[str, str]]:
    """The severities and bases of a code, with each exception alone or after another."""
    weights = {(code.severity.value, code.basis.value)}
    if code.basis is Basis.BOTH and code.since not in (None, "0.7"):  # until then
        weights.add((code.severity.value, Basis.OFFICIAL.value))
    for item in code.unless:
        weights |= {
            ((item.severity or severity), (item.basis or basis)) for severity, basis in weights
        }
    return weights


def reported() -> Iterator[tuple[str, str, str]]:
    for trap in (*PASSED, *INVENTED, *REJECTED):
        for finding in trap.findings:
            code, severity, basis, *_ = finding.split()
            if code in codes():
                yield code, severity, basis


@pytest.mark.parametrize(("code", "severity", "basis"), sorted(set(reported())))
def test_findings_have_the_declared_weight(code: str, severity: str, basis: str) -> None:
    assert (severity, basis) in declared(codes()[code])
