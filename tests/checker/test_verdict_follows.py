"""The verdict by the rules follows the findings; that of the official checker is its own.

Each code is raised to an error by the rules, by a ``findings.yaml`` of the user, one at a time, in
a submission that has a finding of this code with its usual weight.
"""

import gzip
import os
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
import yaml

from mlperf_pkg.checker import judge
from mlperf_pkg.checker.check import check
from mlperf_pkg.checker.values import Options
from mlperf_pkg.checks import published
from mlperf_pkg.config import CONFIG_NAME, read_config_file
from mlperf_pkg.findings import Basis, Severity, Verdict
from mlperf_pkg.infra.resources import rules_read_from
from mlperf_pkg.published import results
from mlperf_pkg.results.report import Report
from mlperf_pkg.rulebook.load import codes
from tests.checks.traps import ALL, LORA
from tests.helpers import copies
from tests.helpers import published as publications
from tests.helpers.broken_runs import SET
from tests.helpers.logs import edited, joined, records, shortened, without
from tests.helpers.models import models, of_models
from tests.helpers.program import call
from tests.helpers.published import results_of
from tests.helpers.raw_logs import OTHER, OWN, RAW, saying
from tests.helpers.traps import (
    FILE,
    Trap,
    change,
    measured,
    nothing,
    other_log,
    rewrite,
    shifted,
    submission,
    system,
    value,
)
from tests.helpers.trees import (
    SYSTEM,
    simulated,
    simulated_models,
    write_set,
    write_submission,
    write_system,
)
from tests.helpers.workspaces import lay

YEAR_MS = 366 * 86_400_000
RECORD = b':::MLLOG {"key": "a", "value": 1, "time_ms": 1, "metadata": {}}'
LOG = f"{SET}/result_0.txt"

Paths = Iterable[Path]
Example = Callable[[Path, pytest.MonkeyPatch], tuple[Paths, Options]]


# ---- submissions with a finding of a code -------------------------------------------------


def of_trap(trap: Trap) -> Example:
    """A submission that a trap breaks."""

    def made(root: Path, _: pytest.MonkeyPatch) -> tuple[Paths, Options]:
        tree = submission(root / trap.submitter, trap)
        trap.change(tree)
        return [tree], Options(round=trap.round, jobs=1)

    return made


def broken(breaking: Callable[[Path], object], **more: Any) -> Example:
    """A good submission that is changed."""
    return of_trap(Trap("", breaking, "", "", **more))


def first_lines(text: bytes) -> Example:
    """A submission whose first log has another first line."""
    return broken(change(SET, lambda log: text + b"\n" + log, 0))


def described(edit: Callable[[bytes], bytes]) -> Example:
    """A submission with another text of its description."""
    return broken(lambda root: (root / FILE).write_bytes(edit((root / FILE).read_bytes())))


def with_file(path: str, content: bytes = b"x") -> Example:
    """A submission with one more file."""
    return broken(lambda root: (root / path).write_bytes(content))


def with_folder(path: str) -> Example:
    """A submission with one more folder."""
    return broken(lambda root: (root / path).mkdir(parents=True))


def with_power(breaking: Callable[[Path], object]) -> Example:
    """A submission with measured power, changed in the power logs of its first run."""
    folder = f"{SET}/power/result_0"
    return broken(lambda root: (measured()(root), breaking(root / folder)), round="4.0")


def of_round(by_ms: int) -> Example:
    """A submission in the folder of round 2.0 with later or earlier runs."""

    def made(root: Path, _: pytest.MonkeyPatch) -> tuple[Paths, Options]:
        tree = write_submission(root / "v2.0" / "Graphcore")
        rewrite(tree, lambda log: shifted(log, by_ms), *range(5))
        return [root / "v2.0"], Options(jobs=1)

    return made


def raw_logs(breaking: Callable[[Path], object]) -> Example:
    """A folder of raw logs beside nothing, changed."""

    def made(root: Path, _: pytest.MonkeyPatch) -> tuple[Paths, Options]:
        logs = write_set(root / "logs", simulated())
        breaking(logs)
        return [logs], Options(round="2.0", jobs=1)

    return made


def large_file(root: Path) -> None:
    (root / "big").touch()
    os.truncate(root / "big", (50 << 20) + 1)


