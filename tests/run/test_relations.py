"""What two runs with equal values are to each other: a copy, processes of one run, or another."""

from collections.abc import Sequence
from itertools import accumulate, combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from mlperf_pkg.findings import Verdict, Verdicts
from mlperf_pkg.published.model import equal_values, is_series
from mlperf_pkg.rulebook.rounds import TRAINING
from mlperf_pkg.run import relations
from mlperf_pkg.run.model import Run
from mlperf_pkg.run.relations import RunRelation, originals, related_pairs, relation_of

START = 1_700_000_000_000.0
DAY = 86_400_000.0
COPY, PROCESSES, REPEATED = RunRelation.COPY, RunRelation.PROCESSES, RunRelation.REPEATED


def run_at(stamps: Sequence[float], values: Sequence[float] | None = None, **more: object) -> Run:
    """A run with its start, evaluations and stop at these times."""
    evaluated_ms = tuple(stamps[1:-1])
    if values is None:
        values = [0.1 * n + 0.137 for n in range(len(evaluated_ms))]
    return Run(
        path="log",
        usage=TRAINING,
        round="4.0",
        round_reason="",
        findings=(),
        verdicts=Verdicts(Verdict.PASS, Verdict.PASS),
        start_ms=stamps[0],
        stop_ms=stamps[-1],
        evaluated=tuple(values),
        evaluated_ms=evaluated_ms,
        **more,  # type: ignore[arg-type]
    )


STAMPS = [START + t for t in (0, 61_003, 121_967, 183_041, 244_002, 245_117)]
MANY = [START + 60_000.0 * n + (n * n * 7919) % 997 for n in range(12)]
REPEAT = [stamp + (n * 7919) % 1237 for n, stamp in enumerate(STAMPS)]


def later(by_ms: float, stamps: Sequence[float] = STAMPS) -> list[float]:
    return [stamp + by_ms for stamp in stamps]


def scaled(factor: float) -> list[float]:
    return [START + DAY + round(factor * (stamp - START)) for stamp in STAMPS]


CASES = [
    ("the same stamps", STAMPS, STAMPS, COPY),
    ("a day later", STAMPS, later(DAY), COPY),
    ("two seconds later, at once", STAMPS, later(2000), COPY),
    ("faster", STAMPS, scaled(0.98), COPY),
    ("slower", STAMPS, scaled(1.5), COPY),
    ("in seconds", STAMPS, [round(t / 1000) * 1000 for t in later(DAY)], COPY),
    ("start and stop edited", MANY, [MANY[0] + 9e3, *MANY[1:-1], MANY[-1] - 9e3], COPY),
    ("a log of its first part", MANY, MANY[:9], COPY),
    ("another process", STAMPS, [t + n * 90 for n, t in enumerate(STAMPS)], PROCESSES),
    (
        "processes, seconds late",
        STAMPS,
        [t + n * 400 for n, t in enumerate(STAMPS)],
        REPEATED,
    ),
    (
        "one after the other, within a second",
        [START + t for t in (0, 103, 207, 301, 400, 409)],
        [START + t for t in (500, 604, 701, 803, 905, 911)],
        REPEATED,
    ),
    ("a clock of its own, later", STAMPS, later(DAY, REPEAT), REPEATED),
    ("a clock of its own, at once", STAMPS, later(3000, REPEAT), REPEATED),
    ("one stamp moved, of few", STAMPS, [*later(DAY, STAMPS[:-1]), STAMPS[-1] + DAY + 3], REPEATED),
    ("three stamps and a factor", [START, START + 500, START + 9000], [0, 1000, 18000], REPEATED),
]


@pytest.mark.parametrize(
    ("stamps", "others", "expected"), [c[1:] for c in CASES], ids=[c[0] for c in CASES]
)
def test_by_the_clock(
    stamps: Sequence[float], others: Sequence[float], expected: RunRelation
) -> None:
    values = (0.1, 0.2, 0.3, 0.4)
    run = run_at(stamps, losses=values)
    other = run_at(others, losses=values)
    assert relation_of(run, other) is expected
    assert relation_of(other, run) is expected
    assert originals([run, other]) == ([0, 1] if expected is REPEATED else [0, 0])
    assert next(related_pairs([run, other])) == (0, 1, expected)


VALUES = (0.1, 0.2, 0.3, 0.4)
EQUAL = [
    ("noise", [v * 1.000008 for v in VALUES], {}, True),
    ("other values", [v * 1.001 for v in VALUES], {}, False),
    ("equal losses and other values", [v * 1.1 for v in VALUES], {"losses": VALUES}, False),
    ("other losses", list(VALUES), {"losses": [v * 1.1 for v in VALUES]}, False),
]


