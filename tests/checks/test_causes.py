"""Which finding follows from which, as the report of a check says it."""

from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path

import pytest
from msgspec.structs import replace

from mlperf_pkg.checker.check import check
from mlperf_pkg.checker.values import Options
from mlperf_pkg.checks.causes import with_causes
from mlperf_pkg.config import Config, WaiverConfig
from mlperf_pkg.findings import Waiver, in_report
from mlperf_pkg.results.report import Report
from mlperf_pkg.rulebook.explain import rulebook_codes
from mlperf_pkg.rulebook.load import ANY_RULE, Evidence, Explanation, codes, explanations
from tests.helpers.logs import edited, joined, on_line_of, records, torn, without
from tests.helpers.program import start
from tests.helpers.workspaces import POD16, RESNET, described, lay, logs_of, numbered

Logs = tuple[bytes, ...]
Pairs = set[tuple[str, str | None]]

BERT = logs_of("bow-pod16", "bert")
MOMENTUM = "lars_opt_momentum"
DECAY = "lars_opt_weight_decay"


def reported(root: Path, logs: Iterable[bytes], **options: object) -> Report:
    """The report on raw logs beside the description of their system."""
    lay(root, POD16, numbered(logs, "logs/{}.log"))
    return check([str(root / "logs")], Options(**options)).report  # type: ignore[arg-type]


def submitted(root: Path, logs: Iterable[bytes], top: str = "ACME", **system: object) -> Report:
    """The report on a submission of one set of resnet, whatever its logs are."""
    description = {"systems/bow-pod16.json": described("bow-pod16", **system)}
    results = numbered(logs, "results/bow-pod16/resnet/result_{}.txt")
    return check([str(lay(root / top, description, results))], Options()).report


def pairs(report: Report) -> Pairs:
    """The codes of errors, and of what has a cause, each with that of the cause."""
    by_id = {finding.id: finding for finding in report.findings}
    codes_with_causes = set()
    for finding in report.findings:
        cause = by_id[finding.cause].code if finding.cause else None
        if cause or finding.is_error:
            codes_with_causes.add((finding.code, cause))
    return codes_with_causes


def first(change: Callable[[bytes], bytes], number: int = 1, logs: Logs = RESNET) -> Logs:
    """The logs, of which the first few are changed."""
    return (*map(change, logs[:number]), *logs[number:])


def every(change: Callable[[bytes], bytes], logs: Logs = RESNET) -> Logs:
    return first(change, len(logs), logs)


def wrapped(log: bytes, width: int = 120) -> bytes:
    """The log as a terminal of this width shows it."""
    lines: list[bytes] = []
    for line in log.split(b"\n"):
        lines += [line[at : at + width] for at in range(0, len(line), width)]
    return b"\n".join(lines)


def without_third_evaluation(log: bytes) -> bytes:
    """The log without its third evaluation."""
    fields = records(log)
    numbers = [number for number, record in enumerate(fields) if record["key"] == "eval_accuracy"]
    del fields[numbers[2]]
    return joined(fields)


def with_text_after(log: bytes) -> bytes:
    return on_line_of(log, MOMENTUM, lambda line: line + b" step 7")


def with_near_miss(log: bytes) -> bytes:
    return on_line_of(log, MOMENTUM, lambda line: line.replace(b":::MLLOG ", b":::MLLOG"))


def without_field(log: bytes) -> bytes:
    return on_line_of(log, MOMENTUM, lambda line: line.replace(b'"metadata"', b'"data"'))


aborted = partial(edited, key="run_stop", metadata={"status": "aborted"})
killed = partial(without, key="run_stop")
lost = partial(torn, rest=b"")
TORN: Pairs = {("LOG101", None), ("SEED103", "LOG101")}
NO_STOP: Pairs = {
    *TORN,
    ("SET102", "LOG101"),
    ("SET103", "LOG101"),
    ("RCP101", "SET102"),
    ("RUN109", "LOG101"),
    ("RUN140", "LOG101"),
}