def without_two(folder: Path) -> None:
    shutil.rmtree(folder)
    shutil.rmtree(folder.with_name("result_1"))


def undated(root: Path, _: pytest.MonkeyPatch) -> tuple[Paths, Options]:
    """Logs after the last round with their benchmark."""
    logs = tuple(shifted(log, 9 * YEAR_MS) for log in simulated())
    return [write_set(root / "logs", logs)], Options(jobs=1)


def link_out(logs: Path) -> None:
    write_set(logs.parent / "elsewhere", simulated(seed=8))
    (logs / "out").symlink_to(logs.parent / "elsewhere")


def in_folders(logs: Path) -> None:
    write_set(logs / "other", simulated(seed=8)[:2])


def crashed(logs: Path) -> None:
    first = simulated()[0].splitlines(keepends=True)[:5]
    (logs / "crash.log").write_bytes(b"".join(first))


def repeated(logs: Path) -> None:
    (logs / "stdout.log").write_bytes(simulated()[0])


def twice(root: Path, _: pytest.MonkeyPatch) -> tuple[Paths, Options]:
    logs = write_set(root / "logs", simulated())
    (root / "link").symlink_to(logs)
    return [logs, root / "link"], Options(round="2.0", jobs=1)


def in_workspace(*files: dict[str, bytes]) -> Example:
    return lambda root, _: ([lay(root, *files) / "logs"], Options(jobs=1))


def of_scalings(*scalings: str) -> Example:
    """An HPC submission with sets of these scalings."""

    def made(root: Path, _: pytest.MonkeyPatch) -> tuple[Paths, Options]:
        return [of_models(root, dict.fromkeys(scalings, models()))], Options("hpc", "2.0", jobs=1)

    return made


def of_longer_warmup(log: bytes) -> bytes:
    """A log that states a warm-up which took longer than the time since ``init_start``."""
    fields = records(log)
    keys = [record["key"] for record in fields]
    stop = fields[keys.index("init_stop")]
    seconds = (stop["time_ms"] - fields[keys.index("init_start")]["time_ms"]) / 1000
    statement = {**stop, "key": "tracked_stats", "value": {"warmup_time": 1.1 * seconds}}
    fields.insert(keys.index("init_stop"), statement)
    return joined(fields)


def of_one_seed(root: Path, _: pytest.MonkeyPatch) -> tuple[Paths, Options]:
    """Models of weak scaling, of which two have one seed."""
    logs = models()
    repeated = tuple(edited(log, "seed", value=5) for log in logs[:2])
    scalings = {"strong": logs, "weak": (*repeated, *logs[2:])}
    return [of_models(root, scalings)], Options("hpc", "2.0", jobs=1)


def pruned(root: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Paths, Options]:
    """An HPC submission with models that do not count."""
    paths, options = of_scalings("strong", "weak")(root, monkeypatch)
    folder = root / "Graphcore" / "results" / SYSTEM / "weak" / "deepcam"
    write_set(folder / "pruned_results", models(7)[5:])
    return paths, options


def without_start(folder: Path) -> None:
    """Leave out the start of the measurement of a node."""
    node = folder / "node_0.txt"
    node.write_bytes(without(node.read_bytes(), "power_measurement_start"))


def other_nodes(root: Path, _: pytest.MonkeyPatch) -> tuple[Paths, Options]:
    """Models of weak scaling, of which one trains on more nodes."""
    logs = simulated_models(10)
    tree = root / "ACME"
    write_system(tree / "systems", "box")
    last = edited(logs[9], "number_of_nodes", value=4)
    write_set(tree / "results/box/weak/cosmoflow", (*logs[:9], last))
    return [tree], Options("hpc", "3.0", jobs=1)


def same_seeds(root: Path, _: pytest.MonkeyPatch) -> tuple[Paths, Options]:
    """Two systems with different runs of the same seeds."""
    tree = write_submission(root / "Graphcore")
    logs: list[bytes] = []
    for log, other in zip(simulated(), simulated(seed=8), strict=True):
        (seed,) = (record["value"] for record in records(log) if record["key"] == "seed")
        logs.append(edited(other, "seed", value=seed))
    copies.system(tree, "pod64", tuple(logs))
    return [tree], Options(round="2.0", jobs=1)


