"""The optional ``mlperf-pkg.yaml`` of a workspace: what the logs and systems do not tell."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field

from mlperf_pkg.errors import UserError
from mlperf_pkg.findings import Waiver
from mlperf_pkg.infra.resources import data_folder
from mlperf_pkg.infra.text import nearest

if TYPE_CHECKING:
    import yaml
    from jsonschema import ValidationError

CONFIG_NAME = "mlperf-pkg.yaml"

# How the schema's types are called in YAML.
_KINDS = {"string": "a text", "array": "a list", "object": "a mapping"}


class SystemConfig(Struct, frozen=True):
    """The logs of one system: patterns of their paths, and the platforms that they name."""

    logs: tuple[str, ...] = ()
    platforms: tuple[str, ...] = ()


class WaiverConfig(Struct, frozen=True):
    """A waiver for the findings of a code in the files that a pattern names; on ``line``."""

    code: str
    path: str
    waiver: Waiver
    line: int


class Price(Struct, frozen=True):
    """A list price in US dollars, of all nodes together; ``source`` says where it stands.

    ``also`` are other names of the system, in which ``*`` is any text.
    """

    usd: float
    source: str
    date: str | None = None
    also: tuple[str, ...] = ()


class Config(Struct, frozen=True):
    """What ``mlperf-pkg.yaml`` says; ``rules/config.schema.json`` describes each field.

    ``code`` holds the folder of each implementation of a benchmark by its id; an empty id stands
    for the folder's own name.
    """

    submitter: str | None = None
    round: str | None = None
    usage: str | None = None
    division: str | None = None
    systems: Mapping[str, SystemConfig] = field(default_factory=dict)
    code: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    notes: Mapping[str, str] = field(default_factory=dict)
    prices: Mapping[str, Price] = field(default_factory=dict)
    leave_out: tuple[str, ...] = ()
    waivers: tuple[WaiverConfig, ...] = ()

    @property
    def code_folders(self) -> tuple[str, ...]:
        """Every folder of code."""
        return tuple(folder for each in self.code.values() for folder in each.values())


def read_config(workspace: Path) -> Config:
    """The configuration of a workspace; all defaults where it has none.

    Raises:
        UserError: as ``read_config_file``.
    """
    path = workspace / CONFIG_NAME
    return read_config_file(path) if path.exists() else Config()


def read_config_file(path: Path) -> Config:
    """The configuration in a file.

    Raises:
        UserError: the file cannot be read, is no YAML or does not follow the schema. The message
            names every offending line.
    """
    root = _compose(path)
    return Config() if root is None else _config(root, _checked(path, root, _schema()))


def read_prices(path: Path) -> Mapping[str, Price]:
    """The list prices in a file of what ``prices`` of the configuration holds, by system.

    Raises:
        UserError: as ``read_config_file``.
    """
    root = _compose(path)
    if root is None:
        return {}
    schema = _schema()
    return _prices(
        _checked(path, root, {**schema["properties"]["prices"], "$defs": schema["$defs"]})
    )


def _checked(path: Path, root: yaml.Node, schema: dict[str, Any]) -> dict[str, Any]:
    _refuse_twice(path, root)
    contents: dict[str, Any] = _plain(root)
    if wrong := sorted(set(_complaints(root, contents, schema))):
        raise UserError("\n".join(f"{path}:{line}: {message}" for line, message in wrong))
    return contents


def _config(root: yaml.Node, contents: dict[str, Any]) -> Config:
    systems = {
        system: SystemConfig(**{name: tuple(texts) for name, texts in given.items()})
        for system, given in contents.pop("systems", {}).items()
    }
    code = {
        benchmark: {"": given} if isinstance(given, str) else given
        for benchmark, given in contents.pop("code", {}).items()
    }
    prices = _prices(contents.pop("prices", {}))
    leave_out = tuple(contents.pop("leave_out", ()))
    waivers = tuple(
        WaiverConfig(each.pop("code"), each.pop("path"), Waiver(**each), line)
        for number, each in enumerate(contents.pop("waivers", ()))
        for line in [_line(root, ["waivers", number])]
    )
    return Config(
        systems=systems,
        code=code,
        prices=prices,
        leave_out=leave_out,
        waivers=waivers,
        **contents,
    )


def _prices(contents: Mapping[str, dict[str, Any]]) -> dict[str, Price]:
    return {
        system: Price(float(given["price_usd"]), given["source"], given.get("date"), also)
        for system, given in contents.items()
        for also in [tuple(given.get("also", ()))]
    }


# ---- YAML ---------------------------------------------------------------------------------


def _compose(path: Path) -> yaml.Node | None:
    import yaml  # noqa: PLC0415 - slow to import, and most folders have no configuration

    try:
        node: yaml.Node | None = yaml.compose(path.read_text("utf-8"), yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise UserError(f"{path}:{mark.line + 1 if mark else 1}: {error.problem}") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: no YAML in UTF-8: {error}") from error
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror}") from error
    return None if node is not None and node.value == "" else node  # nothing but "---"


def _kind(node: Any) -> str:
    """What a node is: ``mapping``, ``sequence`` or ``scalar``."""
    return str(node.id)


def _plain(node: yaml.Node) -> Any:
    """The value of a node, every scalar as the text that was written."""
    if _kind(node) == "mapping":
        return {_plain_key(key): _plain(value) for key, value in node.value}
    if _kind(node) == "sequence":
        return [_plain(item) for item in node.value]
    return node.value


def _plain_key(node: yaml.Node) -> str:
    return node.value if _kind(node) == "scalar" else "?"


def _refuse_twice(path: Path, node: yaml.Node) -> None:
    if _kind(node) == "sequence":
        for item in node.value:
            _refuse_twice(path, item)
    elif _kind(node) == "mapping":
        seen: set[str] = set()
        for key, value in node.value:
            name = _plain_key(key)
            if name in seen:
                raise UserError(f"{path}:{key.start_mark.line + 1}: {name!r} stands twice")
            seen.add(name)
            _refuse_twice(path, value)


def _line(node: yaml.Node, steps: Sequence[str | int]) -> int:
    """The 1-based line of the member that ``steps`` lead to: its key's, in a mapping."""
    line: int = node.start_mark.line + 1
    for step in steps:
        if _kind(node) == "mapping":
            pair = next((pair for pair in node.value if _plain_key(pair[0]) == step), None)
            if pair is None:
                break
            line, node = pair[0].start_mark.line + 1, pair[1]
        else:
            node = node.value[step]
            line = node.start_mark.line + 1
    return line


