"""``rcp_viewer.py`` of the repository of mlperf-logging."""

import sys
from argparse import ArgumentParser, Namespace

from mlperf_pkg.commands.rcp.reference import PointsOrigin, reference
from mlperf_pkg.compat.console import Console, command, file_path, parser_of, refuse_drift
from mlperf_pkg.config import round_name
from mlperf_pkg.errors import UserError
from mlperf_pkg.results.rcp import ReferencePoint
from mlperf_pkg.rulebook.documents import usages


def get_parser() -> ArgumentParser:
    """Return the parser of the command line."""
    parser = parser_of("rcp_viewer", "Show reference points: batch size, mean, smallest mean.")
    parser.add_argument("benchmark", help="the benchmark")
    parser.add_argument("--usage", choices=usages(), default="training")
    parser.add_argument("--version", default="6.0.0", help="the ruleset, such as 5.1.0")
    parser.add_argument("--verbose", action="store_true", help="without effect")
    parser.add_argument("--unpruned", action="store_true", help="show all points")
    parser.add_argument("--no-header", action="store_true", help="do not show names of columns")
    parser.add_argument("--custom_rcps", type=file_path, help="a file of reference points")
    parser.add_argument("--interpolate", action="store_true", help="show all batch sizes")
    parser.add_argument("--jackknife", type=int, metavar="GBS", help="show this batch size alone")
    return parser


def _show(args: Namespace, console: Console) -> int:
    refuse_drift(args.usage, args.version, {args.benchmark})
    item = reference(
        args.usage, round_name(args.version), args.benchmark, PointsOrigin(args.custom_rcps)
    )
    points = item.points if args.unpruned else item.used
    if not args.no_header:
        console.say("BS,Mean,Min")
    if args.jackknife is not None:
        point = next((point for point in item.points if point.batch_size == args.jackknife), None)
        if point is None:
            raise UserError(f"GBS {args.jackknife} is not the batch size of a reference point")
        console.say(f"{_line(point)}\nsubmission_runs: {item.runs.required}")
    elif args.interpolate:
        for size in item.every_size:
            point = item.at(size).point
            values = f"{point.mean},{point.minimum}" if point else ","
            console.say(f"{size},{values}")
    else:
        for point in points:
            console.say(_line(point))
    return 0


def _line(point: ReferencePoint) -> str:
    return f"{point.batch_size},{point.mean},{point.minimum}"


main = command(get_parser, _show, "benchmark")
"""Show reference points and return the exit status."""

if __name__ == "__main__":
    sys.exit(main())
