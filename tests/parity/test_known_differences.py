"""Each row of ``docs/parity.md`` that is about logs; and the tests that it names exist."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from mlperf_logging.compliance_checker import mlp_compliance

from mlperf_pkg.findings import Basis, Verdict
from mlperf_pkg.infra.source import Source
from mlperf_pkg.run.model import LogFile, Run
from mlperf_pkg.run.reading import read_run
from tests.helpers.rule_logs import Choice, Log, passing_log, read, to_bytes
from tests.parity import incumbent

ROOT = Path(__file__).parents[2]
NONE: Choice = frozenset()


@pytest.fixture(autouse=True)
def cached() -> Iterator[None]:
    with incumbent.cached_rules():
        yield


def _official(log: Log | bytes, usage: str, name: str, folder: Path) -> incumbent.Official:
    file = folder / "result_0.txt"
    file.write_bytes(log if isinstance(log, bytes) else to_bytes(log))
    return incumbent.check(file, usage, f"{name}.0")


def _with(log: Log, key: str, **changes: Any) -> Log:
    return [{**record, **changes} if record["key"] == key else record for record in log]


def _errors(run: Run) -> set[tuple[str, Basis]]:
    return {(f.code, f.basis) for f in run.findings if f.severity == "error"}


def test_a_death_is_a_failure_with_its_reason(tmp_path: Path) -> None:
    log = passing_log("training", "2.0", "bert", "closed", NONE)
    log = _with(log, "eval_accuracy", value=None)
    assert "TypeError" in str(_official(log, "training", "2.0", tmp_path).crash)
    run = read(to_bytes(log), "training", "2.0")
    assert run.verdicts.official is Verdict.FAIL
    assert "TypeError" in str(run.crash)


def test_a_death_does_not_spill_into_the_next_log(tmp_path: Path) -> None:
    """The checker's queue of rule files is global: what a death leaves in it judges the next."""
    good = passing_log("training", "2.0", "bert", "closed", NONE)
    bad = _with(good, "submission_division", value="nowhere")
    file = tmp_path / "result_0.txt"
    file.write_bytes(to_bytes(good))
    mlp_compliance.enqueued_configs[:] = ["training_2.0.0/closed_ssd.yaml"]
    checker = mlp_compliance.make_checker("training", "2.0.0", quiet=True, werror=False)
    assert not checker.check_file(str(file), "training_2.0.0/common.yaml")
    assert _official(good, "training", "2.0", tmp_path).passes
    assert read(to_bytes(bad), "training", "2.0").crash
    assert not read(to_bytes(good), "training", "2.0").findings


