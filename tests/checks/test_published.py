"""Runs that were published before, and sets unlike all published ones."""

import shutil
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from mlperf_pkg.checker.check import check
from mlperf_pkg.checker.values import Options
from mlperf_pkg.checks import published, result_sets
from mlperf_pkg.checks.descriptions import as_published
from mlperf_pkg.findings import Finding
from mlperf_pkg.infra.source import Source
from mlperf_pkg.published import results
from mlperf_pkg.published.model import PublishedSet, Setting, digests_of
from tests.helpers.logs import edited, joined, records
from tests.helpers.published import (
    KEY,
    MODEL,
    PEERS,
    peer,
    publish,
    results_of,
    scores,
    settings,
)
from tests.helpers.stored import compared
from tests.helpers.trees import SYSTEM, simulated, write_set, write_submission, write_system
from tests.tools.export import encoded, of_rounds

NAME = f"Graphcore/{SYSTEM}/resnet"
SET, LORA = f"Graphcore/results/{SYSTEM}/resnet", "llama2_70b_lora"
HEAD = f"note advice 5/5 runs of this set were already published in round 2.0 as {NAME}"
ASKED = "the rules allow this under certain conditions; not all could be checked, as "
AGAIN = f"{HEAD}; {ASKED}some values of the published system description are unknown"
FORBIDDEN = ", so the rules forbid submitting these runs again"
LATER = " (the rules forbid such changes only from round 5.1 on)"
BROKEN = HEAD.replace("note advice", "warning rules")
DESCRIPTION = "it is not known whether the system description is the same"
UNSURE = "it is not known whether 5 runs with published values are copies or repetitions"


def findings(*paths: Path) -> list[Finding]:
    report = compared(check([str(path) for path in paths], Options(jobs=1))).report
    return [f for f in report.findings if f.code in ("SET160", "SET161", "CHECK103")]


def texts(*paths: Path) -> list[str]:
    return [f"{f.severity} {f.basis} {f.runs}/{f.of_runs} {said(f)}" for f in findings(*paths)]


def said(finding: Finding) -> str:
    """A message, and the judgement in the hint."""
    return "; ".join(filter(None, (finding.text, finding.hint)))