# ---- schema -------------------------------------------------------------------------------


def _schema() -> dict[str, Any]:
    text = (data_folder("rules") / "config.schema.json").read_text("utf-8")
    schema: dict[str, Any] = json.loads(text)
    return schema


def _complaints(
    root: yaml.Node, contents: Any, schema: dict[str, Any]
) -> Iterator[tuple[int, str]]:
    from jsonschema import Draft202012Validator, FormatChecker  # noqa: PLC0415 - slow to import

    for error in Draft202012Validator(schema, format_checker=FormatChecker()).iter_errors(contents):
        steps = list(error.absolute_path)
        if error.validator == "additionalProperties":
            known = list(error.schema["properties"])
            for name in sorted(error.instance.keys() - known):
                yield _line(root, [*steps, name]), _unknown(name, known)
        elif error.validator == "required":
            lacking = [name for name in error.validator_value if name not in error.instance]
            yield _line(root, steps), f"{_where(steps)} lacks {', '.join(lacking)}"
        else:
            yield _line(root, steps), _complaint(steps, error)


def _unknown(name: str, known: Sequence[str]) -> str:
    close = nearest(name, known)
    meant = f"did you mean {close!r}?" if close else f"known are {', '.join(known)}"
    return f"unknown key {name!r}: {meant}"


def _complaint(steps: Sequence[str | int], error: ValidationError) -> str:
    return f"{_where(steps)} is {error.instance!r}, needed {_needed(error)}"


def _where(steps: Sequence[str | int]) -> str:
    return ".".join(map(str, steps)) or "the file"


def _needed(error: ValidationError) -> str:
    schema: Any = error.schema
    if error.validator == "oneOf":
        return str(schema["title"])
    if error.validator == "type":
        return _KINDS[schema["type"]]
    if error.validator == "enum":
        return " or ".join(schema["enum"])
    examples = schema.get("examples")
    return f"a text such as {examples[0]}" if examples else "a text that is not empty"