def test_a_benchmark_called_common(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The checker enqueues the same rule file for ever, here nine times."""
    files = []

    def enqueue(file: str) -> None:
        files.append(file)
        if files.count(file) < 9:
            mlp_compliance.enqueued_configs.append(file)

    monkeypatch.setattr(mlp_compliance, "enqueue_config", enqueue)
    log = passing_log("training", "2.0", "bert", "closed", NONE)
    log = _with(log, "submission_benchmark", value="common")
    assert not _official(log, "training", "2.0", tmp_path).passes
    assert files.count("training_2.0.0/closed_common.yaml") == 9
    assert ("RUN119", Basis.BOTH) in _errors(read(to_bytes(log), "training", "2.0"))


@pytest.mark.parametrize(
    ("name", "benchmark", "crashes"), [("3.0", "gpt3", True), ("4.0", "llama2_70b_lora", False)]
)
def test_open_runs_without_a_rule_file(
    name: str, benchmark: str, crashes: bool, tmp_path: Path
) -> None:
    log = passing_log("training", name, "bert", "open", NONE)
    log = _with(log, "submission_benchmark", value=benchmark)
    official = _official(log, "training", name, tmp_path)
    run = read(to_bytes(log), "training", name)
    assert not official.passes
    assert ((official.crash is not None), (run.crash is not None)) == (crashes, crashes)
    assert ("RUN124", Basis.OFFICIAL) in _errors(run)


def test_two_records_on_one_line(tmp_path: Path) -> None:
    """The checker reads only the last; the rules see both."""
    lines = to_bytes(passing_log("training", "2.0", "bert", "closed", NONE)).splitlines(True)
    log = lines[0].rstrip() + b"".join(lines[1:])
    assert not _official(log, "training", "2.0", tmp_path).passes
    run = read_run(LogFile(Source("result_0.txt", log), "training", "2.0"))
    assert run.verdicts.official is Verdict.FAIL
    assert run.verdicts.rules is Verdict.PASS


# ---- findings ------------------------------------------------------------------------------

Change = Callable[[Log], Log]


def put(key: str, value: Any) -> Change:
    return lambda log: _with(log, key, value=value)


def drop(key: str) -> Change:
    return lambda log: [record for record in log if record["key"] != key]


def twice(key: str) -> Change:
    return lambda log: [copy for r in log for copy in ([r, r] if r["key"] == key else [r])]


def last(key: str) -> Change:
    """Before the last record."""
    return lambda log: [*drop(key)(log)[:-1], *(r for r in log if r["key"] == key), log[-1]]


def forty_minutes_to_initialise(log: Log) -> Log:
    stop = [record["key"] for record in log].index("init_stop")
    return [{**r, "time_ms": r["time_ms"] + 2_400_000 * (n >= stop)} for n, r in enumerate(log)]


def a_worse_evaluation(log: Log) -> Log:
    number = [record["key"] for record in log].index("eval_accuracy") + 1
    worse = {**log[number - 1], "value": 0.3, "metadata": {"epoch_num": 0.1}}
    return [*log[:number], worse, *log[number:]]


ROWS: tuple[tuple[str, Change, str], ...] = (
    # They fail officially; an error with the basis "official" is none by the rules.
    ("6.1 flux1 closed", last("global_batch_size"), "FLUX102 error official"),  # values so far
    (
        "5.0 llama31_405b closed",
        put("opt_base_learning_rate", 8.0000001e-05),
        "LLAMAL134 error official",
    ),
    ("4.0 gpt3 closed", forty_minutes_to_initialise, "RUN121 error official"),
    ("1.0 bert open", put("eval_accuracy", 1.1), "BERT202 error official"),
    ("6.0 gpt_oss_20b open", put("opt_name", 0.1), "OSS204 error official"),
    ("6.1 dlrmv4 open", put("eval_accuracy", 0.1), "DLRMV219 error official"),
    # The rulesets changed after these rounds.
    ("1.1 bert closed", drop("weights_initialization"), "BERT112 error official"),
    ("2.1 bert closed", drop("opt_lamb_epsilon"), "BERT113 error official"),
    # They pass officially. The rule file of SSD names CHECK twice, and YAML keeps the last.
    (
        "1.0 ssd closed",
        put("opt_learning_rate_decay_boundary_epochs", [41, 50]),
        "SSD118 warning rules",
    ),
    (
        "5.1 rgat closed",
        twice("run_start"),
        "RUN108 note advice, RUN151 error rules",
    ),  # of equal values
    ("5.1 rgat closed", twice("run_stop"), "RUN109 note advice, RUN152 error rules"),
    ("5.1 rgat closed", a_worse_evaluation, "RUN154 warning rules"),
    ("5.0 rgat closed", drop("submission_org"), "RUN101 warning advice"),
    ("5.1 llama2_70b_lora closed", put("lora_alpha", 16), "LORA113 warning rules"),
    ("1.0 rnnt closed", put("opt_gradient_clip_norm", float("inf")), "LOG106 note advice"),
)


@pytest.mark.parametrize(("kind", "change", "findings"), ROWS)
def test_findings(kind: str, change: Change, findings: str, tmp_path: Path) -> None:
    name, benchmark, division = kind.split()
    log = change(passing_log("training", name, benchmark, division, NONE))
    run = read(to_bytes(log), "training", name)
    assert {f"{f.code} {f.severity} {f.basis}" for f in run.findings} == {*findings.split(", ")}
    passes = "official" not in findings
    assert _official(log, "training", name, tmp_path).passes is passes
    assert run.verdicts.official is Verdict.of(not passes)
    assert run.verdicts.rules is Verdict.of("error rules" in findings)


def test_every_test_that_the_document_names_exists() -> None:
    text = (ROOT / "docs" / "parity.md").read_text("utf-8")
    named = re.findall(r"`(tests/[\w/]+\.py)(?:::(\w+))?`", text)
    assert len(named) > 15
    texts = ((name, (ROOT / file).read_text("utf-8")) for file, name in named)
    assert [name for name, code in texts if name and f"def {name}(" not in code] == []
