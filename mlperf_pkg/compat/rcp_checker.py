"""``mlperf_logging.rcp_checker``."""

import sys
from argparse import ArgumentParser, Namespace
from operator import itemgetter
from pathlib import Path
from typing import Any, TextIO, TypeAlias

from mlperf_pkg.checker.check import check
from mlperf_pkg.checker.values import Options
from mlperf_pkg.checks.rcp import crash_of, rcp_test
from mlperf_pkg.commands.rcp.reference import PointsOrigin, reference, reference_of
from mlperf_pkg.compat.console import (
    Console,
    add_log_output,
    command,
    file_path,
    parser_of,
    path,
    refuse_drift,
    refuse_drift_of_runs,
)
from mlperf_pkg.compat.official import write_factor
from mlperf_pkg.config import round_name
from mlperf_pkg.errors import EMPTY_PATH, UserError
from mlperf_pkg.results import rcp
from mlperf_pkg.rulebook.documents import usages
from mlperf_pkg.submission.model import TRAIN_SAMPLES

_ADVICE = "consider adding --rcp_bypass in when running the package_checker."
_PRUNED = "pruned_rcps"
_FULL = "full_rcps"
_BY_SIZE = itemgetter("BS")
Record: TypeAlias = dict[str, Any]
"""A reference point with the field names of mlperf-logging."""


def get_parser() -> ArgumentParser:
    """Return the parser of the command line."""
    parser = parser_of("rcp_checker", "Test the convergence of a result set.")
    parser.add_argument("dir", type=path, help="the folder of a result set")
    parser.add_argument("--rcp_usage", choices=usages(), default="training")
    parser.add_argument("--rcp_version", default="6.0.0", help="the ruleset, such as 5.1.0")
    parser.add_argument("--verbose", action="store_true", help="say more about the test")
    parser.add_argument("--bert_train_samples", action="store_true", help="for BERT, by samples")
    parser.add_argument("--rcp_pass", choices=[_PRUNED, _FULL], default=_PRUNED)
    parser.add_argument("--custom_rcps", type=file_path, help="a file of reference points")
    add_log_output(parser, "rcp_checker")
    return parser


def logs_in(folder: str) -> list[str]:
    """Return the logs of a result set.

    Raises:
        UserError: there is none.
    """
    if not folder:
        raise UserError(EMPTY_PATH)
    logs = sorted(map(str, Path(folder).glob("result_*.txt")))
    if logs:
        return logs
    raise UserError(f"{folder}: no log of a result set (no file named result_*.txt)")


def check_directory(  # noqa: PLR0917 - as in mlperf-logging
    dir: str,  # noqa: A002
    usage: str,
    version: str,
    verbose: bool,  # noqa: ARG001
    bert_train_samples: bool,
    rcp_file: TextIO | None = None,
    rcp_pass: str = _FULL,
    rcp_bypass: bool = False,
    set_scaling: bool = False,
) -> tuple[bool, str, float]:
    """Test a result set, and return whether it passes, the reason, and its factor.

    ``set_scaling`` writes ``scaling.json`` into the folder. ``verbose`` has no effect.

    Raises:
        UserError: the set cannot be tested.
    """
    origin = PointsOrigin(Path(rcp_file.name) if rcp_file else None)
    result = _tested(dir, usage, version, bert_train_samples, origin, rcp_pass)
    if set_scaling:
        write_factor(Path(dir), result)
    factor = result.normalization
    if rcp_bypass:
        result = rcp.bypassed(result)
    return result.official_pass, result.message, factor


