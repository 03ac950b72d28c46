"""Jobs for GitHub, GitLab and Jenkins: their schemas accept them, their scripts do what they
say.
"""

import json
import re
from pathlib import Path

import check_jsonschema
import pytest
import yaml
from click.testing import CliRunner
from junitparser import JUnitXml

from tests.helpers.ci import ACTION, DOCS, KIT, ROOT, needs, run, spoil

WORKFLOW = yaml.safe_load((KIT / "mlperf.yml").read_text("utf-8"))
OWN = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
WORKFLOWS = [*OWN, KIT / "mlperf.yml", KIT / "pages.yml"]
NAMES = [path.relative_to(ROOT).as_posix() for path in WORKFLOWS]
ISSUES = ".github/ISSUE_TEMPLATE"
FORMS = [f"{ISSUES}/{name}.yml" for name in ("bug", "idea", "wrong-finding")]
GITLAB = yaml.safe_load((KIT / "gitlab-ci.yml").read_text("utf-8"))["mlperf-pkg"]
JENKINS = (KIT / "Jenkinsfile").read_text("utf-8")


@pytest.mark.parametrize(
    ("schema", "files"),
    [
        ("vendor.github-actions", ["action.yml"]),
        ("vendor.github-workflows", NAMES),
        ("custom.github-workflows-require-timeout", NAMES),
        ("vendor.dependabot", [".github/dependabot.yml"]),
        ("vendor.github-issue-forms", FORMS),
        ("vendor.github-issue-config", [f"{ISSUES}/config.yml"]),
        ("vendor.gitlab-ci", ["ci-templates/gitlab-ci.yml"]),
    ],
)
def test_schemas(schema: str, files: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    done = CliRunner().invoke(check_jsonschema.main, ["--builtin-schema", schema, *files])
    assert done.exit_code == 0, done.output


def test_nothing_that_is_copied_has_a_placeholder() -> None:
    """No owner, address or version that a reader has to replace."""
    texts = [path.read_text("utf-8") for path in (*KIT.iterdir(), ROOT / "action.yml")]
    placeholder = r"\bOWNER\b|github\.com/\S*mlperf-pkg|mlperf-pkg[@:=]+v?\d"
    assert re.findall(placeholder, "\n".join((*texts, DOCS))) == []


def test_the_docs_name_files_that_are_here() -> None:
    names = set(re.findall(r"`((?:ci-templates/|action\.)[\w./-]+)`", DOCS))
    assert names
    assert [name for name in names if not (ROOT / name).exists()] == []


# ---- GitHub -------------------------------------------------------------------------------


@pytest.mark.parametrize("file", [ROOT / "action.yml", *WORKFLOWS], ids=lambda path: path.name)
def test_actions_are_pinned_by_commit(file: Path) -> None:
    """And the version is a comment, which tools that update pins read and write."""
    uses = re.findall(r"^\s*(?:- )?uses: (?!\./)(.*)$", file.read_text("utf-8"), re.MULTILINE)
    assert uses
    pinned = r"[\w-]+(/[\w-]+)+@[0-9a-f]{40} +# v\d+\.\d+\.\d+"
    assert [action for action in uses if not re.fullmatch(pinned, action)] == []


@needs("zizmor")
def test_zizmor_finds_nothing() -> None:
    files = (ROOT / "action.yml", *WORKFLOWS, ROOT / ".github" / "dependabot.yml")
    done = run("zizmor", "--offline", "--persona=auditor", *files, cwd=ROOT)
    assert done.returncode == 0, done.stdout


@needs("actionlint")
def test_actionlint_finds_nothing() -> None:
    done = run("actionlint", *WORKFLOWS, cwd=ROOT)
    assert (done.returncode, done.stdout) == (0, "")


def test_the_workflow_fits_the_action() -> None:
    """It gives inputs and reads outputs that the action has."""
    steps = WORKFLOW["jobs"]["pre-submission"]["steps"]
    (step,) = [step for step in steps if step["uses"].startswith("./")]
    assert step["with"].keys() <= ACTION["inputs"].keys()
    text = (KIT / "mlperf.yml").read_text("utf-8")
    used = set(re.findall(r"steps\.mlperf\.outputs\.([\w-]+)", text))
    assert used
    assert used <= set(ACTION["outputs"])


@pytest.mark.parametrize(("title", "name"), [("Input", "inputs"), ("Output", "outputs")])
def test_the_docs_name_what_the_action_has(title: str, name: str) -> None:
    table = re.search(rf"\| {title} \|.*?\n\n", DOCS, re.DOTALL)
    assert table
    assert re.findall(r"^\| `([\w-]+)`", table[0], re.MULTILINE) == list(ACTION[name])


# ---- GitLab and Jenkins -------------------------------------------------------------------


@pytest.mark.parametrize("status", [0, 1])
def test_gitlab(repository: Path, status: int) -> None:
    if status:
        spoil(repository)
    script = " && ".join(GITLAB["script"])
    done = run("bash", "-e", "-c", script, cwd=repository, **GITLAB["variables"])
    assert done.returncode == status, done.stdout
    reports = GITLAB["artifacts"]["reports"]
    issues = json.loads((repository / reports["codequality"]).read_text("utf-8"))
    failures = JUnitXml.fromfile(str(repository / reports["junit"])).failures
    assert bool(status) == bool(failures)
    assert bool(status) == any(issue["severity"] == "blocker" for issue in issues)


@pytest.mark.parametrize("status", [0, 1])
def test_jenkins(repository: Path, status: int) -> None:
    """In a workspace that has the reports of the job before."""
    if status:
        spoil(repository)
    (script,) = re.findall(r"sh '''\n(.*?)'''", JENKINS, re.DOTALL)
    environment = dict(re.findall(r"^\s+(MLPERF_\w+) = '(.*)'$", JENKINS, re.MULTILINE))
    (junit,) = re.findall(r"testResults: '(.*?)'", JENKINS)
    (sarif,) = re.findall(r"sarif\(pattern: '(.*?)'", JENKINS)
    for name in (junit, sarif):
        (repository / name).parent.mkdir(exist_ok=True)
        (repository / name).write_text("old")
    done = run("sh", "-xe", "-c", script, cwd=repository, **environment)
    assert done.returncode == status, done.stdout
    assert bool(status) == bool(JUnitXml.fromfile(str(repository / junit)).failures)
    results = json.loads((repository / sarif).read_text("utf-8"))["runs"][0]["results"]
    assert bool(status) == any(result["level"] == "error" for result in results)