def copied(root: Path, _: pytest.MonkeyPatch) -> tuple[Paths, Options]:
    return [copies.two_systems(root)], Options(round="2.0", jobs=1)


def resubmitted(root: Path, _: pytest.MonkeyPatch) -> tuple[Paths, Options]:
    return copies.two_rounds(root, system_name="x"), Options(jobs=1)


def unproven_preview(root: Path, _: pytest.MonkeyPatch) -> tuple[Paths, Options]:
    old = copies.submission(root, "2.0", 1.0, 8, status="preview", number_of_nodes="4")
    new = copies.submission(root, "2.1", 1.03, 8, number_of_nodes="4")
    return [new, old], Options(jobs=1)


def published_before(
    rounds: Callable[[Path], list[Path]], breaking: Callable[[Path], object] = nothing
) -> Example:
    """A round of runs that were published in the round before, changed."""

    def made(root: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Paths, Options]:
        first, second = rounds(root)
        publications.publish(monkeypatch, first)
        breaking(second)
        return [second], Options(jobs=1)

    return made


def unlike(*sets: Any, value: float | None = None) -> Example:
    """A submission that is compared with these published sets, of which all have a value."""

    def made(root: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Paths, Options]:
        settings = publications.settings(sets, value) if value else ()
        peers = results_of(*sets, settings=settings)
        monkeypatch.setattr(published, "usable_results", lambda: peers)
        write_submission(root / "v2.0/Graphcore")
        return [root / "v2.0"], Options(jobs=1)

    return made


def unreadable_results(root: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Paths, Options]:
    (root / "results.msgpack").write_bytes(b"x")
    monkeypatch.setattr(results, "PATH", root / "results.msgpack")
    return [write_submission(root / "Graphcore")], Options(round="2.0", jobs=1)


def waived(until: str) -> Example:
    """A waiver that matches nothing, or has ended."""

    def made(root: Path, _: pytest.MonkeyPatch) -> tuple[Paths, Options]:
        waiver = {"code": "SET101", "path": "x", "reason": "r", "approved_by": "J", "until": until}
        file = root / CONFIG_NAME
        file.write_text(yaml.safe_dump({"waivers": [waiver]}))
        options = Options(round="2.0", jobs=1, config=read_config_file(file))
        return [write_submission(root / "Graphcore")], options

    return made


