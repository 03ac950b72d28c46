"""What ``mlperf-pkg.yaml`` may say, and what is refused, with its line."""

import re
from pathlib import Path

import pytest

from mlperf_pkg.config import (
    CONFIG_NAME,
    Config,
    SystemConfig,
    WaiverConfig,
    fields_of,
    read_config,
    round_name,
)
from mlperf_pkg.errors import UserError
from mlperf_pkg.findings import Waiver

EVERYTHING = """\
submitter: Graphcore
systems:
  bow-pod16: {logs: ["logs/pod16/*", 'logs/x[12].log'], platforms: [POD16]}
  bow-pod64: {}
code: {bert: code/bert}
leave_out: [bow-pod64/bert]
waivers:
  - {path: "results/*/bert", reason: agreed, approved_by: Jane, until: 2026-12-31,
     code: SET107}
"""


def write(folder: Path, text: str) -> Path:
    (folder / CONFIG_NAME).write_text(text, "utf-8")
    return folder


def test_everything(tmp_path: Path) -> None:
    assert read_config(write(tmp_path, EVERYTHING)) == Config(
        submitter="Graphcore",
        systems={
            "bow-pod16": SystemConfig(("logs/pod16/*", "logs/x[12].log"), ("POD16",)),
            "bow-pod64": SystemConfig(),
        },
        code={"bert": {"": "code/bert"}},
        leave_out=("bow-pod64/bert",),
        waivers=(
            WaiverConfig(
                "SET107", "results/*/bert", Waiver("agreed", "Jane", "2026-12-31"), line=8
            ),
        ),
    )


def test_nothing(tmp_path: Path) -> None:
    assert read_config(tmp_path) == Config()
    assert [
        text
        for text in ["", "# nothing yet\n", "{}", "---\n"]
        if read_config(write(tmp_path, text)) != Config()
    ] == []


def test_names_of_files_need_not_be_text(tmp_path: Path) -> None:
    config = read_config(write(tmp_path, 'systems: {a: {logs: ["logs/\\udcff/*"]}}'))
    assert fields_of(config)["systems"]["a"]["logs"] == ["logs/\udcff/*"]


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("5.1", "5.1"),
        ("v5.0.0", "5.0"),
        ("v", "v"),
        ("", ""),
        ("5.1,5.0", "5.1,5.0"),
        ("v5.1.1", "v5.1.1"),
    ],
)
def test_names_of_rounds(text: str, name: str) -> None:
    assert round_name(text) == name


@pytest.mark.parametrize(
    "price", ["149000", "149000.5", "1.1", "12345678901234.56", f"1{'0' * 14}", "9" * 15]
)
def test_prices_are_written_as_they_are_read(price: str, tmp_path: Path) -> None:
    config = read_config(write(tmp_path, f"prices: {{a: {{price_usd: {price}, source: b}}}}"))
    assert fields_of(config)["prices"]["a"]["price_usd"] == price


@pytest.mark.parametrize(
    ("text", "config"),
    [
        ("submitter: 1e3", Config(submitter="1e3")),
        ("round: 1.10", Config(round="1.10")),
        ("round: 5.1.0", Config(round="5.1")),
        ("round: v4.0.0", Config(round="4.0")),
        ("code: {2024: 1.0}", Config(code={"2024": {"": "1.0"}})),
    ],
)
def test_scalars_are_texts(text: str, config: Config, tmp_path: Path) -> None:
    assert read_config(write(tmp_path, text)) == config


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("round: 2.0\nsubmiter: X", "2: unknown key 'submiter'; did you mean 'submitter'?"),
        ("color: red", "1: unknown key 'color'; expected submitter, round, usage, division"),
        ("systems:\n  a:\n    platform: y", "3: unknown key 'platform'; did you mean 'platforms'?"),
        ("round: 5.1.2", "1: round is '5.1.2'; expected text such as 2.0"),
        ("usage: inference", "1: usage is 'inference'; expected training or hpc"),
        ("submitter:", "1: submitter is ''; expected text that is not empty"),
        ("\nsubmitter: [A, B]", "2: submitter is ['A', 'B']; expected text"),
        ("systems:\n  a:", "2: systems.a is ''; expected a mapping"),
        ("systems:\n  a:\n    logs: x*", "3: systems.a.logs is 'x*'; expected a list"),
        ("leave_out:\n- a/b\n- a", "3: leave_out.1 is 'a'; expected text such as dgx-a100-640gb/"),
        ("waivers:\n- code: A1\n  path: x", "2: waivers.0 lacks reason, approved_by, until"),
        (
            "waivers:\n- {code: A, path: x, reason: y, approved_by: z, until: 2026-02-30}",
            "2: waivers.0.until is '2026-02-30'; expected text such as 2026-12-31",
        ),
        (
            f"prices:\n  a: {{price_usd: 1{'0' * 308}, source: b}}",
            f"2: prices.a.price_usd is '1{'0' * 308}'; expected text such as 149000",
        ),
        ("- a", "1: the file is ['a']; expected a mapping"),
        ("a: b: c", "1: mapping values are not allowed here"),
        ("round: 2.0\nround: 2.1", "2: the key 'round' is repeated"),
        ("leave_out: [{a: b, a: c}]", "1: the key 'a' is repeated"),
        ("? [a]\n: b", "1: unknown key '?'"),
        ("code: [", "1: "),
    ],
)
def test_refused(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(UserError) as caught:
        read_config(write(tmp_path, text))
    assert str(caught.value).startswith(f"{tmp_path / CONFIG_NAME}:{message}")


def test_every_error_names_its_line(tmp_path: Path) -> None:
    with pytest.raises(UserError) as caught:
        read_config(write(tmp_path, "usage: x\nround: y\nz: 1"))
    assert [line.split(":")[1] for line in str(caught.value).split("\n")] == ["1", "2", "3"]


def test_what_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / CONFIG_NAME).write_bytes(b"submitter: \xff")
    with pytest.raises(UserError, match="not YAML in UTF-8"):
        read_config(tmp_path)
    (tmp_path / CONFIG_NAME).unlink()
    (tmp_path / CONFIG_NAME).mkdir()
    with pytest.raises(UserError, match="cannot be read: Is a directory"):
        read_config(tmp_path)


DEEP_MAPPINGS = "\n".join(f"{' ' * level}a:" for level in range(100))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param(
            "round: 2.0\nleave_out:\n  - &a [*a]\n",
            ":3: found the alias *a; expected a value",
            id="alias",
        ),
        pytest.param(
            "notes:\n  " + "[" * 5000, ":2: nested deeper than 20 levels", id="deep lists"
        ),
        pytest.param(DEEP_MAPPINGS, ":20: nested deeper than 20", id="deep mappings"),
        pytest.param(
            "#" * (256 << 10) + "\n", ": larger than 256 KiB, the limit of a YAML file", id="large"
        ),
    ],
)
def test_limits(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=re.escape(f"{tmp_path / CONFIG_NAME}{message}")):
        read_config(write(tmp_path, text))


def test_many_mistakes_are_named_in_a_message_of_bounded_size(tmp_path: Path) -> None:
    with pytest.raises(UserError) as error:
        read_config(write(tmp_path, "\n".join(f"key{number}: 1" for number in range(2000))))
    assert len(str(error.value).splitlines()) == 20
