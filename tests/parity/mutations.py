"""Ways to spoil a log. A log is a list of lines; each mutation changes it in place."""

import json
import re
from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import suppress
from random import Random
from typing import Any

from mlperf_pkg.rulebook.documents import rounds, usages
from mlperf_pkg.rulebook.load import load_round

Lines = list[bytes]
Fields = dict[str, Any]
Mutation = Callable[[Lines, Random], object]

_RECORD = re.compile(rb":::MLLOG (.*)$", re.DOTALL)
_KEY = re.compile(rb'"key": ?"([^"]*)"')

ODD: tuple[Any, ...] = (
    *(None, True, False, 0, 1, -1, 2, 16, 1152, 8192, 0.0, 0.5, 0.9, 1.5, 1e-9, 100.0, 5e4, 1e6),
    *(float("nan"), float("inf"), float("-inf"), 10**400, 2**63, 1e308, 1e-320),
    *("", "x", "1", "5.0", "epoch_num", "samples_count", "closed", "open", "adam", "fp8", "é"),
    *([], [1], [40, 50], [[]]),
    *({}, {"epoch_num": 1}, {"BBOX": 0.4, "SEGM": 0.4}, {"BBOX": 0.1}, {"FID": 1, "CLIP": 0.5}),
)
NAMES = (
    *("epoch_num", "samples_count", "step_num", "status", "metric", "tensor", "method"),
    *("first_epoch_num", "epoch_count"),
)
BENCHMARKS: tuple[Any, ...] = (
    *sorted({name for of in usages() for r in rounds(of) for name in load_round(of, r).benchmarks}),
    *("nothing", "", 7, None, ["bert"], {}),
)
_TIMES: tuple[Any, ...] = (None, "soon", "1600000000000", True, [], 10**400, float("nan"), -5, 0)


def mutate(lines: Lines, rng: Random) -> Lines:
    """The log after one to four mutations."""
    changed = list(lines)
    for _ in range(rng.choice((1, 1, 1, 2, 2, 3, 4))):
        if changed:
            rng.choice(MUTATIONS)(changed, rng)
    return changed


def _pick(lines: Lines, rng: Random) -> int:
    """A line, every key as likely as any other."""
    by_key: dict[bytes, list[int]] = defaultdict(list)
    for number, line in enumerate(lines):
        match = _KEY.search(line)
        by_key[match[1] if match else b""].append(number)
    return rng.choice(by_key[rng.choice(list(by_key))])


def _edit(lines: Lines, number: int, edit: Callable[[Fields], None]) -> None:
    """Change the record of a line, if it has one."""
    if match := _RECORD.search(lines[number]):
        try:
            fields = json.loads(match[1].decode("latin-1"))
        except ValueError:
            return
        if isinstance(fields, dict):
            edit(fields)
            lines[number] = b":::MLLOG " + json.dumps(fields).encode()


def _drop_key(lines: Lines, rng: Random) -> None:
    if match := _KEY.search(lines[_pick(lines, rng)]):
        lines[:] = [line for line in lines if match[0] not in line]


def _duplicate(lines: Lines, rng: Random) -> None:
    number = _pick(lines, rng)
    lines.insert(rng.choice((number, rng.randint(0, len(lines)))), lines[number])


def _double(lines: Lines, rng: Random) -> None:
    """The same key once more, with another value."""
    number = _pick(lines, rng)
    lines.insert(number, lines[number])
    _edit(lines, number + rng.randint(0, 1), lambda fields: fields.update(value=rng.choice(ODD)))


def _move(lines: Lines, rng: Random) -> None:
    line = lines.pop(_pick(lines, rng))
    lines.insert(rng.randint(0, len(lines)), line)


def _swap(lines: Lines, rng: Random) -> None:
    one, other = _pick(lines, rng), _pick(lines, rng)
    lines[one], lines[other] = lines[other], lines[one]


def _retype(fields: Fields, rng: Random) -> None:
    ways: tuple[Callable[[Any], Any], ...] = (str, lambda v: [v], lambda v: {"v": v}, bool)
    fields["value"] = rng.choice(ways)(fields.get("value"))


_NEAR: tuple[Callable[[float], float], ...] = (
    *(lambda v: v + 1, lambda v: v - 1, lambda v: -v, lambda v: v * 2, lambda v: v / 2),
    *(lambda v: v * (1 + 1e-12), lambda v: v * 1.01, lambda v: v * 0.99, float, lambda v: 0),
)


def _perturb(fields: Fields, rng: Random) -> None:
    """Change a value, or what its metadata count, a little."""
    metadata = fields.get("metadata")
    part = rng.choice((fields, metadata)) if isinstance(metadata, dict) else fields
    for name in ("value",) if part is fields else (*part,):
        if isinstance(part.get(name), int | float):
            with suppress(OverflowError):  # an integer too large for a float
                part[name] = rng.choice(_NEAR)(part[name])


def _perturb_part(fields: Fields, rng: Random) -> None:
    """Change an element of a list or object."""
    value = fields.get("value")
    if isinstance(value, list | dict) and value:
        odd, names = rng.choice(ODD), [*value] if isinstance(value, dict) else range(len(value))
        value[rng.choice(names)] = odd


def _change_metadata(fields: Fields, rng: Random) -> None:
    metadata = fields.get("metadata")
    if isinstance(metadata, dict):
        name = rng.choice((*NAMES, *sorted(metadata)))
        if rng.random() < 0.4:
            metadata.pop(name, None)
        else:
            metadata[name] = rng.choice((*ODD, str(metadata.get(name))))


