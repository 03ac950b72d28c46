"""Facts that a reviewer looks at in every submission, with or without a finding on them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from operator import itemgetter
from statistics import median

from mlperf_pkg.checks.copies import AVAILABLE
from mlperf_pkg.checks.descriptions import PREVIEW, category
from mlperf_pkg.commands.review.convergence import MISSING, state
from mlperf_pkg.commands.review.software import previous_sets, software
from mlperf_pkg.commands.review.subject import Subject, Tested, grouped, listed, short
from mlperf_pkg.infra.text import letters
from mlperf_pkg.results.rcp import margin_in_words
from mlperf_pkg.results.wording import counted

_CLOSE = 1.0  # percent of RCP margin
_FAR = 2.0  # times the median of the runs
_WHOLE = 10  # times: from here on without decimals
_FEWEST = 3  # runs with a median
_OTHER_FACTORS = frozenset({"SET118", "SET120"})


def code(subject: Subject) -> Iterator[str]:
    """Yield the files of code, and the sets without a configuration."""
    contents = next((item.context.code for item in subject.sets), None)
    if contents is None:
        yield "no benchmarks/ folder: does the code in the repository match the logs?"
        return
    if not contents:
        return
    files = sum(len(of_benchmark.files) for of_benchmark in contents.values())
    yield f"{counted(files, 'file')} for {listed(contents, 6)}: does the code match the logs?"
    without = [item.name for item in subject.sets if not _has_configuration(item)]
    if without:
        yield f"no file is named after the system or is a configuration: {_sets(without)}"


def _has_configuration(item: Tested) -> bool:
    contents = (item.context.code or {}).get(item.context.files.benchmark)
    names = [path.rpartition("/")[2].lower() for path in contents.files] if contents else []
    system = letters(item.row.system or "")
    return not contents or any(
        name.startswith("config") or system in letters(name) for name in names
    )


def statuses(subject: Subject) -> Iterator[str]:
    """Yield the availabilities of the systems, and the Previews."""
    if not subject.systems:
        return
    pairs = [(system.status or "none", system.id) for system in subject.systems]
    kinds = {system.id: category(system.status or "") for system in subject.systems}
    is_available = any(kind in AVAILABLE for kind in kinds.values())
    question = ": can customers get the available systems now?" if is_available else ""
    yield f"{grouped(pairs)}{question}"
    if previews := [name for name, kind in kinds.items() if kind == PREVIEW]:
        yield f"Previews, which require Available successors with new logs: {listed(previews)}"


def previews(subject: Subject) -> Iterator[str]:
    """Yield the previews of the submitter's last published round."""
    rows = [row for row in previous_sets(subject) if category(row.status) == PREVIEW]
    if rows:
        models = listed(row.accelerator_model or row.system for row in rows)
        yield (
            f"{counted(len(rows), 'Preview result')} in {rows[0].round} ({models}): are successors"
            " due? See the section Previews"
        )


def convergence(subject: Subject) -> Iterator[str]:
    """Yield the sets that are close to the limit of the RCP test, or lack a reference point."""
    margins = {item.name: item.row.rcp.margin_percent for item in subject.sets if item.row.rcp}
    close = {
        name: margin
        for name, margin in margins.items()
        if margin is not None and 0 <= margin < _CLOSE
    }
    if close:
        words = (
            f"{name} {margin_in_words(margin)}"
            for name, margin in sorted(close.items(), key=itemgetter(1))
        )
        yield f"RCP margin below {_CLOSE:g} %: {listed(words)}"
    if missing := [item.name for item in subject.sets if state(item.row) == MISSING]:
        yield f"no reference point: {_sets(missing)}"
    if other := [f for f in subject.findings if f.code in _OTHER_FACTORS]:
        words = (f"{short(finding.about)} {finding.found:.4g}" for finding in other)
        yield f"factors of scaling.json, to be approved by the review: {listed(words)}"


def hyperparameters(subject: Subject) -> Iterator[str]:
    """Yield the outliers of each set."""
    by_set: dict[str, list[str]] = {}
    for _, outlier in subject.outliers:
        value = f"{outlier.key} {outlier.entry.words(outlier.key)}"
        by_set.setdefault(short(outlier.entry.path), []).append(value)
    yield from (f"outliers of {name}: {listed(values)}" for name, values in by_set.items())


def seeds(subject: Subject) -> Iterator[str]:
    """Yield the sets whose runs all have the same seed."""
    same = []
    for item in subject.sets:
        values = [{seed.value for seed in run.seeds} for run in item.context.runs]
        if len(values) > 1 and len(values[0]) == 1 and all(own == values[0] for own in values):
            same.append(item.name)
    if same:
        yield f"the same seed in all runs: {_sets(same)}"


def runs(subject: Subject) -> Iterator[str]:
    """Yield the runs that take far more or less time than others of their set."""
    outlying = [words for item in subject.sets for words in _outlying_runs(item)]
    if outlying:
        yield f"unlike the other runs of their set: {listed(outlying)}"


def _outlying_runs(item: Tested) -> Iterator[str]:
    converged = [run for run in item.context.runs if run.converged and run.minutes]
    if len(converged) < _FEWEST:
        return
    usual = median(run.minutes or 0 for run in converged)
    for run in converged:
        ratio = (run.minutes or 0) / usual
        if not 1 / _FAR < ratio < _FAR:
            times = f"{ratio:.2f}" if ratio < _WHOLE else f"{ratio:,.0f}"
            yield f"{short(run.path)} takes {times} times the median"


def power(subject: Subject) -> Iterator[str]:
    """Yield the sets with power measurements."""
    measured = [item.name for item in subject.sets if item.row.energy_joules is not None]
    if measured:
        yield (
            f"energy of {_sets(measured)}: does it cover all nodes, the interconnect and the"
            " conversion efficiency?"
        )


def _sets(names: Sequence[str]) -> str:
    return f"{counted(len(names), 'result set')} ({listed(names)})"


FACTS: dict[str, Callable[[Subject], Iterator[str]]] = {
    "Code": code,
    "Statuses": statuses,
    "Software": software,
    "Previews": previews,
    "Hyperparameters": hyperparameters,
    "Convergence": convergence,
    "Runs": runs,
    "Seeds": seeds,
    "Power": power,
}
"""The facts by topic."""
