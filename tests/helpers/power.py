"""Power logs of the runs of a submission."""

import json
from pathlib import Path
from typing import Any

from tests.helpers.broken_runs import SET
from tests.helpers.logs import records

START = 1_000_000


def line(key: str, time_ms: Any, value: Any = None) -> bytes:
    fields = {"time_ms": time_ms, "key": key, "value": value, "metadata": {}}
    return b":::MLLOG " + json.dumps(fields).encode() + b"\n"


def node(start: int = START, seconds: int = 100, **changes: Any) -> bytes:
    """A sample every ``step`` seconds, except the ``missing`` one and those before the ``first``.

    The time of the stop is ``stamp`` seconds after the start, which is logged if ``started``.
    """
    usual = {
        "watts": 500.0,
        "step": 1,
        "missing": 0,
        "efficiency": 0.9,
        "first": 0,
        "stamp": seconds,
        "started": True,
    }
    fields: dict[str, Any] = usual | changes
    seconds_ = range(fields["step"], seconds + 1, fields["step"])
    times = [n for n in seconds_ if n != fields["missing"] and n >= fields["first"]]
    stop = start + 1000 * fields["stamp"]
    efficiency = line("conversion_eff", start, fields["efficiency"])
    head = line("power_measurement_start", start) + efficiency
    if not fields["started"]:
        head = efficiency
    reading = line("power_reading", "at", fields["watts"])
    samples = (reading.replace(b'"at"', b"%d" % (start + 1000 * second)) for second in times)
    return b"".join([head, *samples, line("power_measurement_stop", stop)])


def measure(root: Path, short: int = 0, **more: Any) -> Path:
    """Measure the runs of a submission, all from before their start to after their stop."""
    for log in sorted((root / SET).glob("result_*.txt")):
        times = {record["key"]: record["time_ms"] for record in records(log.read_bytes())}
        seconds = (times["run_stop"] - times["run_start"]) // 1000 + 10 - short
        fields = {"start": times["run_start"] - 1000, "seconds": seconds, **more}
        path = root / SET / "power" / log.stem / "node_0.txt"
        path.parent.mkdir(parents=True)
        path.write_bytes(node(**fields))
    return root
