"""Find the submitter of a plan, and the logs that are not of that organisation."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from fnmatch import fnmatchcase

from mlperf_pkg.checks.organisations import are_alike
from mlperf_pkg.checks.systems import SystemFile
from mlperf_pkg.commands.builder.mapping import FOLDER_NAME, folded
from mlperf_pkg.config import CONFIG_NAME, Config
from mlperf_pkg.infra.text import visible
from mlperf_pkg.run.model import Run


def submitters_of(config: Config, systems: Iterable[SystemFile], runs: Iterable[Run]) -> list[str]:
    """Return the configuration's, else those of the systems, else the logs' organizations."""
    if config.submitter:
        return [config.submitter]
    described = {system.submitter or "" for system in systems}
    logged = {run.text("org") for run in runs}
    return sorted(filter(None, described)) or sorted(filter(None, logged))


def submitter_problems(
    config: Config, submitters: Sequence[str], runs: Iterable[Run]
) -> Iterator[str]:
    """Yield why there is not one submitter, or which logs are of another organisation."""
    problems = list(_bad_submitter(submitters))
    yield from problems or _other_organizations(config, submitters[0], runs)


def _bad_submitter(submitters: Sequence[str]) -> Iterator[str]:
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


def _other_organizations(config: Config, submitter: str, runs: Iterable[Run]) -> Iterator[str]:
    others: dict[str, list[str]] = {}
    for run in runs:
        org = run.text("org")
        if not (are_alike(org, submitter) or _is_named(org, config)):
            others.setdefault(org, []).append(run.path)
    for org, paths in sorted(others.items()):
        yield (
            f"{folded(paths)}: submission_org is {org!r}, but the submitter is {submitter!r}:"
            f" take them out or, if they are logs of the submitter, name it in {CONFIG_NAME}:\n"
            f"  organizations: [{json.dumps(org)}]"
        )


def _is_named(org: str, config: Config) -> bool:
    return any(fnmatchcase(org.casefold(), name.casefold()) for name in config.organizations)