RAW: list[tuple[str, Logs, Pairs]] = [
    ("whole logs", RESNET, set()),
    ("a key", first(partial(torn, key=MOMENTUM)), {*TORN, ("RN117", "LOG101")}),
    ("a key in several runs", every(partial(torn, key=MOMENTUM)), {
        *TORN, ("RN117", "LOG101"), ("SET103", "LOG101")
    }),
    ("the rest of a key", first(partial(lost, key=MOMENTUM, kept=12)), {
        *TORN, ("RN117", "LOG101")
    }),
    ("a key that was never logged beside another", first(
        lambda log: torn(without(log, DECAY), MOMENTUM)
    ), {*TORN, ("RN117", "LOG101"), ("RN119", None)}),
    ("a key that was never logged in another run", (
        torn(RESNET[0], MOMENTUM), without(RESNET[1], MOMENTUM), *RESNET[2:]
    ), {*TORN, ("RN117", None), ("SET103", "RN117")}),
    ("a key in a record without a name", first(partial(lost, key=MOMENTUM, kept=-30)), {
        *TORN, ("RN117", None)
    }),
    ("one of two keys that begin alike", first(
        lambda log: torn(without(log, DECAY), MOMENTUM, kept=7, rest=b"")
    ), {*TORN, ("RN117", None), ("RN119", None)}),
    ("a name in other text", first(
        lambda log: torn(without(log, DECAY), MOMENTUM, rest=f"no '{DECAY}' is given".encode())
    ), {*TORN, ("RN117", None), ("RN119", None)}),
    ("an evaluation", first(partial(torn, key="eval_accuracy", nth=2)), {
        *TORN, ("RN145", "LOG101")
    }),
    ("an evaluation in a record without a name", first(
        partial(lost, key="eval_accuracy", nth=2, kept=-30)
    ), {*TORN, ("RN145", "LOG101")}),
    ("the evaluation that reaches the target", first(
        partial(torn, key="eval_accuracy", nth=-1)
    ), {*TORN, ("RN103", "LOG101")}),
    ("an evaluation that was never logged", first(
        lambda log: torn(without_third_evaluation(log), "block_start", nth=5)
    ), {*TORN, ("RN145", None)}),
    ("the seed", first(partial(torn, key="seed")), {*TORN}),
    ("the end", first(partial(torn, key="run_stop"), 2), NO_STOP),
    ("text after a record", every(with_text_after), {
        ("LOG103", None), ("SEED103", "LOG103"), ("SET103", "LOG103"), ("RN117", "LOG103")
    }),
    ("a record almost", every(with_near_miss), {("RN117", "LOG108"), ("SET103", "LOG108")}),
    ("a record without a field", every(without_field), {
        ("LOG102", None), ("RN117", "LOG102"), ("SEED103", "LOG102"), ("SET103", "LOG102"),
        ("SET104", "LOG102"),
    }),
    ("aborted", first(aborted, 3), {
        ("SET102", "RUN140"), ("RCP101", "SET102")
    }),
    ("killed", first(killed, 3), {
        ("SET102", "RUN140"), ("RCP101", "SET102"), ("RUN109", "RUN140"), ("SET103", "RUN140")
    }),
    ("aborted, as one may be", first(aborted), set()),
    ("too few runs", RESNET[:1], {("SET101", None), ("RCP101", "SET101")}),
    ("a key in no run", every(partial(without, key=MOMENTUM)), {
        ("RN117", None), ("SET103", "RN117")
    }),
    ("different keys", (
        *map(partial(without, key=MOMENTUM), RESNET[:2]),
        *map(partial(without, key=DECAY), RESNET[2:4]),
        RESNET[4],
    ), {("RN117", None), ("RN119", None), ("SET103", None)}),
    ("a copy", (*RESNET[:4], RESNET[0]), {("SET101", None)}),
]  # fmt: skip


def in_unit(log: bytes, factor: float) -> bytes:
    """The log of a run that counts its training in another unit than epochs or samples."""
    fields = records(log)
    for record in fields:
        if "epoch_num" in record["metadata"]:
            record["metadata"]["epoch_num"] *= factor
    return joined(fields)


UNITS: list[tuple[str, float, int, Pairs]] = [
    ("batches", 1 / 256, 10, {("RCP101", "BERT121")}),
    ("epochs", 1e-6, 10, {("RCP101", "BERT121")}),
    ("of some runs", 1e-6, 9, {("RCP101", None)}),
]


@pytest.mark.parametrize(
    ("factor", "number", "expected"), [row[1:] for row in UNITS], ids=[row[0] for row in UNITS]
)
def test_units(factor: float, number: int, expected: Pairs, tmp_path: Path) -> None:
    logs = first(partial(in_unit, factor=factor), number, BERT)
    assert expected <= pairs(reported(tmp_path, logs))


def test_a_mean_that_is_not_a_number_has_no_cause(tmp_path: Path) -> None:
    logs = [edited(in_unit(log, 1e-6), "global_batch_size", value=16) for log in BERT[:2]]
    by_cause = pairs(reported(tmp_path, logs))
    assert ("RCP101", None) in by_cause
    assert ("RCP101", "BERT121") not in by_cause


@pytest.mark.parametrize(
    ("logs", "expected"), [row[1:] for row in RAW], ids=[row[0] for row in RAW]
)
def test_raw_logs(logs: Logs, expected: Pairs, tmp_path: Path) -> None:
    assert pairs(reported(tmp_path, logs)) == expected


def test_everything_that_a_wrapped_log_lacks_follows_from_that(tmp_path: Path) -> None:
    by_cause = pairs(reported(tmp_path, first(wrapped)))
    assert {code for code, cause in by_cause if cause is None} == {"LOG101"}
    assert {cause for _, cause in by_cause if cause} == {"LOG101"}


PARTLY_OPEN = (
    *map(partial(edited, key="submission_division", value="open"), RESNET[:4]),
    without(RESNET[4], MOMENTUM),
)
BATCHES = [edited(RESNET[0], "global_batch_size", value=999), *RESNET[1:]]
AS_BERT = every(partial(edited, key="submission_benchmark", value="bert"))
WRONG_NAME = {"BERT102", "BERT112", "BERT121", "BERT124", "RCP101", "SET103"}

