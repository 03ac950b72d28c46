"""Raw logs in a workspace: what is reported of their system and their submitter."""

from pathlib import Path

import pytest
import yaml

from mlperf_pkg.checker.check import check
from mlperf_pkg.checker.values import Options
from mlperf_pkg.config import CONFIG_NAME, Config, SystemConfig, fields_of, read_config_file
from mlperf_pkg.results.report import Report
from tests.helpers.logs import edited
from tests.helpers.raw_logs import LOGS, OTHER, OWN, RAW, a_system, saying
from tests.helpers.stored import compared
from tests.helpers.trees import simulated
from tests.helpers.workspaces import lay, numbered


def report(root: Path, *files: dict[str, bytes], argument: str = "logs") -> Report:
    return compared(check([str(lay(root, *files) / argument)], Options(jobs=1))).report


@pytest.mark.parametrize(
    ("files", "code", "text"),
    [
        ([OWN, RAW], None, ""),
        (
            [OTHER, RAW],
            "SET110",
            (
                'submission_platform "bow-pod16" fits no system description; systems'
                " of the closed division: bow-pod64"
            ),
        ),
        (
            [a_system("x", division="open"), RAW],
            "SET110",
            "submission_division is closed, which is not the division in ../systems/x.json",
        ),
        (
            [{"systems/bow-pod16.json": b"{"}, RAW],
            "SET110",
            "the system is unknown, as ../systems/bow-pod16.json cannot be read",
        ),
        (
            [a_system("bow-pod16", division="open"), RAW],
            "SET111",
            "the division is closed in the logs (submission_division), but open in"
            " ../systems/bow-pod16.json",
        ),
        (
            [OWN, OTHER, saying("submission_platform", "PLACEHOLDER")],
            "SET125",
            "it is unclear which system wrote these logs, because bow-pod16, bow-pod64 fit",
        ),
        (
            [OWN, saying("submission_org", "ACME")],
            "SET115",
            'submission_org is ACME; expected "Graphcore", the submitter in'
            " ../systems/bow-pod16.json",
        ),
        ([OWN, saying("submission_org", "ACME"), {CONFIG_NAME: b"organizations: [AC*]"}], None, ""),
        ([OWN, saying("submission_org", "SUBMISSION_ORG_PLACEHOLDER")], None, ""),
        (
            [
                OWN,
                OTHER,
                saying("submission_platform", "4xbow"),
                {CONFIG_NAME: b"systems: {bow-pod16: {logs: ['*']}}"},
            ],
            "SET142",
            (
                "the number at the beginning of submission_platform is 4 in the log; expected 1,"
                " as in ../systems/bow-pod16.json"
            ),
        ),
        ([OWN, OTHER, saying("submission_platform", "4xbow")], None, ""),
        (
            [{CONFIG_NAME: b"submitter: Graphcore"}, RAW],
            "SET110",
            "there is no system description of the closed division; expected",
        ),
    ],
)
def test_findings(
    tmp_path: Path, files: list[dict[str, bytes]], code: str | None, text: str
) -> None:
    errors = [f for f in report(tmp_path, *files).findings if f.is_error and f.set]
    assert [f.code for f in errors] == ([code] if code else [])
    assert not errors or errors[0].text.startswith(text)


@pytest.mark.parametrize("argument", [".", "logs", "logs/a", "logs/a/b/0.log"])
def test_the_workspace_is_found_from_within(tmp_path: Path, argument: str) -> None:
    logs = numbered(LOGS, "logs/a/b/{}.log")
    of_set = report(
        tmp_path,
        a_system("one"),
        logs,
        {CONFIG_NAME: b"systems: {one: {logs: [logs/a/*]}}"},
        argument=argument,
    ).result_sets[0]
    assert (of_set.system, of_set.system_by) == ("one", "a pattern in mlperf-pkg.yaml")


@pytest.mark.parametrize("name", ["systems", "systems/bow-pod16.json", "logs"])
def test_links_out_of_the_workspace_are_not_followed(tmp_path: Path, name: str) -> None:
    root = lay(
        tmp_path / "ws", RAW if name != "logs" else OWN, {"systems/x.json": b"{}", "a.log": LOGS[0]}
    )
    elsewhere = lay(tmp_path / "elsewhere", OWN, RAW)
    if name == "systems":
        (root / "systems/x.json").unlink()
        (root / "systems").rmdir()
    (root / name).symlink_to(elsewhere / name)
    linked = compared(check([str(root)], Options(jobs=1))).report
    rows = linked.result_sets
    assert "TREE102" in {finding.code for finding in linked.findings}
    expected = (1, "submission_platform") if name == "logs" else (5, None)
    assert [(row.runs_found, row.system_by) for row in rows] == [expected]


@pytest.mark.parametrize(
    ("folder", "system_by"), [("logs", "submission_platform"), ("results/bow-pod16/resnet", None)]
)
def test_a_submission_is_not_a_workspace(
    tmp_path: Path, folder: str, system_by: str | None
) -> None:
    results = numbered(LOGS, "results/bow-pod16/resnet/result_{}.txt")
    (row,) = report(tmp_path, OWN, results, RAW, argument=folder).result_sets
    assert (row.system, row.system_by) == ("bow-pod16", system_by)