@pytest.fixture
def first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Round 2.0, which is published."""
    write_submission(tmp_path / "v2.0/Graphcore")
    publish(monkeypatch, tmp_path / "v2.0")
    return tmp_path / "v2.0"


def resubmitted(first: Path, round_: str = "v2.1") -> Path:
    return Path(shutil.copytree(first, first.parent / round_))


def described(**fields: Any) -> Callable[[Path], object]:
    """Another description of the system."""
    return lambda root: write_system(root / "Graphcore/systems", division="closed", **fields)


another_framework, another_status = described(framework="another"), described(status="preview")


def of_zebra(root: Path) -> None:
    described(submitter="Zebra")(root)
    (root / "Graphcore").rename(root / "Zebra")


def another_system(root: Path) -> None:
    (root / SET).parent.rename((root / SET).parent.with_name("other"))
    systems = root / "Graphcore/systems"
    (systems / f"{SYSTEM}.json").rename(systems / "other.json")


def another_byte(root: Path) -> None:
    with (root / SET / "result_0.txt").open("ab") as stream:
        stream.write(b"\n")


def another_run(root: Path) -> None:
    (root / SET / "result_0.txt").write_bytes(simulated(seed=8)[0])


def dressed_up(root: Path) -> None:
    """All logs a month later, with other names and noise in the values."""
    for path in (root / SET).iterdir():
        log = records(path.read_bytes())
        for record in log:
            record["time_ms"] += 30 * 86_400_000
            if record["key"] == "eval_accuracy":
                record["value"] *= 1 - 9e-6
        path.write_bytes(edited(joined(log), "submission_platform", value="new"))


def repeated(root: Path) -> None:
    """The evaluations of all runs at times of their own."""
    for path in (root / SET).iterdir():
        log = records(path.read_bytes())
        for number, record in enumerate(log):
            record["time_ms"] += 30 * 86_400_000 + 7919 * number % 997
        path.write_bytes(joined(log))


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (bool, [AGAIN]),
        (described(status="Available on-premise"), [AGAIN]),
        (another_system, [AGAIN]),
        (another_run, [AGAIN.replace("5/5", "4/5")]),
        (another_byte, [f"{HEAD}; 1 of the logs has been changed since then{LATER}"]),
        (dressed_up, [f"{HEAD}; 5 of the logs have been changed since then{LATER}"]),
        (
            repeated,
            [
                AGAIN.replace(ASKED, f"{ASKED}{UNSURE}; ").replace(
                    "were already published", "have the values of runs that were published"
                )
            ],
        ),
        (another_framework, [f"{HEAD}; the description differs in framework{LATER}"]),
        (another_status, [f"{HEAD}; the description differs in status{LATER}"]),
        (
            described(accelerators_per_node=8, number_of_nodes=2),
            [
                f"{HEAD}; the description differs in accelerators_per_node and"
                f" number_of_nodes{LATER}"
            ],
        ),
        pytest.param(
            of_zebra,
            [f"{BROKEN}; the runs are of the submitter Graphcore{FORBIDDEN}"],
            id="of another submitter",
        ),
    ],
)
def test_resubmitted(first: Path, change: Callable[[Path], object], expected: list[str]) -> None:
    root = resubmitted(first)
    change(root)
    assert texts(root) == expected


def test_a_preview_is_not_proved_by_its_own_runs(
    first: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = resubmitted(first)
    another_status(first)
    publish(monkeypatch, first, made=date(2026, 11, 21))
    assert texts(root) == [f"{HEAD}; a former Preview needs new runs{LATER}"]


def test_of_two_published_sets_that_of_the_same_system_is_named(
    first: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = resubmitted(first)
    shutil.copytree((first / SET).parent, (first / SET).parent.with_name("a-box"))
    write_system(first / "Graphcore/systems", "a-box", division="closed")
    publish(monkeypatch, first, made=date(2026, 11, 21))
    assert texts(root) == [AGAIN]


def test_logs_that_the_newer_checker_rejects(first: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = first / SET / "result_0.txt"
    path.write_bytes(path.read_bytes().replace(b'"global_batch_size"', b'"globl_batch_size"'))
    publish(monkeypatch, first, made=date(2026, 11, 21))
    root = resubmitted(first)
    assert texts(root) == [f"{HEAD}; the logs fail the official checker of round 2.1{LATER}"]


def test_an_earlier_round_is_not_compared_with_a_later_one(
    first: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish(monkeypatch, resubmitted(first))
    assert texts(first) == []


def test_both_rounds_checked_together(first: Path) -> None:
    assert texts(first, resubmitted(first)) == []


def test_loose_logs_are_always_named(first: Path, tmp_path: Path) -> None:
    shutil.copytree(first / SET, tmp_path / "logs")
    name = f"{HEAD}; {ASKED}it is not known whether the submitter is the same; {DESCRIPTION}"
    assert texts(tmp_path / "logs") == [name]
    assert texts(tmp_path / "logs/result_1.txt") == [name.replace("5/5", "1/1")]


def test_another_set_of_the_round(first: Path) -> None:
    another_system(first)
    another_framework(first)
    (first / "Graphcore/systems" / f"{SYSTEM}.json").rename(first / "Graphcore/systems/other.json")
    assert texts(first) == [f"{HEAD}; the description differs in framework{LATER}"]


def test_the_set_of_another_submitter_of_the_round(first: Path) -> None:
    of_zebra(first)
    assert texts(first) == [f"{BROKEN}; the runs are of the submitter Graphcore{FORBIDDEN}"]


@pytest.mark.parametrize("changed", [False, True])
def test_resubmitted_since_the_rules_say_what_may_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, changed: bool
) -> None:
    old, new = tmp_path / "v5.0", tmp_path / "v5.1"
    write_set(old / f"Graphcore/results/{SYSTEM}/{LORA}", simulated(LORA, round_="5.0"))
    described(framework="PopART")(old)
    publish(monkeypatch, old)
    resubmitted(old, "v5.1")
    if changed:
        another_framework(new)
    (text,) = texts(new)
    assert text.startswith("warning rules 10/10" if changed else "note advice 10/10")


@pytest.fixture
def hashed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the logs that are hashed."""
    names: list[str] = []

    def spy(sources: Mapping[str, Source]) -> dict[str, bytes]:
        names.extend(path.rpartition("/")[2] for path in sources)
        return digests_of(sources)

    monkeypatch.setattr(published, "digests_of", spy)
    return names


RUNS = [f"result_{number}.txt" for number in range(5)]


def test_runs_later_than_the_collection_are_not_hashed(
    first: Path, monkeypatch: pytest.MonkeyPatch, hashed: list[str]
) -> None:
    publish(monkeypatch, first, made=date(2020, 1, 1))
    text = f"{HEAD}; 5 of the logs have been changed since then{LATER}"
    assert texts(resubmitted(first)) == [text]
    assert hashed == []


