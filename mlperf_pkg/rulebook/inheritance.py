"""What a file of a round says together with the files that it inherits from."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mlperf_pkg.errors import RulebookError
from mlperf_pkg.infra.resources import per_rulebook
from mlperf_pkg.rulebook.files import ROUND, Document, own_file, own_stems, read, rounds
from mlperf_pkg.rulebook.model import SECTIONS, version_of
from mlperf_pkg.rulebook.problems import Problem, RuleFile, Steps, suggestion

_KEYED_FIELDS = ("always", "values")  # of a section ``simulation``


@per_rulebook
def own(usage: str, round_name: str, stem: str) -> Document:
    """Return what a file of a round says itself; nothing where the round does not have it.

    Raises:
        RulebookError: the file is not valid.
    """
    file = own_file(usage, round_name, stem)
    return read(file) if file else {}


@per_rulebook
def inherited(usage: str, round_name: str, stem: str) -> Document:
    """Return what a file of a round says, laid over that of the round it extends.

    Raises:
        RulebookError: a file is not valid, or it names a round or benchmark that does not exist.
    """
    parent = parent_of(usage, round_name)
    merged = {} if parent is None else dict(inherited(usage, parent, stem))
    document = dict(own(usage, round_name, stem))
    if model := model_of(usage, round_name, stem):
        _lay_over(merged, inherited(usage, round_name, model))
        del document["like"]
    _lay_over(merged, document)
    return merged


def _lay_over(below: Document, above: Document) -> None:
    for name, content in above.items():
        if name in SECTIONS:
            section = {**below.get(name, {}), **content}
            below[name] = {key: rules for key, rules in section.items() if rules is not None}
        elif name == "sources":
            below[name] = _merged_sources(below.get(name, {}), content)
        elif name == "simulation":
            below[name] = _merged(below.get(name, {}), content)
        else:
            below[name] = content


def _merged_sources(below: Document, above: Document) -> Document:
    """Return the keys of each source; a key has the source of the topmost file that names it."""
    of_above = {key for keys in above.values() for key in keys}
    return {
        source: [
            *(key for key in below.get(source, ()) if key not in of_above),
            *above.get(source, ()),
        ]
        for source in {**below, **above}
    }


def _merged(below: Document, above: Document) -> Document:
    """Return a section ``simulation`` laid over an inherited one."""
    keyed = {
        name: {
            key: value
            for key, value in {**below.get(name, {}), **above[name]}.items()
            if value is not None
        }
        for name in _KEYED_FIELDS
        if above.get(name) is not None
    }
    merged = {**below, **above, **keyed}
    return {name: value for name, value in merged.items() if value is not None}


# ---- from which files ---------------------------------------------------------------------


@per_rulebook
def parent_of(usage: str, round_name: str) -> str | None:
    """Return the earlier round that a round extends, None where it extends none.

    Raises:
        RulebookError: that round does not exist, or is not an earlier one.
    """
    parent: str | None = own(usage, round_name, ROUND).get("extends")
    if parent is None:
        return None
    if parent not in rounds(usage):
        earlier = [name for name in rounds(usage) if version_of(name) < version_of(round_name)]
        message = f"round {round_name} extends {parent}, which does not exist"
        message += suggestion(parent, earlier)
    elif version_of(parent) < version_of(round_name):
        return parent
    else:
        message = f"round {round_name} extends {parent}; expected an earlier round"
    raise _error(usage, round_name, ROUND, ("extends",), message)


def model_of(usage: str, round_name: str, stem: str) -> str | None:
    """Return the benchmark whose rules a benchmark takes over by ``like``, if any.

    Raises:
        RulebookError: the round has no such benchmark, or that one is like this one.
    """
    model: str | None = own(usage, round_name, stem).get("like")
    if model is None:
        return None
    if model in (stem, ROUND) or not _has_rules(usage, round_name, model):
        others = set(_stems(usage, round_name)) - {stem, ROUND}
        message = f"{stem} is like {model}, which has no rules{suggestion(model, others)}"
        raise _error(usage, round_name, stem, ("like",), message)
    followers, follower = set(), model
    while follower not in followers:
        if follower == stem:
            message = f"{stem} is like {model}, which is like {stem}"
            raise _error(usage, round_name, stem, ("like",), message)
        followers.add(follower)
        follower = own(usage, round_name, follower).get("like", "")
    return model


def _has_rules(usage: str, round_name: str, stem: str) -> bool:
    """Return whether a round, or one that it extends, has a file."""
    if own_file(usage, round_name, stem):
        return True
    parent = parent_of(usage, round_name)
    return parent is not None and _has_rules(usage, parent, stem)


def _stems(usage: str, round_name: str) -> Iterator[str]:
    """Yield the names of the files of a round and of those that it extends."""
    yield from own_stems(usage, round_name)
    if parent := parent_of(usage, round_name):
        yield from _stems(usage, parent)


def layers(usage: str, round_name: str, stem: str) -> Iterator[tuple[RuleFile, Document]]:
    """Yield the files that a document is made from, the topmost first, with what each says."""
    if file := own_file(usage, round_name, stem):
        yield file, own(usage, round_name, stem)
    if model := model_of(usage, round_name, stem):
        yield from layers(usage, round_name, model)
    if parent := parent_of(usage, round_name):
        yield from layers(usage, parent, stem)


def problem_of(usage: str, round_name: str, stem: str, steps: Steps, message: str) -> Problem:
    """Return a problem of the part of an inherited document that ``steps`` lead to.

    It is in the topmost file that has this part; where none has, at the top of the topmost file.
    """
    from mlperf_pkg.rulebook.strictyaml import problem_at  # noqa: PLC0415 - only a mistake needs it

    files = list(layers(usage, round_name, stem))
    owners = [file for file, document in files if _has(document, steps[:2])]
    if owners:
        return problem_at(owners[0], steps, message)
    return Problem(files[0][0].shown, 1, message)


def _has(document: Any, steps: Steps) -> bool:
    for step in steps:
        if not isinstance(document, dict) or step not in document:
            return False
        document = document[step]
    return True


def _error(usage: str, round_name: str, stem: str, steps: Steps, message: str) -> RulebookError:
    from mlperf_pkg.rulebook.strictyaml import problem_at  # noqa: PLC0415 - only a mistake needs it

    file = own_file(usage, round_name, stem)
    assert file  # noqa: S101 - it says what is wrong
    return RulebookError(str(problem_at(file, steps, message)))
