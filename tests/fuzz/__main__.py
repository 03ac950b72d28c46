"""Run the campaign: ``python -m tests.fuzz``."""

import argparse
import os
import subprocess
import sys
import time
import traceback
from importlib import import_module
from multiprocessing import get_context
from pathlib import Path

from tests.fuzz import sanitized

SECONDS = 300.0
SEEDS = Path(__file__).with_name("seeds.txt")
FAILED = sanitized.ROOT / "build" / "fuzz" / "failed.txt"
SLOW = 20.0  # seconds; a case that takes longer fails
NAMES = (
    *("scanner", "logs", "descriptions", "yaml"),
    *("objections", "issues", "calendar", "exports", "archives", "encrypted", "sets"),
)


def main() -> int:
    """Run each campaign for its share of the time, in a process of its own."""
    parser = argparse.ArgumentParser(prog="make fuzz", description=__doc__)
    default = float(os.environ.get("FUZZ_SECONDS", SECONDS))
    parser.add_argument("--seconds", type=float, default=default, help="default: %(default)s")
    parser.add_argument("--seed", type=int, help="the first seed (default: by the clock)")
    parser.add_argument("--campaign", choices=NAMES, action="append", help="default: all")
    parser.add_argument("--cases", type=int, help="run as many cases of each, however long")
    parser.add_argument("--inner", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    first = int(time.time()) * 1_000_000 if options.seed is None else options.seed
    names = options.campaign or NAMES
    if options.inner:
        return _run(names[0], first, options.seconds, options.cases)
    environment = sanitized.environment()
    say(f"the scanner has {'ASan and UBSan' if environment else 'no sanitizers'}")
    failed = False
    for name in names:
        share = options.seconds / len(names)
        if name == "scanner" and environment:
            status = _sanitized(environment, name, first, share, options.cases)
        else:
            status = _forked(name, first, share, options.cases)
        if status < 0:
            seed = FAILED.with_name(f"{name}.seed").read_text("utf-8").strip()
            say(f"{name} {seed}: ended by signal {-status}")
        failed = failed or status != 0
    return int(failed)


def _sanitized(
    environment: dict[str, str], name: str, first: int, seconds: float, cases: int | None
) -> int:
    """Run a campaign in a process that has the sanitizers, which are loaded at its start."""
    arguments = ["--campaign", name, "--seed", str(first), "--seconds", str(seconds), "--inner"]
    if cases:
        arguments += ["--cases", str(cases)]
    command = [sys.executable, "-m", "tests.fuzz", *arguments]
    return subprocess.run(command, env=environment, check=False).returncode


def _forked(name: str, first: int, seconds: float, cases: int | None) -> int:
    """Run a campaign in a fork, which has imported what it needs."""
    import_module("tests.fuzz.campaigns")  # once for all, but not before the sanitizers are loaded

    def run() -> None:
        sys.exit(_run(name, first, seconds, cases))

    process = get_context("fork").Process(target=run)
    process.start()
    process.join()
    assert process.exitcode is not None
    return process.exitcode


def _run(name: str, first: int, seconds: float, cases: int | None) -> int:
    """Run the cases of a campaign: those of the kept seeds, then new ones."""
    sanitized.install()
    from tests.fuzz import campaigns  # noqa: PLC0415 - after the scanner was chosen

    kept = [int(seed) for campaign, seed in kept_seeds() if campaign == name]
    end, done, failures, slowest = time.monotonic() + seconds, 0, 0, 0.0
    current = FAILED.with_name(f"{name}.seed")
    current.parent.mkdir(parents=True, exist_ok=True)
    while done < len(kept) or (done < cases if cases else time.monotonic() < end):
        seed = kept[done] if done < len(kept) else first + done
        current.write_text(f"{seed}\n", "utf-8")  # of a case that ends this process
        begun = time.monotonic()
        try:
            campaigns.run(name, seed)
            took = time.monotonic() - begun
            slowest = max(slowest, took)
            if took >= SLOW:
                raise TimeoutError(f"{took:.1f} s")
        except Exception:  # noqa: BLE001 - any is a failure
            failures += 1
            say(f"{name} {seed}: failed\n{traceback.format_exc()}")
            with FAILED.open("a", encoding="utf-8") as file:
                file.write(f"{name} {seed}\n")
        done += 1
    current.unlink()
    say(f"{name}: {done:,} cases, {failures} failed, the slowest {slowest:.2f} s")
    return int(failures > 0)


def say(text: str) -> None:
    """Write a line at once."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def kept_seeds() -> list[tuple[str, str]]:
    """Return the campaigns and seeds of cases that once failed."""
    lines = SEEDS.read_text("utf-8").splitlines()
    return [(line.split()[0], line.split()[1]) for line in lines if not line.startswith("#")]


if __name__ == "__main__":
    sys.exit(main())