class RCP_Checker:  # noqa: N801 - as in mlperf-logging
    """The reference points of a benchmark by name, in the order of their batch sizes.

    ``rcp_data`` has all points, ``pruned_rcp_data`` those that the test uses.
    """

    def __init__(
        self,
        usage: str,
        ruleset: str,
        benchmark: str,
        verbose: bool = False,  # noqa: ARG002
        rcp_file: TextIO | None = None,
    ) -> None:
        """Read the points of mlperf-logging or of an open file.

        Raises:
            UserError: there are no such points, or as ``refuse_drift``.
        """
        refuse_drift(usage, ruleset, {benchmark})
        origin = PointsOrigin(Path(rcp_file.name) if rcp_file else None)
        self.usage = usage
        self.ruleset = ruleset
        self.benchmark = benchmark
        self._reference = reference(usage, round_name(ruleset), benchmark, origin)
        self.submission_runs = self._reference.runs.required
        self.rcp_data = {point.name: self._record(point) for point in self._reference.points}
        used = {point.name for point in self._reference.used}
        self.pruned_rcp_data = {name: self.rcp_data[name] for name in self.rcp_data if name in used}

    def _record(self, point: rcp.ReferencePoint) -> Record:
        hyperparameters = {}
        if point.to_converge:
            values = rcp.reference_hyperparameters(self.usage, self.ruleset, self.benchmark)
            hyperparameters = dict(values.get(point.batch_size, {}))
        return {
            "Benchmark": self.benchmark,
            "BS": point.batch_size,
            "Hyperparams": hyperparameters,
            "Epochs to converge": list(point.to_converge),
            "RCP Mean": point.mean,
            "RCP Stdev": point.stdev,
            "Max Speedup": rcp.divide(point.mean, point.minimum),
            "Min Epochs": point.minimum,
        }

    def _get_rcp_data(self, rcp_pass: str = _PRUNED) -> dict[str, Record]:
        return self.pruned_rcp_data if rcp_pass == _PRUNED else self.rcp_data

    def _find_rcp(self, bs: float, rcp_pass: str = _FULL) -> Record | None:
        for record in self._get_rcp_data(rcp_pass).values():
            if record["BS"] == bs:
                return record
        return None

    def _find_min_rcp(self, rcp_pass: str = _FULL) -> Record | None:
        return min(self._get_rcp_data(rcp_pass).values(), key=_BY_SIZE, default=None)

    def _find_top_min_rcp(self, bs: float, rcp_pass: str = _FULL) -> Record | None:
        records = self._get_rcp_data(rcp_pass).values()
        smaller = (record for record in records if record["BS"] < bs)
        return max(smaller, key=_BY_SIZE, default=None)

    def _find_bottom_max_rcp(self, bs: float, rcp_pass: str = _FULL) -> Record | None:
        records = self._get_rcp_data(rcp_pass).values()
        larger = (record for record in records if record["BS"] > bs)
        return min(larger, key=_BY_SIZE, default=None)

    def _create_interp_rcp(
        self, target_bs: float, low_rcp: Record, high_rcp: Record
    ) -> tuple[str, Record]:
        sizes = {point.batch_size: point for point in self._reference.points}
        low = sizes[low_rcp["BS"]]
        high = sizes[high_rcp["BS"]]
        runs = self.submission_runs
        point = rcp.ReferencePoint.between(low, high, target_bs, runs=runs)
        return f"{self.benchmark}_interp_{target_bs}", self._record(point)


def _tested(  # noqa: PLR0917 - the options of the command
    folder: str, usage: str, version: str, by_samples: bool, origin: PointsOrigin, rcp_pass: str
) -> rcp.RcpResult:
    flags = TRAIN_SAMPLES if by_samples else frozenset()
    options = Options(usage, round_name(version), flags=flags, whole_files=True)
    checked = check(logs_in(folder), options)
    refuse_drift_of_runs(checked, usage, version)
    contexts = checked.contexts
    if len(contexts) != 1 or contexts[0].rules is None:
        raise UserError(f"{folder}: the logs are not those of one result set of the round")
    context = contexts[0]
    benchmark_reference = reference_of(context.round, contexts[0].rules, origin)
    points = benchmark_reference.points if rcp_pass == _FULL else benchmark_reference.used
    result = rcp_test(context, points)
    if result is None:
        raise UserError(f"{folder}: cannot be tested: {crash_of(context, points)}")
    return result


def _check(args: Namespace, console: Console) -> int:
    names = (args.dir, args.rcp_usage, args.rcp_version, args.bert_train_samples)
    result = _tested(*names, PointsOrigin(args.custom_rcps), args.rcp_pass)
    console.log("INFO", f" Running RCP Checker, pass: {args.rcp_pass}")
    if result.mean is not None:
        console.log("INFO", f" Submission mean epochs: {result.mean:.4f}")
    if args.verbose:
        console.log("INFO", f" Smallest acceptable mean: {result.minimum}")
    if result.official_pass:
        console.log("INFO", f"{result.message}, RCP test PASSED")
    else:
        console.log("ERROR", f"{result.message}, RCP test FAILED, {_ADVICE}")
    console.say_where("** Logging output also at")
    return int(not result.official_pass)


main = command(get_parser, _check, "dir")
"""Test a result set and return the exit status."""

if __name__ == "__main__":
    sys.exit(main())