EXAMPLES: dict[str, Example] = {
    "LOG101": first_lines(b':::MLLOG {"key": }'),
    "LOG102": first_lines(b':::MLLOG {"key": "a"}'),
    "LOG103": first_lines(RECORD + b" done"),
    "LOG104": first_lines(RECORD + RECORD),
    "LOG105": first_lines(RECORD.replace(b'"value"', b'"key": "b", "value"')),
    "LOG106": first_lines(RECORD.replace(b'"value": 1', b'"value": NaN')),
    "LOG107": first_lines(RECORD.replace(b'"value": 1', b'"value": "\xe9"')),
    "LOG108": first_lines(b":::MLLOGX {}"),
    "RUN168": first_lines(RECORD.replace(b'"a"', b'"eval_accuracy"').replace(b": 1", b": NaN", 1)),
    "LOG112": broken(change(SET, lambda log: gzip.compress(log, mtime=0), 0)),
    "LOG111": broken(change(SET, lambda log: log + other_log(seed=9), 0)),
    "RAW101": raw_logs(crashed),
    "RAW102": raw_logs(repeated),
    "RUN158": broken(lambda r: rewrite(r, lambda log: shifted(log, 9 * YEAR_MS), *range(5))),
    "RUN180": broken(change(LORA, of_longer_warmup, 0), round="4.1", benchmark="llama2_70b_lora"),
    "SET105": with_file(f"{SET}/notes.txt"),
    "SET115": in_workspace(OWN, saying("submission_org", "ACME")),
    "SET117": raw_logs(nothing),
    "SET125": in_workspace(OWN, OTHER, saying("submission_platform", "PLACEHOLDER")),
    "SET126": raw_logs(in_folders),
    "SET130": other_nodes,
    "SET131": of_scalings("weak"),
    "SET132": pruned,
    "SEED109": of_one_seed,
    "SET142": in_workspace(
        OWN,
        OTHER,
        saying("submission_platform", "4xbow"),
        {CONFIG_NAME: b"systems: {bow-pod16: {logs: ['*']}}"},
    ),
    "SET150": copied,
    "SET151": resubmitted,
    "SET152": unproven_preview,
    "SET172": unproven_preview,
    "SET160": published_before(copies.two_rounds),
    "SET161": published_before(lambda root: copies.two_rounds(root, system_name="x")),
    "SET162": unlike(*publications.PEERS, value=1e6),
    "SET163": unlike(*publications.scores([42, 50, 60])),
    "SEED102": broken(
        change(LORA, value("seed", 5), 0, 1), round="4.1", benchmark="llama2_70b_lora"
    ),
    "SEED103": broken(
        change(LORA, value("seed", "x"), 0), round="4.1", benchmark="llama2_70b_lora"
    ),
    "SEED106": same_seeds,
    "RCP108": broken(change(SET, lambda log: shortened(log, 0.9))),
    "TREE102": raw_logs(link_out),
    "TREE103": with_folder("systems/x.json"),
    "TREE104": of_scalings("strong", "mild"),
    "TREE106": with_folder("results/.git/x"),
    "TREE107": with_folder(f"{SET}/result_9.txt"),
    "TREE109": with_folder(f"{SET}/package_checker_params"),
    "TREE110": with_file(f"{SET}/package_checker_params", b"rcp_bypass"),
    "TREE111": raw_logs(
        lambda logs: (logs / "x.log.gz").write_bytes(gzip.compress(gzip.compress(simulated()[0])))
    ),
    "TREE112": raw_logs(lambda logs: (logs / "notes.txt").write_bytes(b"no record\n")),
    "TREE113": twice,
    "TREE115": raw_logs(lambda logs: (logs / "x.log").write_bytes(b":::MLLOG" + RECORD[9:])),
    "REPO101": with_file("a b"),
    "REPO102": broken(large_file),
    "REPO103": broken(lambda root: (root / "link").symlink_to("nowhere")),
    "POW101": with_power(without_two),
    "POW102": with_power(lambda folder: (folder / "node_0.txt").rename(folder / "node_5.txt")),
    "POW103": with_power(lambda folder: shutil.copy(folder / "node_0.txt", folder / "node_1.txt")),
    "POW104": with_power(lambda folder: (folder / "node_x.txt").touch()),
    "POW202": with_power(lambda folder: (folder / "node_0.txt").write_bytes(RECORD + b"\n")),
    "POW208": with_power(without_start),
    "POW204": with_power(lambda folder: (folder / "sw_0.txt").write_bytes(RECORD + b"\n")),
    "SYS002": described(lambda text: b"\xef\xbb\xbf" + text),
    "SYS003": described(lambda text: text.replace(b'"submitter"', b'"x\xfc": "", "submitter"')),
    "SYS004": described(lambda _: b"[]"),
    "SYS005": described(lambda text: text.replace(b"{", b'{"cooling": "air",', 1)),
    "SYS006": broken(system(cooling=float("inf"))),
    "SYS103": broken(system(status="soon"), round="4.1", benchmark="llama2_70b_lora"),
    "SYS104": broken(system(status="soon")),
    "SYS203": broken(system(cooling="FILL IN")),
    "SYS206": broken(lambda root: write_system(root / "systems", "box-n3")),
    "SYS207": broken(
        lambda root: write_system(
            root / "systems", "box-h200", accelerator_model_name="NVIDIA H100-SXM5-80GB"
        )
    ),
    "SYS208": broken(system(submitter="Gr\u0430phcore")),
    "SYS302": broken(lambda root: write_system(root / "systems", "a b")),
    "SYS303": broken(system(hw_notes=None)),
    "SYS304": broken(system(accelerator_model_name="NVIDIA H200 NVL 141GB")),
    "SYS306": broken(system(framework="PyTorch", other_software_stack={"driver": "new"})),
    "CHECK103": unreadable_results,
    "CONF101": in_workspace(OWN, RAW, {CONFIG_NAME: b"systems: {x: {logs: ['*']}}"}),
    "CONF102": in_workspace(OWN, RAW, {CONFIG_NAME: b"systems: {bow-pod16: {logs: [x]}}"}),
    "ROUND101": of_round(-YEAR_MS),
    "ROUND102": undated,
    "ROUND103": of_round(YEAR_MS),
    "WAIVE101": waived("2020-01-01"),
    "WAIVE102": waived("2999-01-01"),
}


