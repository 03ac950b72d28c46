"""Measure the figures of docs/performance.md: speed relative to other programs, growth.

Usage: python bench/run.py [TIMES]

Programs are run in turns, and each figure is the best of TIMES runs (default: 3). Seconds are wall
time from start to end; processor seconds, which depend less on other work, are in brackets.
"""

import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from measure import Cost, alternate, check, floor, peak_memory, processes, run, total
from trees import (
    CORPUS,
    LOGS,
    ROUNDS,
    corpus,
    logs,
    published,
    sample,
    simulated_rounds,
    submissions,
)

SIZES = (4, 16, 64, 108, 256)  # submitters: 100 to 6,400 logs
SAMPLE = 25  # logs for the official checkers
MIB = 1 << 20


def say(text: str) -> None:
    """Print a line of the result."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def shown(cost: Cost) -> str:
    """Format seconds, with processor seconds in brackets."""
    return f"{cost.wall:7.2f} ({cost.processor:6.2f})"


def against_the_floor(
    name: str, trees: Sequence[Path], scratch: Path, times: int
) -> tuple[Cost, Cost]:
    """Print our time for trees one after another, the floor, the ratio and memory.

    Return our cost and that of the floor.
    """
    commands = [{"ours": check(t, scratch / "report.json"), "floor": floor(t)} for t in trees]
    costs = [alternate(of_tree, times) for of_tree in commands]
    ours, least = (total([cost[program] for cost in costs]) for program in ("ours", "floor"))
    ratios = f"{ours.wall / least.wall:5.1f} ({ours.processor / least.processor:4.1f})"
    memory = max(peak_memory(of_tree["ours"]) for of_tree in commands) // MIB
    count = sum(len(logs(tree)) for tree in trees)
    say(f"{name:14}{count:6}  {shown(ours)}  {shown(least)}  {ratios}  {memory:5} MiB")
    return ours, least


def official(folder: Path, ruleset: str) -> float:
    """Return the seconds of the three official programs, run one after another."""
    programs = ("package_checker", "result_summarizer", "repo_checker")
    named = [[sys.executable, "-m", f"mlperf_logging.{program}"] for program in programs]
    end = [str(folder), "training", ruleset]
    return sum(run([*program, *end], within=folder.parent).wall for program in named)


def against_the_official(name: str, tree: Path, whole: Cost, scratch: Path) -> None:
    """Print both times for the same sample of logs, and the ratio per log for the whole tree."""
    copy, count = sample(tree, scratch / f"sample-{name}", SAMPLE)
    round_ = name[1:4] if name.startswith("v") else "2.0"
    mine = run(check(copy, scratch / "report.json", "--round", round_)).wall
    theirs = official(copy, f"{round_}.0")
    ratio = (theirs / count) / (whole.wall / len(logs(tree)))
    say(f"{name:14}{count:6}  {theirs:8.2f}  {mine:8.2f}  {theirs / mine:7.0f}  {ratio:13.0f}")


def whole_against_the_official(
    name: str, tree: Path, ours: Cost, least: Cost, scratch: Path
) -> None:
    """Print the time of the official programs on all submissions of a round, and the ratios."""
    copies = submissions(tree, scratch / f"whole-{name}")
    theirs = sum(official(copy, f"{name[1:4]}.0") for copy in copies)
    ratios = f"{theirs / ours.wall:7.0f}  {theirs / least.wall:7.0f}"
    say(f"{name:14}{len(logs(tree)):6}  {theirs:8.2f}  {ours.wall:8.2f}  {ratios}")


def start_up(tree: Path, scratch: Path, times: int) -> Cost:
    """Return the cost of checking one log, which is nearly all start-up."""
    (smallest, *_) = sorted(logs(tree), key=lambda log: (log.stat().st_size, log))
    return alternate({"one": check(smallest, scratch / "report.json", "--round", "2.0")}, times)[
        "one"
    ]


def a_log(cost: Cost, count: int) -> str:
    """Format milliseconds per log, with processor milliseconds in brackets."""
    return f"{cost.wall / count * 1e3:6.2f} ({cost.processor / count * 1e3:5.2f})"


def growth(trees: Mapping[int, Path], scratch: Path, times: int) -> None:
    """Print the cost per log for each size, and per log added since the previous size.

    All sizes are measured in turns, under the same conditions.
    """
    say("milliseconds (processor milliseconds) per log, and per log added since the previous line")
    commands = {str(count): check(tree, scratch / "report.json") for count, tree in trees.items()}
    costs = alternate(commands, times)
    before, fewer = Cost(0.0, 0.0), 0
    for count in trees:
        cost = costs[str(count)]
        more = Cost(cost.wall - before.wall, cost.processor - before.processor)
        say(f"{count:6}  {a_log(cost, count)}  {a_log(more, count - fewer) if fewer else ''}")
        before, fewer = cost, count


def main(times: int) -> None:
    """Print all tables."""
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        simulated = dict(simulated_rounds(scratch, SIZES))
        trees = simulated | dict(published(scratch / "published"))
        say(f"on {processes()} processors; seconds (processor seconds)")
        say(f"{'':14}{'logs':>6}  {'check':>16}  {'floor':>16}  {'ratio':>12}  {'memory':>9}")
        costs, floors = {}, {}
        for name, tree in trees.items():
            costs[name], floors[name] = against_the_floor(name, [tree], scratch, times)
        if rounds := corpus():
            for tree in rounds:
                if tree.name not in trees:
                    against_the_floor(tree.name, [tree], scratch, times)
            against_the_floor(f"{len(rounds)} rounds", rounds, scratch, times)
            against_the_floor("as one", [CORPUS], scratch, times)
        say("\nseconds of the official checkers and ours on a sample; ratio per log, whole tree")
        titles = f"{'official':>8}  {'check':>8}  {'ratio':>7}  {'ratio per log':>13}"
        say(f"{'':14}{'logs':>6}  {titles}")
        largest = f"simulated {SIZES[-1] * LOGS}"
        for name in (largest, *(name for name in trees if not name.startswith("simulated"))):
            against_the_official(name, trees[name], costs[name], scratch)
        say("\nthe same for whole rounds, one submission after another; ratio to the floor")
        say(f"{'':14}{'logs':>6}  {'official':>8}  {'check':>8}  {'ratio':>7}  {'floor':>7}")
        for name in (name for name in trees if name in ROUNDS):
            whole_against_the_official(name, trees[name], costs[name], floors[name], scratch)
        start = start_up(trees[largest], scratch, times)
        say(f"\na check of one log: {shown(start)}")
        growth({len(logs(tree)): tree for tree in simulated.values()}, scratch, 3 * times)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 3)
