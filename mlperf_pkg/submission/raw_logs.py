"""The runs of raw logs: a file may hold several, or not one if its clock never started."""

from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import BinaryIO

from msgspec import Struct
from msgspec.structs import replace

from mlperf_pkg.errors import UserError
from mlperf_pkg.infra.source import words_of_lines
from mlperf_pkg.infra.streams import FilePart, Spool, problem_of
from mlperf_pkg.log.record import TOKEN, has_started, old_format
from mlperf_pkg.submission.model import Input, Place, Unread, Why, is_result_log, set_name

_HEADER = b"submission_benchmark"
_START = b"run_start"
_READ = 1 << 20
_NEVER_STARTED = "no run started in it, as it has neither run_start nor an evaluation"


class Mentions(Struct):
    """How often a file mentions headers and starts, and whether the clock of any run started.

    ``started`` is True, too, of a file without records of MLLOG, of which nothing is known.
    ``old_format`` is as for the function of this name, None if any record is of MLLOG.
    """

    headers: int = 0
    starts: int = 0
    started: bool = True
    old_format: str | None = None

    @property
    def may_have_several_runs(self) -> bool:
        """Whether the file may hold more than one run."""
        return self.headers > 1 or self.starts > 1


def mentions_in(stream: BinaryIO) -> Mentions:
    """Count what is mentioned anywhere in a stream, which is read to its end."""
    mentions = Mentions(started=False)
    rest = b""
    is_mllog = False
    while chunk := stream.read(_READ):
        text = rest + chunk
        is_mllog = is_mllog or TOKEN in text
        mentions.old_format = None if is_mllog else mentions.old_format or old_format(text)
        mentions.headers += text.count(_HEADER) - rest.count(_HEADER)
        mentions.starts += text.count(_START) - rest.count(_START)
        mentions.started = mentions.started or mentions.starts > 0 or has_started(text)
        rest = text[-len(_HEADER) :]
    mentions.started = mentions.started or not is_mllog
    return mentions


class _RawLog(Struct, frozen=True):
    """A raw log, whether the clock of its run ever started, and why it cannot be read, if so."""

    place: Place
    started: bool
    problem: str | None = None


def with_runs(inputs: Sequence[Input]) -> tuple[Input, ...]:
    """Return inputs in which each raw log is what one run wrote.

    A log whose clock never started is not that of a run, unless no raw log has a clock that did.
    Files below ``results/`` of a submission stay as they are.

    Raises:
        UserError: there is nothing but logs of a round before the first of the rules.
    """
    logs_of_inputs: list[list[_RawLog]] = []
    for contents in inputs:
        logs_of_inputs.append(list(chain.from_iterable(map(_logs_in, contents.logs))))
    any_started = any(log.started for log in chain.from_iterable(logs_of_inputs))
    read: list[Input] = []
    for contents, logs in zip(inputs, logs_of_inputs, strict=True):
        places: list[Place] = []
        unread = list(contents.unread)
        for log in logs:
            if log.problem:
                unread.append(Unread(log.place, log.problem))
            elif any_started and not log.started:
                unread.append(Unread(log.place, _NEVER_STARTED, Why.NO_RUN))
            else:
                places.append(log.place)
        read.append(replace(contents, logs=tuple(places), unread=tuple(unread)))
    if not any(contents.submissions or contents.every_log for contents in read):
        for log in chain.from_iterable(logs_of_inputs):
            if log.problem:
                raise UserError(f"{log.place.label}: {log.problem}")
    return tuple(read)


def _logs_in(place: Place) -> Iterator[_RawLog]:
    """Yield the logs in a file; one that cannot be read to its end is one, as is one in a tree."""
    if _is_in_tree(place):
        yield _RawLog(place, started=True)
        return
    try:
        with place.source.open() as stream:
            mentions = mentions_in(stream)
            problem = problem_of(stream)
        parts: list[_RawLog] = []
        if mentions.may_have_several_runs and not problem:
            parts = _parts_of(place)
    except OSError:  # which is reported where it is read
        yield _RawLog(place, started=True)
        return
    if mentions.old_format:
        yield _RawLog(place, started=False, problem=mentions.old_format)
    elif len(parts) > 1:
        yield from parts
    else:
        yield _RawLog(place, mentions.started or bool(problem))


def _parts_of(place: Place) -> list[_RawLog]:
    """Return what each run wrote into a file."""
    from mlperf_pkg.log.spans import spans_of  # noqa: PLC0415 - few files have several runs

    with place.source.open() as stream:
        spans = spans_of(stream)
    if len(spans) == 1:
        return []
    whole = _seekable(place)
    parts: list[_RawLog] = []
    for span in spans:
        part = replace(whole, start=whole.start + span.start, size=span.size)
        label = f"{place.label}{words_of_lines(span.lines)}"
        log = replace(place, label=label, part=part, lines=span.lines)
        parts.append(_RawLog(log, span.started))
    return parts


def _is_in_tree(place: Place) -> bool:
    if not is_result_log(place.name):
        return False
    folder = place.path.resolve().parent
    return set_name(folder.as_posix() if isinstance(folder, Path) else folder) is not None


def _seekable(place: Place) -> FilePart:
    """Return the text of a file, decompressed, as bytes of which a part can be read."""
    origin = place.source.origin
    if not place.compression:
        if isinstance(origin, FilePart):
            return origin
        if isinstance(origin, str | Path):
            size = Path(origin).stat().st_size
            return FilePart(Path(origin), 0, size, size)
    with place.source.open() as stream:
        return Spool().append(stream)
