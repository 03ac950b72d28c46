"""The quickened tools say what they say otherwise, also when they check a log again."""

import logging
from pathlib import Path

import pytest
from mlperf_logging.compliance_checker import mlp_compliance, mlp_parser
from mlperf_logging.rcp_checker.rcp_checker import RCP_Checker

from tests.helpers.logs import edited, good_log, without
from tests.parity.incumbent import quickened

LOGS = {
    "good": good_log(),
    "a broken rule": edited(good_log(), "global_batch_size", value=-1),
    "a warning": good_log() + good_log(),
    "a key is missing": without(good_log(), "run_stop"),
    "not JSON": good_log() + b":::MLLOG {\n",
    "no record": b"\xff\r\n",
    "a crash": good_log() + b':::MLLOG {"key": "seed", "value": 1, "time_ms": []}\n',
}


@pytest.mark.parametrize("quiet", [True, False])
@pytest.mark.parametrize("log", LOGS.values(), ids=LOGS)
def test_checks(log: bytes, quiet: bool, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    def checked(name: str) -> list[object]:
        caplog.clear()
        path = tmp_path / name
        path.write_bytes(log)
        mlp_compliance.enqueued_configs.clear()
        checker = mlp_compliance.make_checker("training", "2.0.0", quiet=quiet, werror=False)
        try:
            says: object = checker.check_file(str(path), "training_2.0.0/common.yaml")
            says = (says, repr(mlp_parser.parse_file(str(path), ruleset="2.0.0")))
        except Exception as error:  # noqa: BLE001 - whatever it raises
            says = repr(error)
        left = (checker.warnings, checker.overwritable, checker.not_overwritable)
        logged = [(r.levelno, r.getMessage().replace(name, "")) for r in caplog.records]
        return [says, left, logged, [*mlp_compliance.enqueued_configs]]

    with caplog.at_level(logging.INFO):
        slowly = checked("slow.txt")
        with quickened():
            assert [checked("first.txt"), checked("again.txt")] == [slowly, slowly]


@pytest.mark.parametrize("point", [(40.0, 1.5, 8), (40.0, 0.0, 8), (3.0, 9.0, 20)])
def test_least_means(point: tuple[float, float, int]) -> None:
    checker = RCP_Checker("training", "2.0.0", "resnet", verbose=False)
    slowly = checker._find_min_acceptable_mean(*point)
    with quickened():
        assert [checker._find_min_acceptable_mean(*point) for _ in range(2)] == [slowly] * 2