@pytest.mark.parametrize(
    ("values", "more", "is_equal"), [c[1:] for c in EQUAL], ids=[c[0] for c in EQUAL]
)
def test_by_the_values(values: Sequence[float], more: object, is_equal: bool) -> None:
    """A run that differs in a series is not a repetition, whatever else is equal."""
    run = run_at(STAMPS, VALUES, losses=VALUES)
    other = run_at(later(DAY, REPEAT), values, **more)  # type: ignore[arg-type]
    assert relation_of(run, other) is (REPEATED if is_equal else None)


def test_a_copy_with_other_evaluations_is_known_by_its_losses() -> None:
    run = run_at(STAMPS, VALUES, losses=VALUES)
    other = run_at(later(DAY), [v * 1.1 for v in VALUES], losses=VALUES)
    assert relation_of(run, other) is COPY


@pytest.mark.parametrize("field", ["start_ms", "stop_ms"])
def test_a_log_without_start_or_stop_is_known_by_its_evaluations(field: str) -> None:
    run = replace(run_at(STAMPS), **{field: None})
    assert relation_of(run, run_at(later(DAY))) is COPY
    assert relation_of(run, run_at(later(DAY, REPEAT))) is REPEATED


def test_without_a_clock_nothing_is_a_copy() -> None:
    run = replace(run_at(STAMPS), start_ms=None, stop_ms=None, evaluated_ms=())
    assert relation_of(run, run) is REPEATED


def test_equal_fingerprints_are_of_one_run() -> None:
    runs = [run_at(STAMPS, [0.5] * 4, fingerprint=b"x"), run_at(later(DAY), [0.5] * 4)]
    assert originals(runs) == [0, 1]
    assert originals([runs[0], replace(runs[1], fingerprint=b"x")]) == [0, 0]


def test_a_copy_with_noise_is_found_beside_an_equal_log() -> None:
    run = run_at(STAMPS, fingerprint=b"x")
    noisy = [value * 1.000008 for value in run.evaluated]
    runs = [run, run, run_at(later(DAY), noisy, fingerprint=b"y")]
    assert originals(runs) == [0, 0, 0]


@st.composite
def clocks(draw: st.DrawFn) -> list[float]:
    """The stamps of a run, not all in whole seconds."""
    intervals = draw(st.lists(st.integers(2_000, 900_000), min_size=4, max_size=17))
    return list(accumulate(intervals, initial=START + 7))


@given(clocks(), st.integers(-(10**11), 10**11), st.floats(0.5, 2))
def test_a_copy_is_found_after_any_shift_and_factor(
    stamps: list[float], shift: int, factor: float
) -> None:
    others = [round(START + shift + factor * (stamp - START)) for stamp in stamps]
    assert relation_of(run_at(stamps), run_at(others)) is not REPEATED
    assert relation_of(run_at(others), run_at(stamps)) is not REPEATED


@given(clocks(), st.data(), st.integers(10_000, 10**11))
def test_jitter_of_a_clock_of_its_own_is_no_copy(
    stamps: list[float], data: st.DataObject, shift: int
) -> None:
    size = len(stamps)
    jitter = data.draw(st.lists(st.integers(5, 900), min_size=size, max_size=size))
    others = [stamp + shift + jitter[n] * (-1) ** n for n, stamp in enumerate(stamps)]
    assert relation_of(run_at(stamps), run_at(others)) is REPEATED


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["bert", "resnet"]),
            st.sampled_from([0.0, 0.1, 0.1 * (1 + 1.9e-5), 0.1 * (1 + 2.1e-5), -0.1, 5.0]),
            st.sampled_from([(), (0.2,), (0.2, 0.3), (0.2, 0.3, 0.4), (0.2, 0.3, 0.5)]),
        ),
        max_size=12,
    )
)
def test_runs_with_near_values_are_all_paired(rows: list[tuple[str, float, list[float]]]) -> None:
    """As if all were compared with all."""
    runs = []
    for benchmark, first, more in rows:
        run = run_at(STAMPS, [first, *more] if more else [])
        runs.append(replace(run, described={"benchmark": benchmark}))
    expected = set()
    for (index, run), (other_index, other) in combinations(enumerate(runs), 2):
        values, others = run.evaluated, other.evaluated
        are_series = is_series(values) and is_series(others)
        if are_series and run.benchmark == other.benchmark and equal_values(values, others):
            expected.add((index, other_index))
    assert set(relations._near_pairs(runs, "evaluated")) == expected