def _replace_metadata(fields: Fields, rng: Random) -> None:
    names = (list(NAMES), " ".join(NAMES), dict.fromkeys(NAMES, 1), dict.fromkeys(NAMES))
    fields["metadata"] = rng.choice((*ODD, *names))


def _change_name(fields: Fields, rng: Random) -> None:
    names = ("eval_accuracy", "aggregated_eval_accuracy", "global_batch_size", "init_stop")
    fields["key"] = rng.choice((None, [], 5, *names))


def _change_time(fields: Fields, rng: Random) -> None:
    shift = rng.choice((60_000, 1_800_000, 3_600_000, 86_400_000)) * rng.choice((-1, 1))
    time_ms = fields.get("time_ms")
    is_kept = rng.random() >= 0.3 and isinstance(time_ms, int | float)
    fields["time_ms"] = fields["time_ms"] + shift if is_kept else rng.choice(_TIMES)


def _shift_times(lines: Lines, rng: Random) -> None:
    """Everything from some line on happens later."""
    shift = rng.choice((1_100_000, 1_700_000, 1_900_000, 3_700_000, 14_500_000))

    def later(fields: Fields) -> None:
        if isinstance(fields.get("time_ms"), int | float):
            fields["time_ms"] += shift

    for number in range(_pick(lines, rng), len(lines)):
        _edit(lines, number, later)


def _first(key: bytes, values: Sequence[Any]) -> Mutation:
    """The mutation that changes the value of the first record of a key."""

    def change(lines: Lines, rng: Random) -> None:
        value = rng.choice(values)
        numbers = [n for n, line in enumerate(lines) if b'"submission_%s"' % key in line]
        for number in numbers[:1]:
            _edit(lines, number, lambda fields: fields.update(value=value))

    return change


def _truncate(lines: Lines, rng: Random) -> None:
    del lines[rng.randint(0, len(lines)) :]


def _cut(lines: Lines, rng: Random) -> None:
    number = _pick(lines, rng)
    lines[number] = lines[number][: rng.randint(0, len(lines[number]))]


def _corrupt(lines: Lines, rng: Random) -> None:
    number = _pick(lines, rng)
    at, odd = rng.randint(0, len(lines[number])), (b"\xe9", b"\x00", b"\t", b"\xef\xbb\xbf")
    junk = rng.choice((b'"', b"{", b"}", b" ", *odd, b",", b"\\"))
    lines[number] = lines[number][:at] + junk + lines[number][at + rng.randint(0, 1) :]


def _surround(lines: Lines, rng: Random) -> None:
    number = _pick(lines, rng)
    ends = ((b"0: ", b""), (b"", b" done"), (b":::MLLOG ", b""), (b"\xff ", b"  "), (b"", b"\r"))
    before, after = rng.choice(ends)
    lines[number] = before + lines[number] + after


def _join(lines: Lines, rng: Random) -> None:
    """Two records on one line."""
    number = _pick(lines, rng)
    if number + 1 < len(lines):
        lines[number] += rng.choice((b"", b" ")) + lines.pop(number + 1)


def _repeat_name(lines: Lines, rng: Random) -> None:
    """The same name twice in one object."""
    number, name = _pick(lines, rng), rng.choice((b"value", b"key", b"metadata"))
    extra = b'{"%s": %s, ' % (name, rng.choice((b"0", b'"x"')))
    lines[number] = lines[number].replace(b"{", extra, 1)


def _append_name(lines: Lines, rng: Random) -> None:
    number = _pick(lines, rng)
    if lines[number].endswith(b"}"):
        value = json.dumps(rng.choice(ODD)).encode()
        lines[number] = lines[number][:-1] + b', "value": ' + value + b"}"


def _windows(lines: Lines, rng: Random) -> None:
    lines[:] = [line.rstrip(b"\r") + b"\r" for line in lines]


def _record(change: Callable[[Fields, Random], Any]) -> Mutation:
    """The mutation of a log that changes a record."""
    return lambda lines, rng: _edit(lines, _pick(lines, rng), lambda fields: change(fields, rng))


_FIELDS = ("key", "value", "metadata", "time_ms", "namespace")
_BLANKS = (b"", b"step 5", b":::MLL", b":::MLLOG ")
_OF_RECORDS: tuple[Callable[[Fields, Random], Any], ...] = (
    *[lambda fields, rng: fields.update(value=rng.choice(ODD))] * 2,
    *(_retype, _perturb, _perturb, _perturb_part, _change_metadata, _replace_metadata),
    *(_change_name, lambda fields, rng: fields.pop(rng.choice(_FIELDS), None), _change_time),
)
_OF_LINES: tuple[Mutation, ...] = (
    lambda lines, rng: lines.pop(_pick(lines, rng)),
    *(_drop_key, _duplicate, _double, _move, _swap, _shift_times),
    _first(b"division", ("closed", "open", "Closed", "", None)),
    _first(b"benchmark", BENCHMARKS),
    *(_truncate, _cut, _corrupt, _surround, _join, _repeat_name, _append_name, _windows),
    lambda lines, rng: lines.insert(rng.randint(0, len(lines)), rng.choice(_BLANKS)),
)
MUTATIONS: tuple[Mutation, ...] = (*map(_record, _OF_RECORDS), *_OF_LINES)
