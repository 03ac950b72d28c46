"""The Python API: its signatures, what it imports and when, its tables and its errors."""

import ast
import gzip
import inspect
import json
import re
import subprocess
import sys
import textwrap
from datetime import datetime
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import mlperf_pkg
from mlperf_pkg import UserError, Verdict, Verdicts, check, published_results, read_log
from mlperf_pkg.commands.export.schema import TABLES as EXPORTED
from mlperf_pkg.findings import Waiver
from tests.helpers import reports
from tests.helpers.console import DOCS
from tests.helpers.program import call
from tests.helpers.workspaces import RESNET, lay, resnet_workspace

PAGE = (DOCS / "public.md").read_text("utf-8")
(STUBS,) = (text for text in re.findall(r"```python\n(.*?)```", PAGE, re.S) if "def check" in text)
DEFINED = [
    node for node in ast.parse(STUBS).body if isinstance(node, ast.ClassDef | ast.FunctionDef)
]
FAIL = Verdicts(Verdict.FAIL, Verdict.FAIL)
WAIVERS = "waivers:\n- {code: SET109, path: '*', reason: r, approved_by: a, until: 2100-01-01}\n"


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """One result set of five logs, in the current folder."""
    monkeypatch.chdir(tmp_path)
    return resnet_workspace(tmp_path)


# ---- names --------------------------------------------------------------------------------


def signature(function: ast.FunctionDef) -> str:
    returned = ast.unparse(function.returns or ast.Constant(None))
    return f"{function.name}({ast.unparse(function.args)}) -> {returned}"


def source(of: Any) -> ast.stmt:
    return ast.parse(textwrap.dedent(inspect.getsource(of))).body[0]


def fields(of: ast.ClassDef) -> list[tuple[str, str]]:
    annotated = [node for node in of.body if isinstance(node, ast.AnnAssign)]
    return [(ast.unparse(node.target), ast.unparse(node.annotation)) for node in annotated]


def methods(of: ast.ClassDef) -> set[str]:
    return {signature(node) for node in of.body if isinstance(node, ast.FunctionDef)}


@pytest.mark.parametrize("stub", DEFINED)
def test_signatures_are_those_of_the_page(stub: Any) -> None:
    public = source(getattr(mlperf_pkg, stub.name))
    if isinstance(stub, ast.FunctionDef):
        assert isinstance(public, ast.FunctionDef)
        assert signature(public) == signature(stub)
    else:
        assert isinstance(public, ast.ClassDef)
        assert [field for field in fields(stub) if field not in fields(public)] == []
        assert methods(stub) <= methods(public)


def test_the_page_has_every_name() -> None:
    stubs = {stub.name for stub in DEFINED}
    assert {name for name in mlperf_pkg.__all__ if f"`{name}`" not in PAGE} <= {
        *stubs,
        "__version__",
    }
    assert stubs <= set(mlperf_pkg.__all__)


def test_names_are_completed() -> None:
    """Also those that nothing has imported yet."""
    assert dir(mlperf_pkg) == sorted(mlperf_pkg.__all__)


def test_what_a_prompt_shows(workspace: Path) -> None:
    """One line, however many findings and records there are."""
    report = repr(check(workspace / "logs"))
    assert re.fullmatch(
        r"<Report: training \S+; official \w+, rules \w+; .*, findings \d+>", report
    )
    log = repr(read_log(next((workspace / "logs").rglob("*.*"))))
    assert re.fullmatch(r"<Log: \S+; training .*; official \w+, rules \w+; records \d+, .*>", log)


def test_no_other_name_exists() -> None:
    """Also to mypy, which reports an ignored error that is none."""
    with pytest.raises(AttributeError, match="no attribute 'chek'"):
        _ = mlperf_pkg.chek  # type: ignore[attr-defined]
    assert Path(mlperf_pkg.__file__).with_name("py.typed").is_file()


