"""The lower limit for any checker: find and decode every record of every log, and nothing else.

Usage: python bench/floor.py FOLDER PROCESSES

Read each file ``result_*`` below FOLDER as a whole, find its ``:::MLLOG`` records with one regular
expression, and decode each record into a typed struct. Print the number of records.
"""

import os
import re
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import msgspec


class Record(msgspec.Struct, gc=False):
    """A record as the rules define it."""

    key: str
    time_ms: int | float
    value: Any
    metadata: Any
    namespace: Any = None
    event_type: Any = None


DECODE = msgspec.json.Decoder(Record).decode
RECORDS = re.compile(rb":::MLLOG (.*)")


def read(path: str) -> int:
    """Count the records of a log; lines without a record do not count."""
    with open(path, "rb") as stream:  # noqa: PTH123 - the fastest way
        data = stream.read()
    count = 0
    for raw in RECORDS.findall(data):
        try:
            DECODE(raw)
        except msgspec.MsgspecError:
            continue
        count += 1
    return count


def logs(folder: str) -> Iterator[str]:
    """Yield the paths of all logs below a folder."""
    for parent, _, names in os.walk(folder):
        yield from (f"{parent}/{name}" for name in names if name.startswith("result_"))


def main(folder: str, processes: int) -> None:
    """Read all logs in parallel, the largest first."""
    paths = sorted(logs(folder), key=os.path.getsize, reverse=True)
    if processes == 1:
        total = sum(map(read, paths))
    else:
        with ProcessPoolExecutor(processes) as executor:
            total = sum(executor.map(read, paths, chunksize=4))
    sys.stdout.write(f"{total}\n")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