@pytest.mark.parametrize("number", [5, 1])
def test_runs_of_which_only_the_bytes_were_collected(
    first: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """A byte in every log does not change the mean; the other logs of the set are found anyway."""
    facts = of_rounds([str(first)], date(2026, 11, 22))
    results.PATH.write_bytes(encoded(replace(facts, series=())))
    results.read_results.cache_clear()
    root = resubmitted(first)
    for path in sorted((root / SET).iterdir())[:number]:
        path.write_bytes(path.read_bytes() + b"\n")
    logs = "1 of the logs has been changed since then"
    if number == 5:
        logs = "5 of the logs have been changed since then"
    assert texts(root) == [f"{HEAD}; {logs}{LATER}"]


def test_a_published_set_is_not_hashed(first: Path, hashed: list[str]) -> None:
    assert texts(first) == []
    assert texts(first / SET) == []  # outside of its submission
    assert hashed == []


def test_a_published_set_with_a_changed_time_is_hashed(first: Path, hashed: list[str]) -> None:
    log = first / SET / "result_2.txt"
    text = log.read_bytes()
    (stop,) = (record["time_ms"] for record in records(text) if record["key"] == "run_stop")
    log.write_bytes(edited(text, "run_stop", time_ms=stop + 1))
    assert texts(first) == []
    assert hashed == RUNS


def test_published_logs_of_an_earlier_round_are_noted_in_their_later_round(
    first: Path, monkeypatch: pytest.MonkeyPatch, hashed: list[str]
) -> None:
    second = resubmitted(first)
    publish(monkeypatch, first, second)
    hashed.clear()  # by what makes the published results
    assert texts(second) == [AGAIN]
    assert hashed == RUNS
    hashed.clear()
    assert texts(first) == []
    assert hashed == []


@pytest.mark.parametrize("data", [None, b"", b"no results"])
def test_without_published_results(
    first: Path, monkeypatch: pytest.MonkeyPatch, data: bytes | None
) -> None:
    path = first.parent / "none"
    if data is not None:
        path.write_bytes(data)
    monkeypatch.setattr(results, "PATH", path)
    [finding] = findings(first, resubmitted(first))
    text = f"the published results cannot be read, so no run was compared with them ({path}: the"
    assert (finding.code, finding.text[: len(text)]) == ("CHECK103", text)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return write_submission(tmp_path / "v2.0/Graphcore").parent


def notes(
    root: Path,
    monkeypatch: pytest.MonkeyPatch,
    sets: Sequence[PublishedSet],
    of_sets: Sequence[Setting] = (),
) -> list[str]:
    results = results_of(*sets, settings=of_sets)
    monkeypatch.setattr(published, "usable_results", lambda: results)
    findings = compared(check([str(root)], Options(jobs=1))).report.findings
    own = [f for f in findings if f.code in ("SET162", "SET163", "SET164")]
    return [f"{f.code} {f.severity} {f.basis} {f.subject} {f.text}" for f in own]


NOTE = f"note advice Graphcore/results/{SYSTEM}/resnet"


@pytest.mark.parametrize(
    ("factors", "limits"),
    [
        ((3.0,), "{0:.6g}"),
        ((2.1, 30), "{0:.6g} to {1:.6g}"),
        ((0.1, 0.4), "{0:.6g} to {1:.6g}"),
        ((1.9,), ""),
        ((0.51,), ""),
        ((0.1, 10), ""),
        ((1.0,), ""),
    ],
)
def test_hyperparameters(
    root: Path, monkeypatch: pytest.MonkeyPatch, factors: tuple[float, ...], limits: str
) -> None:
    checked = compared(check([str(root)], Options(jobs=1)))
    own = float(checked.runs[0].hyperparameters[KEY])
    (result,) = checked.sets
    row = as_published(result.row, checked.runs, None)
    assert row.score_minutes == result.row.score_minutes
    values = [own * factor for factor in factors]
    published = f"all published sets of resnet have {KEY} {limits.format(*values)}"
    words = f"the runs use {KEY} {own:.6g}; {published}"
    expected = [f"SET162 {NOTE} {words}"] if limits else []
    assert notes(root, monkeypatch, PEERS, settings(PEERS, *values)) == expected


TOO_FEW = {
    "few sets": PEERS[:19],
    "four submitters": [peer(number, submitter=f"S{number % 4}") for number in range(20)],
    "open": [peer(number, division="open") for number in range(20)],
    "another": [peer(number, benchmark="bert") for number in range(20)],
}


@pytest.mark.parametrize("kind", TOO_FEW)
def test_without_enough_sets(root: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    sets = TOO_FEW[kind]
    assert notes(root, monkeypatch, sets, settings(sets, 1e6)) == []


NOT_COMPARED = {
    "lars_opt_learning_rate_decay_steps": 1e9,
    "opt_name": '"lamb"',
    KEY: "[1, 2]",
    "opt_unknown": 1,
}


@pytest.mark.parametrize("key", NOT_COMPARED)
def test_what_is_not_compared(root: Path, monkeypatch: pytest.MonkeyPatch, key: str) -> None:
    of_peers = settings(PEERS, NOT_COMPARED[key], key=key)
    assert notes(root, monkeypatch, PEERS, of_peers) == []


@pytest.mark.parametrize(
    ("sets", "words"),
    [
        (scores([42, 50, 60]), "2.1 times as fast as the fastest"),
        (scores([9.9, 8, 5]), "2.0 times as long as the slowest"),
        (scores([25, 50, 60]), ""),
        (scores([15, 5, 5.5]), ""),
        (
            [*scores([42, 50, 60]), peer(3, benchmark="bert", path="A/results/box/bert")],
            "2.1 times as fast as the fastest",
        ),
        (scores([42, 50]), ""),
        (scores([42, 50, 60], submitter="one"), ""),
        (scores([42, 50, 60], accelerators=8), ""),
        (scores([42, 50, 60], accelerator_model="another"), ""),
        (scores([42, 50, 60], division="open"), ""),
        (scores([42, 50, 60], accelerator_model=MODEL.upper()), "2.1 times as fast as the fastest"),
    ],
)
def test_scores(
    root: Path, monkeypatch: pytest.MonkeyPatch, sets: Sequence[PublishedSet], words: str
) -> None:
    limit, model = sets[0].score_minutes, sets[0].accelerator_model
    text = f"{words} published result on 16 {model} ({limit:.3f} minutes, by S0 in round 1.1)"
    texts = [note.partition(" minutes is ")[::2] for note in notes(root, monkeypatch, sets)]
    assert [end for _, end in texts] == ([text] if words else [])
    assert all(start.startswith(f"SET163 {NOTE} the score of ") for start, _ in texts)


def test_a_published_set_is_not_compared(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(result_sets, "published_runs", lambda *_: None)
    assert notes(root, monkeypatch, scores([42, 50, 60])) == []


def test_an_open_set_is_not_compared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_submission(tmp_path / "v2.0/Graphcore", division="open")
    assert notes(tmp_path / "v2.0", monkeypatch, scores([42, 50, 60])) == []


@pytest.mark.parametrize(("round_", "count"), [("1.1", 1), ("0.7", 0)])
def test_rounds_with_another_target_are_not_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, round_: str, count: int
) -> None:
    """The target of bert changed after 0.7."""
    write_submission(tmp_path / "v2.0/Graphcore", "bert")
    sets = scores([42, 50, 60], round=round_, benchmark="bert")
    assert len(notes(tmp_path / "v2.0", monkeypatch, sets)) == count


def submitted(*statuses: tuple[str, str], **fields: Any) -> list[PublishedSet]:
    """Published sets of the same submitter and accelerator: the round and the status of each."""
    own = {"submitter": "Graphcore", "benchmark": "bert", "system": "box", **fields}
    return [peer(0, round=round_, status=status, **own) for round_, status in statuses]


RESEARCH = "Research, Development, or Internal (RDI)"
AVAILABLE = "Available on-premise"
AS_AVAILABLE = (
    "the set was submitted as Available, but its accelerators were Research in round 1.1, in the"
    " system box"
)
AS_PREVIEW = (
    "the set was submitted as Preview, but its accelerators were already Available in round 1.1,"
    " in the system box"
)


@pytest.mark.parametrize(
    ("sets", "status", "expected"),
    [
        pytest.param([], AVAILABLE, [], id="the first"),
        pytest.param(submitted(("1.1", RESEARCH)), AVAILABLE, [AS_AVAILABLE], id="soon"),
        pytest.param(
            submitted(("1.0", "Preview"), ("1.1", RESEARCH)),
            AVAILABLE,
            [AS_AVAILABLE],
            id="Research after Preview",
        ),
        pytest.param(
            submitted(("1.0", RESEARCH), ("1.1", "Preview")), AVAILABLE, [], id="Preview between"
        ),
        pytest.param(
            submitted(("1.0", AVAILABLE), ("1.1", RESEARCH)), AVAILABLE, [], id="Available before"
        ),
        pytest.param(submitted(("2.1", RESEARCH)), AVAILABLE, [], id="Research later"),
        pytest.param(submitted(("1.1", RESEARCH)), RESEARCH, [], id="Research again"),
        pytest.param(submitted(("1.1", AVAILABLE)), "Preview", [AS_PREVIEW], id="Preview again"),
        pytest.param(submitted(("1.1", RESEARCH)), "Preview", [], id="Preview of Research"),
        pytest.param(
            submitted(("1.1", RESEARCH), submitter="Zebra"), AVAILABLE, [], id="of another"
        ),
        pytest.param(
            submitted(("1.1", RESEARCH), accelerator_model="IPU"), AVAILABLE, [], id="another model"
        ),
    ],
)
def test_availability_follows_from_an_earlier_one(
    root: Path,
    monkeypatch: pytest.MonkeyPatch,
    sets: Sequence[PublishedSet],
    status: str,
    expected: list[str],
) -> None:
    described(status=status)(root)
    texts = [note.partition(";")[0] for note in notes(root, monkeypatch, sets)]
    assert texts == [f"SET164 {NOTE} {words}" for words in expected]