def example_of(code: str) -> Example | None:
    """An example of a code with its usual weight: one of above, or else a trap."""
    entry = codes()[code]
    start = f"{code} {entry.severity} {entry.basis} "
    for trap in ALL:
        if any(finding.startswith(start) for finding in trap.findings):
            return EXAMPLES.get(code, of_trap(trap))
    return EXAMPLES.get(code)


# ---- raised one at a time -----------------------------------------------------------------


def raised(folder: Path, code: str, basis: str = "rules", severity: str = "error") -> Path:
    """A folder of rules with ``findings.yaml`` alone, which gives a code another weight."""
    entry = codes()[code]
    names = ("title", "explanation", "fix", "source", "since")
    fields = {name: getattr(entry, name) for name in names if getattr(entry, name)}
    folder.mkdir(exist_ok=True)
    text = yaml.safe_dump({code: {**fields, "basis": basis, "severity": severity}})
    (folder / "findings.yaml").write_text(text)
    return folder


def report_of(paths: Paths, options: Options) -> Report:
    return check(list(map(str, paths)), options).report


WITHOUT_EXAMPLE = {
    "LOG109": "fails the rules already; a line of many megabytes: tests/log/test_reader.py",
    "LOG110": "fails the rules already; a log of raw logs only: tests/run/test_several_runs.py",
    "LOG113": "fails the rules already; a file that may not be read: tests/checks/test_tree.py",
    "LOG114": "fails the rules already: tests/run/test_damaged.py",
    "LOG115": "fails the rules already: tests/run/test_damaged.py",
    "RUN166": "fails the rules already: tests/run/test_written_rules.py",
    "SET120": "fails the rules already: tests/checks/test_result_sets.py",
    "TREE108": "fails the rules already; a file that may not be read: tests/checks/test_tree.py",
    "CHECK101": "what a defect of ours left unchecked has no verdict: see STAGES",
    "CHECK102": "what the end of a process left unchecked has no verdict: test_guard.py",
    "TREE114": "what cannot be read is not checked, and has no verdict: tests/checks/test_tree.py",
}
"""The codes that are not raised here, with the reason."""

OF_VERIFY = "PACK"
"""The codes that no check has but ``verify``: of the integrity of archives."""


def test_every_code_is_raised_or_has_a_reason() -> None:
    raised_here = {code for code in codes() if example_of(code)}
    of_checks = {code for code in codes() if not code.startswith(OF_VERIFY)}
    assert raised_here | WITHOUT_EXAMPLE.keys() == of_checks
    assert not raised_here & WITHOUT_EXAMPLE.keys()


@pytest.mark.parametrize("code", WITHOUT_EXAMPLE)
def test_only_errors_have_no_example(code: str) -> None:
    entry = codes()[code]
    assert entry.severity is Severity.ERROR
    assert entry.basis in (Basis.BOTH, Basis.RULES)
    assert WITHOUT_EXAMPLE[code]


