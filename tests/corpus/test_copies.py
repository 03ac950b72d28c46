"""Runs in several published result sets: the record of all rounds, and our findings."""

from collections import Counter
from itertools import combinations
from pathlib import Path

from mlperf_pkg.checker.check import check
from mlperf_pkg.checker.values import Options
from mlperf_pkg.checks.copies import check_previews
from mlperf_pkg.findings import Finding
from tests.helpers.corpus import CORPUS, ROUNDS, checked, needs_corpus
from tests.helpers.record import contexts, opinions, paths, rows

pytestmark = needs_corpus

CODES = ("SET150", "SET151")
Pairs = set[frozenset[str]]


def recorded_pairs(*, below: bool = True) -> Pairs:
    """The pairs of result sets with an identical log; ``below`` counts logs in folders of a set."""
    sets: dict[str, set[str]] = {}
    for row in rows("logs"):
        if below or "/" not in row["name"]:
            sets.setdefault(row["sha256_16"], set()).add(paths()[row["set"]])
    return {frozenset(pair) for owners in sets.values() for pair in combinations(owners, 2)}


# ---- the corpus ----------------------------------------------------------------------------


def is_there(path: str) -> bool:
    return (CORPUS / path).is_dir()


def sets_with_copies(finding: Finding) -> frozenset[str]:
    original = Path(finding.places[0].found[0]).parent
    return frozenset(str(Path(path).relative_to(CORPUS)) for path in (finding.about, original))


def perlmutter(folder: str) -> frozenset[str]:
    """Runs of 1.0 that were submitted again, under the name of another submitter."""
    weak = f"results/perlmutter_10x128x4_ngc21.09_{folder}"
    return frozenset({f"hpc_v1.0/LBNL/{weak}", f"hpc_v3.0/HPE+LBNL/{weak}"})


UNDER_OTHER_BYTES = {perlmutter("mxnet/weak/cosmoflow"), perlmutter("pytorch/weak/deepcam")}


def test_exactly_the_pairs_of_the_corpus_are_reported() -> None:
    """Of all rounds together; every pair is a resubmission."""
    report = check([str(CORPUS / name) for name in ROUNDS], Options(jobs=1)).report
    copied = [finding for finding in report.findings if finding.code in CODES]
    held = {pair for pair in recorded_pairs(below=False) if all(map(is_there, pair))}
    assert held
    assert {sets_with_copies(finding) for finding in copied} == held | UNDER_OTHER_BYTES
    assert len(copied) == len(held | UNDER_OTHER_BYTES)
    kinds = {(f.code, f.severity, f.basis, f.runs == f.of_runs) for f in copied}
    assert kinds == {("SET151", "note", "advice", True)}


def test_logs_in_a_folder_of_a_set_are_in_no_set() -> None:
    """No checker reads them; another finding says so."""
    inner = recorded_pairs() - recorded_pairs(below=False)
    (pair,) = {pair for pair in inner if is_there(min(pair))}
    findings = checked("v1.0").report.findings
    unread = {f"v1.0/{f.about}": f.found for f in findings if f.code == "SET105"}
    assert unread[max(pair)] == ["bert"]


# ---- the record ----------------------------------------------------------------------------


def test_all_copies_of_the_record() -> None:
    """Each set is judged with one of those whose logs it has, and no other."""
    pairs = recorded_pairs(below=False)
    assert opinions().keys() <= pairs
    assert frozenset().union(*opinions()) == frozenset().union(*pairs)
    assert len(recorded_pairs()) == 30 + 209
    kinds = Counter(
        (len({path.split("/")[0] for path in pair}) == 1, f.code, f.severity.value)
        for pair, f in opinions().items()
    )
    assert kinds == {
        (True, "SET150", "error"): 2,  # two systems of one submitter, which judged.csv names
        (True, "SET150", "note"): 19,  # power variants, strong and weak scaling
        (False, "SET151", "note"): 161,
        (False, "SET151", "warning"): 6,  # other descriptions, since the rules ask for the same
    }


def test_published_previews() -> None:
    """Previews that became Available, with the scores of the record."""
    all_contexts = contexts()
    scores = {paths()[row["set"]]: float(row["score_minutes"] or 0) for row in rows("sets")}
    findings = check_previews(all_contexts, [scores[context.path] for context in all_contexts])
    assert Counter(finding.severity.value for _, finding in findings) == {"note": 25, "warning": 2}
