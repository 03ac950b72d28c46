"""The YAML files of the rulebook: found, read, and laid over those that they inherit from."""

import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

import msgspec

from mlperf_pkg.errors import RulebookError
from mlperf_pkg.infra.resources import data_folder, per_rulebook, rules_folders
from mlperf_pkg.rulebook.model import SECTIONS, is_round_name, version_of
from mlperf_pkg.rulebook.problems import Problem, RuleFile, Steps, suggestion

# ---- which files --------------------------------------------------------------------------

COMPILED = "compiled.msgpack"
"""The name of the file that ``rulebook.compile`` writes beside the YAML files."""

ROUND = "round"
"""The name of the file of a round, without ``.yaml``."""

Document: TypeAlias = dict[str, Any]


@per_rulebook
def usages() -> tuple[str, ...]:
    """Return the usages that the rulebook has, sorted: hpc and training."""
    files = _glob(f"*/*/{ROUND}.yaml")
    return tuple(sorted({f.parent.parent.name for f in files if is_round_name(f.parent.name)}))


@per_rulebook
def rounds(usage: str) -> tuple[str, ...]:
    """Return the rounds that the rulebook has for a usage, oldest first."""
    names = {path.parent.name for path in _glob(f"{usage}/*/{ROUND}.yaml")}
    return tuple(sorted(filter(is_round_name, names), key=version_of))


def every_round() -> list[tuple[str, str]]:
    """Return the usage and the name of every round."""
    return [(usage, name) for usage in usages() for name in rounds(usage)]


def own_file(usage: str, round_name: str, stem: str) -> RuleFile | None:
    """Return a file of a round; None where the round does not have it."""
    return next(rule_files(f"{usage}/{round_name}/{stem}.yaml"), None)


def own_stems(usage: str, round_name: str) -> list[str]:
    """Return the names of the files of a round, without ``.yaml``, sorted."""
    return sorted({path.stem for path in _glob(f"{usage}/{round_name}/*.yaml")})


def _glob(pattern: str) -> Iterator[Path]:
    for folder in rules_folders():
        yield from folder.glob(pattern)


def rule_files(name: str) -> Iterator[RuleFile]:
    """Yield the file of a name in each folder of rules that has it, the user's own first."""
    for folder in rules_folders():
        if os.path.isfile(f"{folder}/{name}"):  # noqa: PTH113 - most do not exist; Path is slower
            yield file_in(folder, name)


def file_in(folder: Path, name: str) -> RuleFile:
    """Return a file of a folder of rules, under the name that messages use."""
    if folder == data_folder("rules"):
        return RuleFile(folder / name, f"rules/{name}")
    here = Path.cwd()
    above = folder.relative_to(here) if folder.is_relative_to(here) else folder
    return RuleFile(folder / name, (above / name).as_posix())


# ---- what a file says ---------------------------------------------------------------------


def read(file: RuleFile) -> Document:
    """Return what a file says.

    It is taken from ``COMPILED`` where that has this very text, which is ten times faster; else it
    is validated.

    Raises:
        RulebookError: the file is not valid.
    """
    data = file.read()
    document = _compiled().get(data)
    if document is not None:
        with suppress(msgspec.DecodeError):  # it is damaged
            plain: Document = msgspec.msgpack.decode(document)
            return plain
    from mlperf_pkg.rulebook.validate import validated  # noqa: PLC0415 - slow to import

    return validated(file, data)


@cache
def _compiled() -> Mapping[bytes, msgspec.Raw]:
    """Return what the files of the package's rulebook say, by their bytes.

    Nothing where ``COMPILED`` is damaged, as by a disk that was full: ``doctor`` says so.
    """
    path = data_folder("rules") / COMPILED
    try:
        return msgspec.msgpack.decode(path.read_bytes(), type=dict[bytes, msgspec.Raw])
    except (OSError, msgspec.DecodeError):
        return {}


# ---- what a file says together with those that it inherits from ---------------------------

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
    merged: Document = {}
    parent = parent_of(usage, round_name)
    if parent is not None:
        merged.update(inherited(usage, parent, stem))
    document = dict(own(usage, round_name, stem))
    model = model_of(usage, round_name, stem)
    if model:
        _lay_over(merged, inherited(usage, round_name, model))
        del document["like"]
    _lay_over(merged, document)
    return merged


def _lay_over(below: Document, above: Document) -> None:
    for name, content in above.items():
        if name in SECTIONS:
            below[name] = _laid(below.get(name, {}), content)
        elif name == "sources":
            below[name] = _merged_sources(below.get(name, {}), content)
        elif name == "simulation":
            below[name] = _merged_simulations(below.get(name, {}), content)
        else:
            below[name] = content