@pytest.mark.parametrize(
    ("names", "modules"),
    [
        ("check, read_log, published_results", {"mlperf_pkg"}),
        ("UserError", {"mlperf_pkg", "mlperf_pkg.errors"}),
    ],
)
def test_nothing_is_imported_before_it_is_used(names: str, modules: set[str]) -> None:
    code = (
        "import sys; old = {*sys.modules};"
        f" import mlperf_pkg; from mlperf_pkg import {names}; print(*{{*sys.modules}} - old)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    imported = {*done.stdout.split()}
    assert {name for name in imported if name.startswith("mlperf_pkg")} == modules
    assert not {"msgspec", "pandas", "typing", "click"} & imported


def test_a_check_does_not_import_pandas(workspace: Path) -> None:
    code = (
        "import sys, mlperf_pkg; mlperf_pkg.check('logs').to_dict();"
        " print('pandas' in sys.modules, 'click' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False False\n"


# ---- checks -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "parameters"),
    [
        ([], {}),
        (["--round", "v2.0"], {"round": "v2.0"}),
        (["--round", "2.0"], {"round": 2.0}),  # as one writes it in a notebook
        (["--partial"], {"partial": True}),
        (["--config", "other.yaml"], {"config": Path("other.yaml")}),
        (["--jobs", "2"], {"jobs": 2}),
    ],
)
def test_the_report_is_that_of_the_command(
    options: list[str], parameters: dict[str, Any], workspace: Path
) -> None:
    lay(workspace, {"mlperf-pkg.yaml": b"round: '2.0'\n", "other.yaml": b"round: '1.1'\n"})
    (workspace / "logs" / "1.log").unlink()  # too few runs
    printed = json.loads(call("check", "logs", "--format", "json", *options).stdout)
    assert check(Path("logs"), **parameters).to_dict() == printed
    assert printed["findings"]


def test_waivers_inside_an_input(workspace: Path) -> None:
    (workspace / "mlperf-pkg.yaml").write_text(WAIVERS, "utf-8")
    with pytest.warns(UserWarning, match=r"inside the input \., so its waivers are not") as notes:
        check(".")
    assert notes[0].filename == __file__


FINDING = [
    "code",
    "message",
    "path",
    "line",
    "severity",
    "basis",
    "found",
    "expected",
    "hint",
    "source",
    "waiver_reason",
    "waiver_approved_by",
    "waiver_until",
    "subject",
    "runs",
    "of_runs",
    "set",
    "id",
    "cause",
]
RUN = [
    "path",
    "set",
    "verdict_official",
    "verdict_rules",
    "benchmark",
    "division",
    "round",
    "minutes",
    "official_minutes",
    "status",
    "records",
    "samples_to_converge",
    "dropped",
    "usage",
    "start",
    "submitter",
    "system",
    "batch_size",
    "accelerators",
    "energy_joules",
    "convergence_unit",
]
SYSTEMS = [
    "id",
    "path",
    "submitter",
    "division",
    "status",
    "accelerators",
    "verdict_official",
    "verdict_rules",
]
RCP = [
    "official_pass",
    "message",
    "normalization",
    "bypassed",
    "batch_size",
    "mean",
    "minimum",
    "explanation",
    "margin_percent",
    "no_limit_reason",
]
SETS = [
    "id",
    "path",
    "submitter",
    "system",
    "benchmark",
    "division",
    "usage",
    "round",
    "verdict_official",
    "verdict_rules",
    "runs_found",
    "runs_required",
    "score_minutes",
    "unscaled_minutes",
    "scaling_factor",
    "official_minutes",
    "score_note",
    *(f"rcp_{name}" for name in RCP),
    "seeds_official_pass",
    "energy_joules",
    "scaling",
    "number_of_models",
    "instance_scale",
    "system_by",
    "judged",
    "energy_note",
    "companies",
]
TABLES = {
    "result_sets": (SETS, 1),
    "runs": (RUN, 5),
    "systems": (SYSTEMS, 1),
    "findings": (FINDING, 0),
}


@pytest.mark.parametrize("table", TABLES)
def test_tables_of_a_report(table: str, workspace: Path) -> None:
    columns, rows = TABLES[table]
    frame = check("logs", round="2.0").to_pandas(table)
    assert (list(frame.columns), len(frame)) == (columns, rows)
    # A report without rows has the same columns, of the same types.
    none = reports.report().to_pandas(table)
    assert none.dtypes.equals(frame.dtypes)
    assert len(none) == 0


CELLS = [
    ("result_sets", reports.result_set(rcp=reports.rcp(mean=110.0)), "rcp_mean", 110.0),
    ("result_sets", reports.result_set(score_minutes=float("inf")), "score_minutes", None),
    ("result_sets", reports.result_set(instance_scale=2**63 - 1), "instance_scale", 2**63 - 1),
    ("result_sets", reports.result_set(instance_scale=2**63), "instance_scale", None),
    ("result_sets", reports.result_set(score_note="\ud800"), "score_note", r"\ud800"),
    ("runs", reports.run(samples_to_converge=10**400), "samples_to_converge", None),
    ("systems", reports.system(verdict=FAIL), "verdict_rules", "fail"),
    (
        "findings",
        reports.finding(message="{found}; expected {expected}", found=3, expected=4),
        "message",
        "3; expected 4",
    ),
    ("findings", reports.finding(found=[1, {"a": 2}]), "found", '[1, {"a": 2}]'),
    (
        "findings",
        reports.finding(waiver=Waiver("agreed", "Jane", "2026-12-31")),
        "waiver_until",
        "2026-12-31",
    ),
]


@pytest.mark.parametrize(("table", "row", "column", "value"), CELLS)
def test_cells(table: str, row: Any, column: str, value: str | float | None) -> None:
    (cell,) = reports.report(**{table: (row,)}).to_pandas(table)[column]
    assert pd.isna(cell) if value is None else cell == value


# ---- tables of an export, and of the record -------------------------------------------------


@pytest.mark.parametrize(("table", "rows"), [("settings", 11), ("evaluations", 47)])
def test_tables_of_an_export(table: str, rows: int, workspace: Path) -> None:
    """The columns of an export, in the types of data frames."""
    frame = check("logs", round="2.0").to_pandas(table)
    assert list(frame.columns) == [column.name for column in EXPORTED[table].columns]
    assert len(frame) == rows
    assert frame["usage"].dtype == "string"


def test_published_settings() -> None:
    frame = published_results("settings")
    assert list(frame.columns) == [column.name for column in EXPORTED["settings"].columns]
    assert frame["runs"].dtype == "Int64"
    with pytest.raises(UserError, match="the table is 'runs'; expected result_sets or settings"):
        published_results("runs")


def test_own_and_published_results_are_concatenated(workspace: Path) -> None:
    own = check("logs", round="2.0").to_pandas()
    published = published_results()
    both = pd.concat([published, own], ignore_index=True)
    common = [name for name in published.columns if name in own.columns]
    assert both[common].dtypes.equals(own[common].dtypes)
    assert not both.duplicated(["usage", "round", "id"]).any()
    numbers = both.loc[both["benchmark"] == "resnet", ["runs_found", "score_minutes"]]
    assert numbers["runs_found"].notna().all()
    assert {"usage", "round", "submitter", "system", "energy_joules", "scaling"} <= {*common}


def test_runs_have_their_start_and_system(workspace: Path) -> None:
    report = check("logs", round="2.0")
    start = report.runs[0].start
    frame = report.to_pandas("runs")
    assert frame["start"].dtype == "datetime64[ms, UTC]"
    assert frame["start"].dt.year.unique().tolist() == [2022]
    assert [*zip(frame["submitter"], frame["system"], strict=True)] == [
        (row.submitter, row.system) for row in report.result_sets for _ in range(row.runs_found)
    ]
    assert start is not None
    assert datetime.fromisoformat(report.to_dict()["runs"][0]["start"]) == start


def test_without_pandas(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(UserError, match=r"pip install 'pandas<"):
        check("logs", round="2.0").to_pandas()


# ---- logs ---------------------------------------------------------------------------------


def test_a_log(workspace: Path) -> None:
    log = read_log(workspace / "logs" / "0.log")
    (run,) = check("logs/0.log").runs
    names = ("benchmark", "division", "round", "status", "minutes", "official_minutes", "verdict")
    assert [getattr(log, name) for name in names] == [getattr(run, name) for name in names]
    assert (log.benchmark, log.status, log.findings) == ("resnet", "success", ())
    assert log.start_ms is not None
    assert log.stop_ms is not None
    assert (log.stop_ms - log.start_ms) / 60 / 1000 == log.minutes
    assert json.loads(log.hyperparameters["opt_name"]) == "lars"
    lines = RESNET[0].decode().splitlines()
    records = [json.loads(line.removeprefix(":::MLLOG ")) for line in lines]
    assert [(r.key, r.value, r.metadata, r.time_ms) for r in log.records] == [
        (r["key"], r["value"], r["metadata"], r["time_ms"]) for r in records
    ]
    assert [record.line for record in log.records] == [*range(1, len(lines) + 1)]
    evaluated = [record for record in log.records if record.key == "eval_accuracy"]
    assert [(e.line, e.value, e.metric, e.unit) for e in log.evaluations] == [
        (record.line, record.value, "", "epochs") for record in evaluated
    ]
    last = log.evaluations[-1]
    assert last.minutes == (evaluated[-1].time_ms - log.start_ms) / 60 / 1000
    assert last.position == evaluated[-1].metadata["epoch_num"]


@pytest.mark.parametrize(
    ("table", "row"),
    [("evaluations", mlperf_pkg.LogEvaluation), ("records", mlperf_pkg.LogRecord)],
)
def test_a_table_of_a_log(table: str, row: Any, workspace: Path) -> None:
    log = read_log("logs/0.log")
    frame = log.to_pandas(table)
    assert list(frame.columns) == list(row.__struct_fields__)
    assert len(frame) == len(getattr(log, table)) >= 10


def test_findings_and_evaluations_of_a_log(workspace: Path) -> None:
    log = read_log("logs/0.log")
    assert list(log.to_pandas("findings").columns) == FINDING
    assert log.to_pandas()["value"].max() == max(row.value for row in log.evaluations)


def test_a_log_with_odd_records(tmp_path: Path) -> None:
    odd = [
        r'{"time_ms": 1, "key": 7, "value": {"a": "\ud800"}, "metadata": "\ud800"}',
        '{"time_ms": 1e300, "key": "x", "value": NaN, "metadata": %s}' % ("[" * 200 + "]" * 200),
        '{"time_ms": 1, "key": "é", "value": "é", "metadata": %s}' % ("9" * 30),
        "not a record",
    ]
    path = tmp_path / "odd.log.gz"
    text = RESNET[0] + b"".join(f":::MLLOG {line}\n".encode() for line in odd)
    path.write_bytes(gzip.compress(b"a line of another program\n" + text))
    log = read_log(path)
    lines = RESNET[0].count(b"\n") + 1
    assert [record.line for record in log.records] == list(range(2, lines + 4))
    assert [record.key for record in log.records[-3:]] == ["7", "x", "Ã©"]
    table = log.to_pandas("records").tail(3)
    assert table["value"].tolist() == [r'{"a": "\\ud800"}', None, "é"]
    assert table["metadata"].tolist()[0] == r"\ud800"
    assert "LOG101" in log.to_pandas("findings")["code"].tolist()


# ---- the published results ----------------------------------------------------------------


def test_published_results() -> None:
    table = published_results()
    assert {"usage", "round", "submitter", "benchmark", "accelerators", "score_minutes"} <= {*table}
    bert = table.query(
        "round == '2.0' and submitter == 'Graphcore' and benchmark == 'bert' and accelerators == 16"
        " and division == 'closed' and framework.str.contains('PopART')"
    )
    assert bert["score_minutes"].round(2).tolist() == [20.65]
    assert set(table["scaling"].dropna()) == {"strong", "weak"}
    assert set(table.loc[table["scaling"].notna(), "usage"]) == {"hpc"}


# ---- errors -------------------------------------------------------------------------------

REPORT_TABLES = "systems, result_sets, runs, findings"


@pytest.mark.parametrize(
    ("paths", "options", "message"),
    [
        ([], {}, "no path: expected a log, a folder of logs or a submission"),
        (["log"], {}, r"log: no such file or folder; did you mean logs\?"),
        (["a\0b"], {}, r"'a\\x00b' is not a path"),
        pytest.param(["\ud800"], {}, r"'\\ud800' is not a path", id="surrogate"),
        pytest.param(["x" * 5000], {}, "x: cannot be read: File name too long", id="long"),
        (["logs"], {"usage": "x"}, "usage is 'x'; expected 'training' or 'hpc'"),
        (["logs"], {"jobs": 0}, "jobs is 0; expected 1 or more"),
        (["logs"], {"config": "no.yaml"}, "no.yaml: no such file"),
    ],
)
@pytest.mark.usefixtures("workspace")
def test_what_cannot_be_checked(paths: list[str], options: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        check(*paths, **options)


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("logs", "logs: 5 logs; expected one"),
        ("cut.log.gz", r"cut\.log\.gz: the log cannot be read: the gzip data is"),
    ],
)
@pytest.mark.usefixtures("workspace")
def test_what_is_not_a_log(path: str, message: str) -> None:
    Path("cut.log.gz").write_bytes(gzip.compress(RESNET[0])[:1000])
    with pytest.raises(UserError, match=message):
        read_log(path)


@pytest.mark.usefixtures("workspace")
def test_tables_that_a_report_or_a_log_does_not_have() -> None:
    with pytest.raises(UserError, match=f"the table is 'x'; expected {REPORT_TABLES}"):
        check("logs").to_pandas("x")
    with pytest.raises(UserError, match="the table is 'runs'; expected evalu"):
        read_log("logs/0.log").to_pandas("runs")
