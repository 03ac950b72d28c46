"""What a finding on raw logs advises works as printed: each remedy leads to a check that passes."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from mlperf_pkg.checker.check import check
from mlperf_pkg.checker.values import Options
from mlperf_pkg.config import CONFIG_NAME
from mlperf_pkg.findings import Finding, Verdict, Verdicts
from mlperf_pkg.results.report import Report
from tests.helpers.logs import edited
from tests.helpers.raw_logs import LOGS, OTHER, OWN, RAW, a_system, saying
from tests.helpers.workspaces import lay, logs_of, numbered

Files = dict[str, bytes]
PASS = Verdicts(Verdict.PASS, Verdict.PASS)
OPEN_LOG = {"logs/3.log": edited(LOGS[3], "submission_division", value="open")}
TYPO = saying("submission_platform", "bow-pdo16")
SAID = saying("submission_platform", "bow")
PRIMERGY = [a_system("primergy-mxnet"), a_system("primergy-pytorch")]
MISSPELT = saying("submission_org", "Grafcore")
FIRST, *REST = LOGS
MIXED = numbered([edited(FIRST, "submission_platform", value="bow-pod64"), *REST], "logs/x/{}.log")


def checked(root: Path) -> Report:
    return check([str(root / "logs")], Options(jobs=1)).report


def field(system: str, name: str, value: str) -> Callable[[Path], object]:
    """Correct a field of a description."""

    def correct(root: Path) -> None:
        path = root / "systems" / f"{system}.json"
        path.write_text(json.dumps({**json.loads(path.read_text()), name: value}))

    return correct


def copied(system: str, name: str, division: str) -> Callable[[Path], object]:
    """Copy a description with another division."""

    def copy(root: Path) -> None:
        fields = json.loads((root / "systems" / f"{system}.json").read_text())
        path = root / "systems" / f"{name}.json"
        path.write_text(json.dumps({**fields, "division": division}))

    return copy


def configured(text: str) -> Callable[[Path], object]:
    """Write a configuration."""
    return lambda root: (root / CONFIG_NAME).write_text(text)


def as_printed(key: str = "", choice: str = "") -> Callable[[Path], object]:
    """Save the configuration that the check prints, with a choice in place of a key."""

    def save(root: Path) -> None:
        text = checked(root).configuration
        assert key in text
        (root / CONFIG_NAME).write_text(text.replace(key, choice) if key else text)

    return save


@pytest.mark.parametrize(
    ("files", "code", "advice", "remedy"),
    [
        pytest.param(
            [OWN, MISSPELT],
            "SET115",
            "if Grafcore is right, write it as the submitter in ../systems/bow-pod16.json",
            field("bow-pod16", "submitter", "Grafcore"),
            id="the logs spell the submitter right",
        ),
        pytest.param(
            [OWN, MISSPELT],
            "SET115",
            "if Graphcore is right, list Grafcore under organizations in mlperf-pkg.yaml",
            configured("organizations: [Grafcore]"),
            id="the description spells the submitter right",
        ),
        pytest.param(
            [a_system("bow-pod16", division="open"), RAW],
            "SET111",
            'if the description is wrong, write "division": "closed" in it',
            field("bow-pod16", "division", "closed"),
            id="the division of the description",
        ),
        pytest.param(
            [a_system("bow-pod16", division="open"), RAW],
            "SET111",
            'write a copy of it with "division": "closed" beside it, as bow-pod16-closed.json',
            copied("bow-pod16", "bow-pod16-closed", "closed"),
            id="a description of each division",
        ),
        pytest.param(
            [a_system("box", division="open"), RAW],
            "SET110",
            "'mlperf-pkg system init --division closed -o systems/bow-pod16.json' in the workspace",
            copied("box", "bow-pod16", "closed"),
            id="a description of another division, unlike in name",
        ),
        pytest.param(
            [OWN, {**RAW, **OPEN_LOG}],
            "SET111",
            "if submission_division is wrong, correct it in the code of the run and run again",
            lambda root: lay(root, RAW),
            id="one log of another division",
        ),
        pytest.param(
            [OWN, OTHER, TYPO],
            "SET110",
            'add the line \'systems: {"bow-pod16": {platforms: ["bow-pdo16"]}}\' if it has no such',
            configured('systems: {"bow-pod16": {platforms: ["bow-pdo16"]}}'),
            id="a misspelt platform",
        ),
        pytest.param(
            [OWN, OTHER, TYPO, {CONFIG_NAME: b"systems: {bow-pod64: {platforms: [x]}}"}],
            "SET110",
            'list "bow-pdo16" under the platforms of bow-pod16, in the section "systems" of',
            configured(
                "systems: {bow-pod64: {platforms: [x]}, bow-pod16: {platforms: [bow-pdo16]}}"
            ),
            id="a misspelt platform, beside other systems",
        ),
        pytest.param([OWN, OTHER, TYPO], "SET110", "", as_printed(), id="the printed YAML"),
        pytest.param(
            [OWN, OTHER, SAID],
            "SET110",
            'if "bow" is one of these systems, list it under the platforms of that system in'
            " mlperf-pkg.yaml",
            as_printed("bow-pod16 or bow-pod64 for resnet on bow", "bow-pod16"),
            id="the printed YAML with a choice",
        ),
        pytest.param(
            [*PRIMERGY, saying("submission_platform", "PRIMERGY")],
            "SET110",
            "did you mean primergy-mxnet or primergy-pytorch? Then list these logs under the one"
            ' that wrote them, in the section "systems" of mlperf-pkg.yaml',
            as_printed(
                "primergy-mxnet or primergy-pytorch for resnet on PRIMERGY", "primergy-mxnet"
            ),
            id="names that begin with the platform",
        ),
        pytest.param(
            [OWN, a_system("other"), saying("submission_platform", "1xbox")],
            "SET125",
            'in mlperf-pkg.yaml, list each log under its system, in the section "systems"',
            as_printed("bow-pod16 or other for resnet on 1xbox", "bow-pod16"),
            id="two systems of these numbers",
        ),
    ],
)
def test_the_advice_is_followed(
    tmp_path: Path, files: list[Files], code: str, advice: str, remedy: Callable[[Path], object]
) -> None:
    root = lay(tmp_path, *files)
    finding = of_code(checked(root), code)
    assert advice in (finding.hint or "")
    remedy(root)
    report = checked(root)
    assert (report.verdict, [row.runs_found for row in report.result_sets]) == (PASS, [5])


def test_hint_and_printed_yaml_name_the_same_systems(tmp_path: Path) -> None:
    systems = [a_system(name, system_name="Bow-Pod16") for name in ("pt", "tf")]
    claimed = numbered(logs_of("pt", "bert"), "logs/bert/{}.log")
    report = checked(lay(tmp_path, *systems, claimed, saying("submission_platform", "POD16")))
    assert "did you mean pt or tf?" in (of_code(report, "SET110").hint or "")
    assert "pt or tf for resnet on POD16:" in report.configuration


def test_an_archive_of_a_workspace_is_unpacked(tmp_path: Path) -> None:
    root = lay(tmp_path / "ws", OWN, RAW)
    archive = shutil.make_archive(str(tmp_path / "packed"), "gztar", tmp_path, "ws")
    shutil.rmtree(root)
    finding = of_code(check([archive], Options(jobs=1)).report, "SET117")
    assert finding.text.endswith("as they are not looked for in an archive")
    advice = "copy the files from an archive into a folder, and check the folder that contains"
    assert (finding.hint or "").startswith(f"{advice} systems/; if there is none, run 'mlperf-pkg")
    shutil.unpack_archive(archive, tmp_path / "unpacked", filter="data")
    report = check([str(tmp_path / "unpacked/ws")], Options(jobs=1)).report
    assert (report.verdict, [row.system for row in report.result_sets]) == (PASS, ["bow-pod16"])


def of_code(report: Report, code: str) -> Finding:
    (finding,) = [finding for finding in report.findings if finding.code == code]
    return finding


def test_a_placeholder_that_was_left_is_not_taken_for_a_system(tmp_path: Path) -> None:
    root = lay(tmp_path, OWN, OTHER, SAID)
    as_printed()(root)
    report = checked(root)
    problem = of_code(report, "CONF101")
    assert problem.path == "../mlperf-pkg.yaml"
    assert problem.text.startswith(
        'under "systems:", the key "bow-pod16 or bow-pod64 for resnet on bow" is '
    )
    assert of_code(report, "SET110").is_error


UNMATCHED = [
    "the pattern 'pod' for the platforms of bow-pod16 matches the submission_platform of no log",
    "the pattern 'runs/*' for the logs of bow-pod16 matches no log",
]


@pytest.mark.parametrize(
    ("argument", "problems"),
    [
        pytest.param(".", UNMATCHED),
        pytest.param("logs", UNMATCHED),
        pytest.param("logs/0.log", []),
    ],
)
def test_a_pattern_without_a_match(tmp_path: Path, argument: str, problems: list[str]) -> None:
    config = b"systems: {bow-pod16: {logs: ['logs/*', 'runs/*'], platforms: [pod]}}"
    root = lay(tmp_path, OWN, RAW, {CONFIG_NAME: config})
    report = check([str(root / argument)], Options(jobs=1)).report
    texts = [finding.text for finding in report.findings if finding.code == "CONF102"]
    assert texts == problems


def test_odd_logs_are_named_with_where_they_belong(tmp_path: Path) -> None:
    config = b"systems: {bow-pod16: {logs: ['logs/*']}}"
    report = checked(lay(tmp_path, OWN, OTHER, MIXED, {CONFIG_NAME: config}))
    finding = of_code(report, "SET121")
    assert finding.text == (
        "the runs name different platforms: bow-pod16 (4 runs), bow-pod64 (0.log);"
        " expected one submission_platform in all runs"
    )
    path = "../systems/bow-pod64.json"
    assert finding.hint == f"bow-pod64 is described in {path}: move its logs to logs/bow-pod64/"


@pytest.mark.parametrize(
    ("names", "platform", "why"),
    [
        pytest.param(("pod16_mxnet", "other"), "1xpod16", "words", id="words of one name"),
        pytest.param(("pod16_mxnet", "pod16_tf"), "1xpod16", None, id="words of two names"),
        pytest.param(("pod16_mxnet", "other"), "1xpod1", None, id="part of a word"),
        pytest.param(("pod16_mxnet", "other"), "pod16", None, id="no numbers"),
        pytest.param(("pod16_mxnet", "other"), "4xpod16", None, id="other numbers"),
    ],
)
def test_whole_words_of_one_name(
    tmp_path: Path, names: tuple[str, str], platform: str, why: str | None
) -> None:
    systems = [a_system(name) for name in names]
    report = checked(lay(tmp_path, *systems, saying("submission_platform", platform)))
    (row,) = report.result_sets
    evidence = "the number of nodes or accelerators, and words of submission_platform (inferred)"
    assert (row.system_by, row.system) == ((evidence, names[0]) if why else (None, platform))
