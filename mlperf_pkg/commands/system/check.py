"""System descriptions checked by themselves, outside a submission."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from mlperf_pkg.checker.fold import system_row, tool
from mlperf_pkg.checker.values import Options
from mlperf_pkg.checks.descriptions import SystemFile, check_system, unchecked_system
from mlperf_pkg.checks.tree import not_read
from mlperf_pkg.errors import UserError
from mlperf_pkg.findings import Verdicts, folded, in_order
from mlperf_pkg.infra.json_values import MAX_BYTES
from mlperf_pkg.infra.paths import NotAFileError, is_folder, open_file
from mlperf_pkg.results.report import Report
from mlperf_pkg.rulebook.documents import rounds
from mlperf_pkg.rulebook.load import load_round
from mlperf_pkg.rulebook.model import version_of
from mlperf_pkg.rulebook.rounds import TRAINING, Sureness
from mlperf_pkg.run.model import Identity, LogFile, identify
from mlperf_pkg.submission.find import find_input

DEFAULT_LOGS = "logs"
"""The folder of logs in a workspace, beside that of the descriptions."""


class SystemRound(Struct, frozen=True):
    """The round whose rules apply to a description, and the reason for it."""

    usage: str
    name: str
    reason: str


def round_of_systems(options: Options, paths: Sequence[str] = ()) -> SystemRound:
    """Return the round of the options, or else of the configuration, the logs, or else the newest.

    The logs are those in a folder ``logs`` beside the folder of a description in ``paths``.

    Raises:
        UserError: the rulebook has no such round.
    """
    usage = options.usage or options.config.usage or TRAINING
    if options.round:
        name, reason = options.round, "as given"
    elif options.config.round:
        name, reason = options.config.round, f"as {options.origin} says"
    elif of_logs := _round_of_logs(paths, options.usage or options.config.usage):
        return of_logs
    else:
        name, reason = rounds(usage)[-1], "the newest of the rulebook"
    return SystemRound(usage, load_round(usage, name).name, reason)


def _round_of_logs(paths: Sequence[str], usage: str | None) -> SystemRound | None:
    """Return the newest round that follows from the times of logs; None if there is none."""
    folders = dict.fromkeys((p if is_folder(p) else p.parent).absolute() for p in map(Path, paths))
    logs = [folder.parent / DEFAULT_LOGS for folder in folders]
    identities = [i for folder in logs if is_folder(folder) for i in _identities(folder, usage)]
    inferred = [i for i in identities if i.choice.sureness is Sureness.INFERRED]
    if not inferred:
        return None
    newest = max(inferred, key=lambda identity: version_of(identity.choice.name))
    reason = f"from the logs in {DEFAULT_LOGS}/, {newest.choice.reason}"
    return SystemRound(newest.usage, newest.choice.name, reason)


def _identities(folder: Path, usage: str | None) -> Iterator[Identity]:
    with suppress(UserError, OSError):  # logs that cannot be read do not show the round
        for place in find_input(str(folder)).every_log:
            yield identify(LogFile(place.source, usage=usage))


def check_descriptions(paths: Sequence[str], round_: SystemRound) -> Report:
    """Check descriptions, and all ``*.json`` of folders, by the rules of a round.

    Raises:
        UserError: a folder has no ``*.json``.
        OSError: a file does not exist.
    """
    files = [file for path in paths for file in description_files(path)]
    systems = [checked_description(file, round_) for file in files]
    findings = [f for system in systems for f in folded(system.findings, system.path)]
    rows = tuple(system_row(system, round_.usage, round_.name) for system in systems)
    return Report(
        tool=tool(),
        usage=round_.usage,
        round=round_.name,
        round_reason=round_.reason,
        verdict=Verdicts.worst(row.verdict for row in rows),
        systems=rows,
        findings=in_order(findings),
    )


def checked_description(file: str, round_: SystemRound) -> SystemFile:
    """Check one description by the rules of a round.

    Raises:
        OSError: the file does not exist.
    """
    try:
        with open_file(Path(file)) as stream:
            data = stream.read(MAX_BYTES + 1)
    except (PermissionError, NotAFileError) as error:
        return unchecked_system(file, not_read(file, str(error.strerror)))
    return check_system(file, data, round_.usage, round_.name)


def description_files(path: str) -> list[str]:
    """Return a file, or the ``*.json`` of a folder.

    Raises:
        UserError: the folder has none.
    """
    if not is_folder(Path(path)):
        return [path]
    files = sorted(str(file) for file in Path(path).glob("*.json") if file.is_file())
    if not files:
        raise UserError(f"{path}: no system description in this folder (no file named *.json)")
    return files
