"""Jobs for GitHub, GitLab and Jenkins: their schemas accept them, their scripts do what they say."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import yaml
from junitparser import JUnitXml

from mlperf_pkg import __version__
from tests.helpers.ci import ACTION, DOCS, KIT, ROOT, needs, run, spoil
from tests.tools.owner import owner

CALLER = yaml.safe_load((KIT / "mlperf.yml").read_text("utf-8"))
REUSABLE = ROOT / ".github" / "workflows" / "mlperf.yml"
WORKFLOW = yaml.safe_load(REUSABLE.read_text("utf-8"))
INPUTS = WORKFLOW[True]["workflow_call"]["inputs"]  # "on" is a boolean of YAML
GITLAB = yaml.safe_load((KIT / "gitlab-ci.yml").read_text("utf-8"))["mlperf-pkg"]
JENKINS = (KIT / "Jenkinsfile").read_text("utf-8")


@pytest.mark.parametrize(
    ("schema", "files"),
    [
        ("vendor.github-actions", ["action.yml"]),
        (
            "vendor.github-workflows",
            [
                *(f"ci-templates/{name}.yml" for name in ("mlperf", "pages")),
                ".github/workflows/mlperf.yml",
            ],
        ),
        (
            "custom.github-workflows-require-timeout",
            ["ci-templates/pages.yml", ".github/workflows/mlperf.yml"],
        ),
        ("vendor.gitlab-ci", ["ci-templates/gitlab-ci.yml"]),
    ],
)
def test_schemas(schema: str, files: list[str]) -> None:
    done = run("check-jsonschema", "--builtin-schema", schema, *files, cwd=ROOT)
    assert done.returncode == 0, done.stdout


def test_versions_are_ours() -> None:
    """What is copied from here names the version that it was made for."""
    texts = [path.read_text("utf-8") for path in KIT.iterdir()]
    named = [
        version for text in (*texts, DOCS) for version in re.findall(r"\bv?0\.\d+\.\d+\b", text)
    ]
    pinned = (KIT / "constraints.txt").read_text("utf-8")
    ours = [version for version in named if f"=={version}" not in pinned]
    assert len(ours) > 5
    assert {version.removeprefix("v") for version in ours} == {__version__}


@pytest.mark.parametrize(
    "name", sorted(set(re.findall(r"`((?:ci-templates/|action\.|\.github/)[\w./-]+)`", DOCS)))
)
def test_the_docs_name_files_that_are_here(name: str) -> None:
    assert (ROOT / name).exists()


# ---- GitHub -------------------------------------------------------------------------------


def uses(file: Path) -> list[str]:
    """What a file uses, with the comment behind it."""
    return re.findall(r"^\s*(?:- )?uses: (.*)$", file.read_text("utf-8"), re.MULTILINE)


@pytest.mark.parametrize(
    "file", [ROOT / "action.yml", REUSABLE, KIT / "pages.yml"], ids=lambda file: file.name
)
def test_actions_are_pinned_by_commit(file: Path) -> None:
    """And the version is a comment, which tools that update pins read and write."""
    others = [action for action in uses(file) if not action.startswith("./")]
    assert others
    pinned = r"[\w-]+(/[\w-]+)+@[0-9a-f]{40}  # v\d+\.\d+\.\d+"
    assert [action for action in others if not re.fullmatch(pinned, action)] == []


WORKFLOWS = [*(ROOT / ".github" / "workflows").glob("*.yml"), KIT / "mlperf.yml", KIT / "pages.yml"]


@needs("zizmor")
def test_zizmor_finds_nothing() -> None:
    done = run(
        "zizmor", "--offline", "--persona=auditor", ROOT / "action.yml", *WORKFLOWS, cwd=ROOT
    )
    assert done.returncode == 0, done.stdout


@needs("actionlint")
def test_actionlint_finds_nothing() -> None:
    done = run("actionlint", *WORKFLOWS, cwd=ROOT)
    assert (done.returncode, done.stdout) == (0, "")


def test_the_reusable_workflow_fits_the_action() -> None:
    """It passes on every input that it has, and both know the same ones."""
    text = REUSABLE.read_text("utf-8")
    (step,) = [s for s in WORKFLOW["jobs"]["pre-submission"]["steps"] if s["uses"].startswith("./")]
    passed = {name: f"${{{{ inputs.{name} }}}}" for name in INPUTS if name != "runs-on"}
    assert step["with"] == passed
    assert passed.keys() <= ACTION["inputs"].keys()
    used = set(re.findall(r"steps\.mlperf\.outputs\.([\w-]+)", text))
    assert used
    assert used <= set(ACTION["outputs"])
    defaults = {name: str(INPUTS[name]["default"]).lower() for name in passed}
    assert defaults == {name: ACTION["inputs"][name]["default"] for name in passed}


def test_the_template_calls_the_reusable_workflow() -> None:
    job = CALLER["jobs"]["pre-submission"]
    path = job["uses"].removeprefix(f"{owner()}/mlperf-pkg/").partition("@")[0]
    assert ROOT / path == REUSABLE
    assert set(job["with"]) <= set(INPUTS)


@pytest.mark.parametrize("name", ["inputs", "outputs"])
def test_the_docs_name_what_the_action_has(name: str) -> None:
    title = {"inputs": "Input", "outputs": "Output"}[name]
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
    """Twice, as the workspace is kept."""
    if status:
        spoil(repository)
    (script,) = re.findall(r"sh '''\n(.*?)'''", JENKINS, re.DOTALL)
    environment = dict(re.findall(r"^\s+(MLPERF_\w+) = '(.*)'$", JENKINS, re.MULTILINE))
    for _ in range(2):
        done = run("sh", "-xe", "-c", script, cwd=repository, **environment)
        assert done.returncode == status, done.stdout
    (junit,) = re.findall(r"testResults: '(.*?)'", JENKINS)
    (sarif,) = re.findall(r"sarif\(pattern: '(.*?)'", JENKINS)
    assert bool(status) == bool(JUnitXml.fromfile(str(repository / junit)).failures)
    results = json.loads((repository / sarif).read_text("utf-8"))["runs"][0]["results"]
    assert bool(status) == any(result["level"] == "error" for result in results)


def test_jenkinsfile_is_balanced() -> None:
    code = re.sub(r"//.*|'''.*?'''|'.*?'", "", JENKINS, flags=re.DOTALL | re.NOFLAG)
    assert [code.count(bracket) for bracket in "{(["] == [code.count(bracket) for bracket in "})]"]
    assert '"' not in code  # Groovy would put values into such texts, and a shell would run them
