"""The optional ``mlperf-pkg.yaml`` of a workspace: what the logs and systems do not say."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct, convert, field, to_builtins
from msgspec.json import decode

from mlperf_pkg.errors import UserError
from mlperf_pkg.findings import Waiver
from mlperf_pkg.infra.plain_yaml import compose, line_of, value
from mlperf_pkg.infra.resources import data_folder
from mlperf_pkg.infra.text import nearest

if TYPE_CHECKING:
    import yaml
    from jsonschema import ValidationError

CONFIG_NAME = "mlperf-pkg.yaml"
PRICES_NAME = Path("systems") / "prices.yaml"

_PRICE_LINE = (
    "a file of prices is YAML, with a line for each system, such as"
    ' dgx-a100: {price_usd: 300000, source: "quote of May 2026"}'
)
_MOST_MISTAKES = 20  # in a message
_TYPES = {"string": "text", "array": "a list", "object": "a mapping"}  # of JSON Schema, in YAML


def round_name(text: str) -> str:
    """Return the name of a round as the rulebook has it: 5.1, also for v5.1 and 5.1.0.

    Any other text stays as it is, so that it is refused as the user wrote it.
    """
    named = re.fullmatch(r"v?([0-9]+\.[0-9]+)(\.0)?", text)
    return named[1] if named else text


class SystemConfig(Struct, frozen=True, omit_defaults=True):
    """The logs of one system: patterns of their paths, and values of ``submission_platform``."""

    logs: tuple[str, ...] = ()
    platforms: tuple[str, ...] = ()


class WaiverConfig(Struct, frozen=True):
    """A waiver for the findings of a code in the files that match ``path``; it is on ``line``."""

    code: str
    path: str
    waiver: Waiver
    line: int


class Price(Struct, frozen=True, omit_defaults=True):
    """The list price of a system in US dollars, for all nodes; ``source`` is where it was found.

    ``also`` lists other names of the system, in which ``*`` matches any text.
    """

    usd: float = field(name="price_usd")
    source: str
    date: str | None = None
    also: tuple[str, ...] = ()


class Config(Struct, frozen=True):
    """The contents of ``mlperf-pkg.yaml``; ``rules/config.schema.json`` describes each field.

    ``code`` maps each benchmark to the folders of its implementations, by their ids; an empty id
    is the name of the folder. ``extra_files`` maps paths in the submission to files of the
    workspace.
    """

    submitter: str | None = None
    round: str | None = None
    usage: str | None = None
    division: str | None = None
    organizations: tuple[str, ...] = ()
    systems: Mapping[str, SystemConfig] = field(default_factory=dict)
    code: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    extra_files: Mapping[str, str] = field(default_factory=dict)
    notes: Mapping[str, str] = field(default_factory=dict)
    prices: Mapping[str, Price] = field(default_factory=dict)
    leave_out: tuple[str, ...] = ()
    waivers: tuple[WaiverConfig, ...] = ()

    @property
    def code_folders(self) -> tuple[str, ...]:
        """The folders of code."""
        return tuple(folder for folders in self.code.values() for folder in folders.values())


def read_config(workspace: Path) -> Config:
    """Return the configuration of a workspace, with all defaults if there is no file.

    Raises:
        UserError: as ``read_config_file``.
    """
    path = workspace / CONFIG_NAME
    return read_config_file(path) if path.exists() else Config()


def read_config_file(path: Path) -> Config:
    """Return the configuration in a file.

    Raises:
        UserError: the file cannot be read, is not YAML or does not follow the schema. The message
            names every offending line.
    """
    root = compose(path)
    if root is None:
        return Config()
    contents = _contents(path, root, _schema())
    if "round" in contents:
        contents["round"] = round_name(contents["round"])
    for benchmark, folders in contents.get("code", {}).items():
        if isinstance(folders, str):
            contents["code"][benchmark] = {"": folders}
    contents["prices"] = _prices(contents.get("prices", {}))
    contents["waivers"] = [
        {**fields, "waiver": fields, "line": line_of(root, ["waivers", index])}
        for index, fields in enumerate(contents.get("waivers", ()))
    ]
    return convert(contents, Config)


def fields_of(config: Config) -> dict[str, Any]:
    """Return the fields of a configuration as its file has them; unset ones are empty."""
    # Not by msgspec: names of files may have lone surrogates.
    fields: dict[str, Any] = json.loads(json.dumps(to_builtins(config)))
    fields["code"] = {name: folders.get("", folders) for name, folders in fields["code"].items()}
    for price in fields["prices"].values():
        usd = Decimal(repr(price["price_usd"]))
        price["price_usd"] = f"{usd:f}".removesuffix(".0")  # never 1e+16, which is not accepted
    fields["waivers"] = [
        {"code": waived.code, "path": waived.path, **to_builtins(waived.waiver)}
        for waived in config.waivers
    ]
    return fields


def read_prices(path: Path) -> Mapping[str, Price]:
    """Return the list prices in a file, by system, in the form of ``prices`` of a configuration.

    Raises:
        UserError: as ``read_config_file``.
    """
    schema = _schema()
    of_prices = {**schema["properties"]["prices"], "$defs": schema["$defs"]}
    try:
        root = compose(path)
        if root is None:
            return {}
        return _prices(_contents(path, root, of_prices))
    except UserError as error:
        raise UserError(f"{error}\n{_PRICE_LINE}") from error


def shipped_prices() -> Mapping[str, Price]:
    """Return the list prices of this package, without the tests of their form: these are slow."""
    root = compose(data_folder("systems") / PRICES_NAME.name)
    return _prices(value(root)) if root else {}


def _contents(path: Path, root: yaml.Node, schema: dict[str, Any]) -> dict[str, Any]:
    contents: dict[str, Any] = value(root)
    errors = sorted(set(islice(_schema_errors(root, contents, schema), _MOST_MISTAKES)))
    if errors:
        raise UserError("\n".join(f"{path}:{line}: {message}" for line, message in errors))
    return contents


def _prices(contents: Mapping[str, dict[str, Any]]) -> dict[str, Price]:
    for fields in contents.values():
        fields["price_usd"] = float(fields["price_usd"])
    return convert(contents, dict[str, Price])


# ---- lines and schema ----------------------------------------------------------------------


def _schema() -> dict[str, Any]:
    data = (data_folder("rules") / "config.schema.json").read_bytes()
    return decode(data, type=dict[str, Any])


def _schema_errors(
    root: yaml.Node, contents: Any, schema: dict[str, Any]
) -> Iterator[tuple[int, str]]:
    from jsonschema import Draft202012Validator, FormatChecker

    for error in Draft202012Validator(schema, format_checker=FormatChecker()).iter_errors(contents):
        steps = list(error.absolute_path)
        if error.validator == "additionalProperties":
            keys = list(error.schema["properties"])
            for name in sorted(error.instance.keys() - keys):
                yield line_of(root, [*steps, name]), _unknown_key(name, keys)
        elif error.validator == "required":
            missing = [name for name in error.validator_value if name not in error.instance]
            yield line_of(root, steps), f"{_dotted(steps)} lacks {', '.join(missing)}"
        else:
            message = f"{_dotted(steps)} is {error.instance!r}; expected {_expected(error)}"
            yield line_of(root, steps), message


def _unknown_key(name: str, keys: Sequence[str]) -> str:
    similar = nearest(name, keys)
    hint = f"did you mean {similar!r}?" if similar else f"expected {', '.join(keys)}"
    return f"unknown key {name!r}; {hint}"


def _dotted(steps: Sequence[str | int]) -> str:
    return ".".join(map(str, steps)) or "the file"


def _expected(error: ValidationError) -> str:
    schema: Any = error.schema
    if error.validator == "oneOf":
        return str(schema["title"])
    if error.validator == "type":
        return _TYPES[schema["type"]]
    if error.validator == "enum":
        return " or ".join(schema["enum"])
    examples = schema.get("examples")
    if not examples:
        return "text that is not empty"
    return f"text such as {examples[0]}"
