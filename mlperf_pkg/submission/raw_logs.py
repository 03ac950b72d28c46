"""The runs of raw logs: a file may hold several, or not one if its clock never started."""

from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from mlperf_pkg.errors import UserError
from mlperf_pkg.infra.source import words_of_lines
from mlperf_pkg.infra.streams import FilePart, Spool, problem_of
from mlperf_pkg.log.spans import RunSpan, mentions_in, spans_of
from mlperf_pkg.submission.model import Input, Place, Unread, Why, is_result_log, set_name

_NEVER_STARTED = "its clock never started: it mentions neither run_start nor an evaluation"


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
        spans: list[RunSpan] = []
        if mentions.may_have_several_runs and not problem:
            with place.source.open() as stream:
                spans = spans_of(stream)
    except OSError:  # which is reported where it is read
        yield _RawLog(place, started=True)
        return
    if mentions.old_format:
        yield _RawLog(place, started=False, problem=mentions.old_format)
        return
    if len(spans) <= 1:
        yield _RawLog(place, mentions.started or bool(problem))
        return
    whole = _seekable(place)
    for span in spans:
        part = replace(whole, start=whole.start + span.start, size=span.size)
        label = f"{place.label}{words_of_lines(span.lines)}"
        log = replace(place, label=label, part=part, lines=span.lines)
        yield _RawLog(log, span.started)


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