def test_what_was_built_and_code_are_not_raw_logs(tmp_path: Path) -> None:
    files = {**numbered(LOGS, "runs/{}.log"), "code/a.log": LOGS[0], "submissions/b.log": LOGS[1]}
    config = {CONFIG_NAME: b"code: {resnet: code}"}
    rows = report(tmp_path, OWN, files, config, argument=".").result_sets
    assert [row.runs_found for row in rows] == [5]


TYPO = saying("submission_platform", "bow-pdo16")
LARGER = numbered(
    [edited(log, "global_batch_size", value=4096) for log in simulated(seed=8)], "logs/y{}.log"
)
PLACEHOLDER = saying("submission_platform", "PLACEHOLDER")


@pytest.mark.parametrize(
    ("files", "systems"),
    [
        pytest.param(
            [OWN, OTHER, TYPO],
            {"bow-pod16": SystemConfig(platforms=("bow-pdo16",))},
            id="a name that is almost the platform",
        ),
        pytest.param(
            [OTHER, RAW],
            {
                "bow-pod64 or another for resnet on bow-pod16": SystemConfig(
                    platforms=("bow-pod16",)
                )
            },
            id="another number in the name",
        ),
        pytest.param(
            [OWN, OTHER, PLACEHOLDER],
            {"bow-pod16 or bow-pod64 for resnet on PLACEHOLDER": SystemConfig(logs=("logs/*",))},
            id="no platform",
        ),
        pytest.param(
            [
                *(a_system(name) for name in ("one", "two", "three", "four")),
                {**RAW, **numbered([TYPO["logs/0.log"]], "logs/x[1]/r{}.log")},
                {CONFIG_NAME: b"systems: {one: {logs: ['logs/[0-2].log']}}"},
            ],
            {
                "one": SystemConfig(logs=("logs/[0-2].log",)),
                "four or three or two for resnet on bow-pod16": SystemConfig(
                    logs=("logs/3.log", "logs/4.log")
                ),
                "four or three or two for resnet on bow-pdo16": SystemConfig(
                    platforms=("bow-pdo16",)
                ),
            },
            id="a platform of logs that are assigned already",
        ),
        pytest.param(
            [a_system("a"), a_system("b"), RAW, LARGER],
            {
                "a or b for resnet on bow-pod16, batch size 3264": SystemConfig(
                    logs=tuple(f"logs/{number}.log" for number in range(5))
                ),
                "a or b for resnet on bow-pod16, batch size 4096": SystemConfig(logs=("logs/y*",)),
            },
            id="more runs than one system needs",
        ),
        pytest.param(
            [*map(a_system, ("a", "b", "c", "d")), RAW],
            {"SYSTEM for resnet on bow-pod16": SystemConfig(platforms=("bow-pod16",))},
            id="many systems",
        ),
    ],
)
def test_the_configuration_to_complete(
    tmp_path: Path, files: list[dict[str, bytes]], systems: dict[str, SystemConfig]
) -> None:
    """It is valid as it is, has all that the file has already, and matches all logs."""
    lay(tmp_path, *files)
    own = tmp_path / CONFIG_NAME
    before = own.read_text() if own.exists() else ""
    own.write_text(f"{before}\nround: '2.0'\nextra_files: {{LICENSE: LICENSE}}\n")
    own.write_text(compared(check([str(tmp_path)], Options(jobs=1))).report.configuration)
    config = read_config_file(own)
    expected = Config(round="2.0", extra_files={"LICENSE": "LICENSE"}, systems=systems)
    assert {**fields_of(config), "systems": {}} == {**fields_of(expected), "systems": {}}
    assert {**config.systems} == systems
    again = check([str(tmp_path)], Options(jobs=1)).report
    assert "CONF102" not in {finding.code for finding in again.findings}


@pytest.mark.parametrize(
    "files",
    [
        pytest.param([OWN, saying("submission_org", "Other: [x]")], id="organisation"),
        pytest.param([a_system("bow-pod16", division="open"), RAW], id="division"),
        pytest.param([{"systems/README": b""}, RAW], id="no description"),
    ],
)
def test_no_configuration_where_it_is_no_remedy(
    tmp_path: Path, files: list[dict[str, bytes]]
) -> None:
    assert report(tmp_path, *files).configuration == ""


def test_fields_are_those_of_the_file(tmp_path: Path) -> None:
    text = (
        "systems:\n  a:\n    logs:\n    - x\ncode:\n  bert: c\n  resnet:\n    one: d\nprices:\n"
        "  a:\n    price_usd: '5'\n    source: s\nwaivers:\n- code: SET101\n  path: logs\n"
        "  reason: r\n  approved_by: J\n  until: '2030-01-01'\n"
    )
    (tmp_path / CONFIG_NAME).write_text(text)
    fields = fields_of(read_config_file(tmp_path / CONFIG_NAME))
    assert {name: value for name, value in fields.items() if value} == yaml.safe_load(text)