SUBMITTED: list[tuple[str, Iterable[bytes], dict[str, str], Pairs]] = [
    ("another benchmark's name", AS_BERT, {}, {(code, "SET107") for code in WRONG_NAME}),
    ("another benchmark's folder", BERT, {}, {("SET101", "SET107")}),
    ("another name in one log", (AS_BERT[0], *RESNET[1:]), {}, {("RCP103", "SET107")}),
    (
        "another benchmark's name, and a key that both need is missing",
        (without(AS_BERT[0], "global_batch_size"), *AS_BERT[1:]),
        {},
        {("BERT101", None), ("BERT124", "SET107")},
    ),
    ("different batch sizes", BATCHES, {}, {("RCP103", "SET108")}),
    ("an older round", RESNET, {"top": "training_results_v5.0/ACME"}, {("SET106", "ROUND101")}),
    (
        "logs of two divisions",
        PARTLY_OPEN,
        {"division": "open"},
        {("SET111", None), ("RN117", "SET111")},
    ),
    (
        "an entry that was moved to Open, of which there is a note",
        every(partial(without, key=MOMENTUM)),
        {"division": "open"},
        {("RN117", None), ("SET103", "RN117")},
    ),
]


@pytest.mark.parametrize(
    ("logs", "more", "expected"), [row[1:] for row in SUBMITTED], ids=[row[0] for row in SUBMITTED]
)
def test_submissions(
    logs: Iterable[bytes], more: dict[str, str], expected: Pairs, tmp_path: Path
) -> None:
    assert expected <= pairs(submitted(tmp_path, logs, **more))


# ---- ids, waivers, filters ----------------------------------------------------------------

WAIVED = WaiverConfig("LOG101", "0.log", Waiver("known", "the chair", "2999-12-31"), 1)


def torn_report(root: Path, config: Config | None = None) -> Report:
    return reported(root, first(partial(torn, key=MOMENTUM)), config=config or Config())


def test_ids_are_a_code_and_its_number_in_the_order_of_the_report(tmp_path: Path) -> None:
    findings = submitted(tmp_path, RESNET[:1]).findings
    numbers: dict[str, int] = {}
    expected = []
    for finding in findings:
        numbers[finding.code] = numbers.get(finding.code, 0) + 1
        expected.append(f"{finding.code}-{numbers[finding.code]}")
    assert [finding.id for finding in findings] == expected


def test_what_follows_has_the_remedy_of_its_cause(tmp_path: Path) -> None:
    hints = {finding.code: finding.hint for finding in torn_report(tmp_path).findings}
    assert hints["RN117"] == "this follows from LOG101 in 0.log:19; fix LOG101 first"


def test_of_causes_of_as_many_runs_the_first_one_counts(tmp_path: Path) -> None:
    """Whatever the order of a set, which differs from process to process."""
    rest = b':::MLLOG [1]\n:::MLLOG "x"\n'
    logs = first(lambda log: log + rest, 2)
    root = lay(tmp_path, POD16, numbered(logs, "logs/{}.log"))
    reports = set()
    for seed in range(4):
        with start("check", root / "logs", "--format", "json", PYTHONHASHSEED=f"{seed}") as process:
            reports.add(process.communicate()[0])
    assert len(reports) == 1
    assert b'"cause": "LOG102-1"' in reports.pop()


def test_a_waived_cause_explains_nothing(tmp_path: Path) -> None:
    report = torn_report(tmp_path, Config(waivers=(WAIVED,)))
    assert {finding.cause for finding in report.findings} == {None}


def test_a_cause_that_is_left_out_explains_nothing(tmp_path: Path) -> None:
    report = torn_report(tmp_path).only((), ("LOG",))
    assert [(finding.code, finding.cause) for finding in report.findings] == [
        ("RN117", None),
        ("SEED103", None),
    ]


def test_a_cause_changes_nothing_but_hints(tmp_path: Path) -> None:
    findings = torn_report(tmp_path).findings
    plain = [replace(finding, id="", cause=None, hint=None) for finding in findings]
    again = with_causes(in_report(plain), (), ())
    assert [replace(finding, id="") for finding in again] == plain


# ---- the rows of findings.yaml ------------------------------------------------------------


@pytest.mark.parametrize("row", explanations(), ids=str)
def test_every_code_exists(row: Explanation) -> None:
    assert {*row.causes, *row.effects} <= codes().keys() | {ANY_RULE}


@pytest.mark.parametrize("evidence", Evidence)
def test_every_evidence_is_used(evidence: Evidence) -> None:
    assert evidence in {row.evidence for row in explanations()}


def test_no_code_of_a_rule_stands_for_all_rules() -> None:
    assert ANY_RULE not in codes().keys() | rulebook_codes()


def test_what_repeated_records_break_follows_from_processes(tmp_path: Path) -> None:
    """Official checkers alone refuse a seed, and a tensor, that each of two processes logs."""
    twice = every(lambda log: b"".join(line * 2 for line in log.splitlines(keepends=True)))
    follows = {(code, "LOG114") for code in ("RN104", "SEED102", "SET103")}
    assert pairs(reported(tmp_path, twice)) == {("LOG114", None), *follows}