def _laid(below: Document, above: Document) -> Document:
    """Return a mapping laid over another one, without what is now null."""
    return {name: part for name, part in {**below, **above}.items() if part is not None}


def _merged_sources(below: Document, above: Document) -> Document:
    """Return the keys of each source; a key has the source of the topmost file that names it."""
    keys_of_above: set[str] = set().union(*above.values())
    merged = {}
    for source in {**below, **above}:
        kept = [key for key in below.get(source, ()) if key not in keys_of_above]
        merged[source] = [*kept, *above.get(source, ())]
    return merged


def _merged_simulations(below: Document, above: Document) -> Document:
    """Return a section ``simulation`` laid over another one; keyed fields keep their other keys."""
    merged = dict(above)
    for name in _KEYED_FIELDS:
        if above.get(name) is not None:
            merged[name] = _laid(below.get(name, {}), above[name])
    return _laid(below, merged)


@per_rulebook
def parent_of(usage: str, round_name: str) -> str | None:
    """Return the earlier round that a round extends, None where it extends none.

    Raises:
        RulebookError: that round does not exist, or is not an earlier one.
    """
    parent: str | None = own(usage, round_name, ROUND).get("extends")
    earlier = [name for name in rounds(usage) if version_of(name) < version_of(round_name)]
    if parent is None or parent in earlier:
        return parent
    problem = "; expected an earlier round"
    if parent not in rounds(usage):
        problem = f", which does not exist{suggestion(parent, earlier)}"
    message = f"round {round_name} extends {parent}{problem}"
    raise _own_error(usage, round_name, ROUND, "extends", message)


def model_of(usage: str, round_name: str, stem: str) -> str | None:
    """Return the benchmark whose rules a benchmark takes over by ``like``, if any.

    Raises:
        RulebookError: the round has no such benchmark, or that one is like this one.
    """
    model: str | None = own(usage, round_name, stem).get("like")
    if model is None:
        return None
    ancestry = list(_ancestry(usage, round_name))
    if model in (stem, ROUND) or not any(own_file(usage, name, model) for name in ancestry):
        stems: set[str] = set().union(*[own_stems(usage, name) for name in ancestry])
        others = stems - {stem, ROUND}
        message = f"{stem} is like {model}, which has no rules{suggestion(model, others)}"
        raise _own_error(usage, round_name, stem, "like", message)
    followers = set()
    follower = model
    while follower not in followers:
        if follower == stem:
            message = f"{stem} is like {model}, which is like {stem}"
            raise _own_error(usage, round_name, stem, "like", message)
        followers.add(follower)
        follower = own(usage, round_name, follower).get("like", "")
    return model


def _ancestry(usage: str, round_name: str | None) -> Iterator[str]:
    """Yield a round and those that it extends, directly or not."""
    while round_name is not None:
        yield round_name
        round_name = parent_of(usage, round_name)


def layers(usage: str, round_name: str, stem: str) -> Iterator[tuple[RuleFile, Document]]:
    """Yield the files that a document is made from, the topmost first, with what each says."""
    file = own_file(usage, round_name, stem)
    if file:
        yield file, own(usage, round_name, stem)
    model = model_of(usage, round_name, stem)
    if model:
        yield from layers(usage, round_name, model)
    parent = parent_of(usage, round_name)
    if parent:
        yield from layers(usage, parent, stem)


def problem_of(usage: str, round_name: str, stem: str, steps: Steps, message: str) -> Problem:
    """Return a problem of the part of an inherited document that ``steps`` lead to.

    It is in the topmost file that has this part; where none has, at the top of the topmost file.
    """
    from mlperf_pkg.rulebook.validate import problem_at  # noqa: PLC0415 - only a mistake needs it

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


def error_of(usage: str, round_name: str, stem: str, steps: Steps, message: str) -> RulebookError:
    """Return an error about a part of an inherited document; see ``problem_of``."""
    return RulebookError(str(problem_of(usage, round_name, stem, steps, message)))


def _own_error(usage: str, round_name: str, stem: str, step: str, message: str) -> RulebookError:
    """Return an error about a part of a file from which nothing can be inherited."""
    from mlperf_pkg.rulebook.validate import problem_at  # noqa: PLC0415 - only a mistake needs it

    file = own_file(usage, round_name, stem)
    assert file  # noqa: S101 - it says what is wrong
    return RulebookError(str(problem_at(file, (step,), message)))
