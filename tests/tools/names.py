"""Generate ``rules/systems/names.json`` from the published results: ``python -m
tests.tools.names``.

``check`` reads that small file, as the published results take longer to read.
"""

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from operator import attrgetter
from pathlib import Path

from mlperf_pkg.checks.names import plain_name
from mlperf_pkg.infra.files import write_whole
from mlperf_pkg.published.model import PublishedSet
from mlperf_pkg.published.results import published_results

FILE = Path(__file__).parents[2] / "rules" / "systems" / "names.json"
LEFT_OUT = "x-left-out"
FEWEST_SETS = 5  # of a name, so that a typo of one submitter does not become the spelling

_COLUMNS = {
    "accelerator_model_name": attrgetter("accelerator_model"),
    "host_processor_model_name": attrgetter("host_processor"),
}


def text(sets: Sequence[PublishedSet]) -> str:
    """Return the file: each name in the spelling of most submitters, then of most result sets."""
    contents = json.loads(FILE.read_text("utf-8"))
    left_out = {plain_name(name) for name in contents[LEFT_OUT]}
    for field, column in _COLUMNS.items():
        submitters = {(column(row).strip(), row.submitter) for row in sets}
        spellings = _spellings(
            [column(row).strip() for row in sets], Counter(name for name, _ in submitters)
        )
        contents[field] = sorted(
            (name for name in spellings if plain_name(name) not in left_out), key=str.lower
        )
    return f"{json.dumps(contents, indent=2)}\n"


def _spellings(names: Iterable[str], submitters: Counter[str]) -> list[str]:
    """Return one spelling of each frequent name."""
    alike: dict[str, Counter[str]] = {}
    for name in names:
        alike.setdefault(plain_name(name), Counter())[name] += 1
    return [
        max(counter, key=lambda name: (submitters[name], counter[name], name))
        for key, counter in alike.items()
        if key and counter.total() >= FEWEST_SETS
    ]


def main() -> None:
    """Write the file."""
    write_whole(FILE, text(published_results().sets), replace=True)


if __name__ == "__main__":
    main()
