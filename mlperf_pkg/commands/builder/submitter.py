"""Find the submitter of a plan."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from mlperf_pkg.checks.descriptions import SystemFile
from mlperf_pkg.config import CONFIG_NAME, Config
from mlperf_pkg.infra.text import visible
from mlperf_pkg.run.model import Run

FOLDER_NAME = re.compile(r"\w[\w.+@,=&()-]*")
"""Names of systems, benchmarks and submitters, which name folders in git."""


def submitters_of(config: Config, systems: Iterable[SystemFile], runs: Iterable[Run]) -> list[str]:
    """Return the configuration's, else those of the systems, else the logs' organizations."""
    if config.submitter:
        return [config.submitter]
    described = {system.submitter or "" for system in systems}
    logged = {run.text("org") for run in runs}
    return sorted(filter(None, described)) or sorted(filter(None, logged))


def submitter_problems(submitters: Sequence[str]) -> Iterator[str]:
    """Yield why the plan does not have exactly one submitter that can name a folder."""
    lines = f"Name the submitter in {CONFIG_NAME}:\n  submitter: "
    if not submitters:
        yield f"neither a system description nor a log names a submitter. {lines}..."
    elif len(submitters) > 1:
        names = [visible(submitter) for submitter in submitters]
        yield (
            f"several submitters: {', '.join(names)}. A submission has one submitter: build with"
            f" the systems and logs of one at a time. If they are the same: {lines}{names[0]}"
        )
    elif not FOLDER_NAME.fullmatch(submitters[0]):
        proposed = re.sub(r"[^\w.+-]+", "-", submitters[0]).strip("-.")
        yield f"the submitter {submitters[0]!r} cannot name a folder in git. {lines}{proposed}"


def submitter_notes(submitters: Sequence[str], systems: Iterable[SystemFile]) -> Iterator[str]:
    """Yield which descriptions name another submitter."""
    for system in systems:
        if system.submitter and system.submitter not in submitters:
            yield f"{visible(system.path)} names another submitter: {system.submitter!r}"