@pytest.mark.parametrize("code", [code for code in codes() if example_of(code)])
def test_the_verdict_follows(code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    example = example_of(code)
    assert example
    (tmp_path / "in").mkdir()
    paths, options = example(tmp_path / "in", monkeypatch)
    usual = report_of(paths, options)
    with rules_read_from(raised(tmp_path / "rules", code)):
        report = report_of(paths, options)
    assert code in {finding.code for finding in usual.findings}
    assert report.verdict.official is usual.verdict.official
    assert report.verdict.rules is Verdict.FAIL
    assert report.has_errors


def trap_of(name: str, **fields: Any) -> Example:
    """The trap of a name with these fields, the only one."""
    named = [trap for trap in ALL if trap.name == name]
    (trap,) = (t for t in named if all(getattr(t, key) == fields[key] for key in fields))
    return of_trap(trap)


def part_of_a_set(root: Path, _: pytest.MonkeyPatch) -> tuple[Paths, Options]:
    logs = write_set(root / "logs", simulated()[:3])
    return sorted(logs.iterdir()), Options(round="2.0", jobs=1)


def defect(root: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Paths, Options]:
    """A submission whose set cannot be judged."""

    def fail(_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(judge, "check_set", fail)
    return [write_submission(root / "Graphcore")], Options(round="2.0", jobs=1)


STAGES: list[tuple[str, str, Example, str]] = [
    (
        "an exception, which has a weight of its own (unless)",
        "SET111",
        trap_of("an open description of closed logs"),
        "pass",
    ),
    (
        "the rule was written after the round (as_written)",
        "SEED105",
        trap_of("two seeds in a run", round="4.0"),
        "pass",
    ),
    (
        "a part of a set is not judged as one (for_information)",
        "SET101",
        part_of_a_set,
        "pass",
    ),
    (
        "what was not checked has no verdict (Unchecked)",
        "CHECK101",
        defect,
        "not_checked",
    ),
]
"""The stages that soften a finding although its code is an error by the rules."""


@pytest.mark.parametrize(
    ("code", "example", "verdict"), [row[1:] for row in STAGES], ids=[row[0] for row in STAGES]
)
def test_documented_stages_soften(
    code: str, example: Example, verdict: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "in").mkdir()
    paths, options = example(tmp_path / "in", monkeypatch)
    with rules_read_from(raised(tmp_path / "rules", code)):
        assert report_of(paths, options).verdict.rules.value == verdict


# ---- the official verdict, and the command line -------------------------------------------


@pytest.mark.parametrize("weight", ["both error", "official error", "rules error", "advice note"])
@pytest.mark.parametrize("code", ["LOG103", "SEED101", "RCP101", "SET103", "SYS101", "REPO101"])
def test_no_rules_of_the_user_move_the_official_verdict(
    code: str, weight: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    example = example_of(code)
    assert example
    (tmp_path / "in").mkdir()
    paths, options = example(tmp_path / "in", monkeypatch)
    usual = report_of(paths, options)
    with rules_read_from(raised(tmp_path / "rules", code, *weight.split())):
        report = report_of(paths, options)
    assert report.verdict.official is usual.verdict.official
    rows = [(row.path, row.verdict.official) for row in report.result_sets]
    assert rows == [(row.path, row.verdict.official) for row in usual.result_sets]


@pytest.mark.parametrize(
    ("code", "weight", "verdicts"),
    [
        ("SET113", "both error", ("pass", "fail")),
        ("SET113", "official error", ("pass", "pass")),
        ("SET113", "rules warning", ("pass", "pass")),
        ("SET112", "advice note", ("pass", "pass")),
    ],
)
def test_rules_of_the_user_raise_and_lower_for_the_rules_alone(
    code: str, weight: str, verdicts: tuple[str, str], tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    example = trap_of("overlapping runs")
    if code == "SET112":
        example = trap_of("a copy at another time")
    (tmp_path / "in").mkdir()
    paths, options = example(tmp_path / "in", monkeypatch)
    with rules_read_from(raised(tmp_path / "rules", code, *weight.split())):
        verdict = report_of(paths, options).verdict
    assert (verdict.official.value, verdict.rules.value) == verdicts


def test_a_folder_with_findings_alone_and_the_exit_status(tmp_path: Path) -> None:
    tree = write_submission(tmp_path / "Graphcore")
    rules = raised(tmp_path / "rules", "CODE100")
    assert call("check", tree, "--round", "2.0").exit_code == 0
    result = call("--rules", rules, "check", tree, "--round", "2.0")
    assert result.exit_code == 1, result.stderr
    assert "CODE100" in result.stdout


def test_the_row_of_a_description_follows_what_is_found_around_it(tmp_path: Path) -> None:
    """Its submitter is compared with the folder, after the description was checked."""
    tree = write_submission(tmp_path / "Graphcore")
    write_system(tree / "systems", submitter="Others")
    with rules_read_from(raised(tmp_path / "rules", "SYS205")):
        (row,) = report_of([tree], Options(round="2.0", jobs=1)).systems
    assert row.verdict.rules is Verdict.FAIL


def test_the_row_of_a_set_without_description_follows(tmp_path: Path) -> None:
    logs = write_set(tmp_path / "logs", simulated())
    with rules_read_from(raised(tmp_path / "rules", "SET117")):
        (row,) = report_of([logs], Options(round="2.0", jobs=1)).result_sets
    assert row.verdict.rules is Verdict.FAIL
