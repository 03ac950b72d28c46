"""The results in the arguments of ``compare``, with what their logs and systems say."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from mlperf_pkg.checker.check import check_inputs
from mlperf_pkg.checker.scores import ScoredSet, scores
from mlperf_pkg.checker.values import Checked, Options
from mlperf_pkg.checks.systems import SystemFile
from mlperf_pkg.commands.compare.model import Result
from mlperf_pkg.commands.compare.prices import plain
from mlperf_pkg.commands.compare.published import SUFFIX, read_published
from mlperf_pkg.commands.compare.throughput import Training, mean, read_training
from mlperf_pkg.infra.paths import AnyPath
from mlperf_pkg.rulebook.load import load_benchmark
from mlperf_pkg.rulebook.model import Benchmark
from mlperf_pkg.run.model import Run
from mlperf_pkg.submission.find import find_part, labels
from mlperf_pkg.submission.model import ResultSet

_COUNT = re.compile(r"[0-9]{1,9}")
_IN_BRACKETS = re.compile(r"\([^()]*\)")


class Filter(Struct, frozen=True):
    """Which results to compare: of every kind that has values, one must match."""

    benchmarks: tuple[str, ...] = ()
    systems: tuple[str, ...] = ()
    divisions: tuple[str, ...] = ()
    accelerators: tuple[int, ...] = ()

    def accepts_benchmark(self, name: str) -> bool:
        """Return whether results of this benchmark are compared."""
        return _any_matches(name, self.benchmarks)

    def accepts_set(self, result_set: ResultSet) -> bool:
        """Return whether results of the benchmark of a set are compared."""
        return self.accepts_benchmark(result_set.benchmark)

    def accepts(self, result: Result) -> bool:
        """Return whether this result is compared."""
        return (
            (not self.systems or any(result.matches(pattern) for pattern in self.systems))
            and self.accepts_benchmark(result.benchmark)
            and _any_matches(result.division, self.divisions)
            and (not self.accelerators or result.accelerators in self.accelerators)
        )


def _any_matches(name: str | None, patterns: Sequence[str]) -> bool:
    return not patterns or any(fnmatchcase(name or "", pattern) for pattern in patterns)


class _Key(Struct, frozen=True):
    """The identity of a result: its folder or file, its name, and its number among equal names."""

    path: AnyPath
    name: str
    number: int = 1


def read_results(
    arguments: Sequence[str],
    result_filter: Filter,
    options: Options,
    noted: Callable[[Checked], Checked] = lambda checked: checked,
) -> list[Result]:
    """Return the results in all arguments that ``result_filter`` takes, none of them twice.

    ``noted`` receives each check and returns it.

    Raises:
        UserError: as ``check`` and ``read_published``.
    """
    results: dict[_Key, Result] = {}
    for index, (argument, prefix) in enumerate(zip(arguments, labels(arguments), strict=True)):
        path = Path(argument)
        if path.suffix.lower() == SUFFIX and path.is_file():
            published = read_published(path, index)
            new = {_Key(path.resolve(), score.path): score for score in published}
        else:
            checked = check_inputs(
                (find_part(argument, prefix, result_filter.accepts_set),), options
            )
            new = dict(_Reader(noted(checked), index).results(result_filter))
        results = {**new, **results}
    ordered = sorted(results.values(), key=lambda result: result.argument)
    return [result for result in ordered if result_filter.accepts(result)]


# ---- reading ------------------------------------------------------------------------------


class _Reader:
    """Converts checked result sets to results."""

    def __init__(self, checked: Checked, argument: int) -> None:
        self._checked = checked
        self._argument = argument
        self._runs = {run.path: run for run in checked.runs}
        self._places = {
            label: place for contents in checked.inputs for label, place in contents.places.items()
        }

    def results(self, result_filter: Filter) -> Iterator[tuple[_Key, Result]]:
        keys: Counter[_Key] = Counter()
        for scored, context in zip(scores(self._checked).sets, self._checked.contexts, strict=True):
            if result_filter.accepts_benchmark(scored.row.benchmark) and scored.runs:
                folder = self._places[scored.runs[0].path].path.resolve().parent
                key = _Key(folder, context.identity)
                keys[key] += 1
                yield replace(key, number=keys[key]), self._result(scored, context.system)

    def _result(self, scored: ScoredSet, system: SystemFile | None) -> Result:
        row, first = scored.row, self._runs[scored.runs[0].path]
        rules = load_benchmark(first.usage, row.round, row.benchmark)
        description = (system.contents if system else None) or {}
        trainings = [] if row.scaling == "weak" else self._trainings(scored)
        precisions = [name for training in trainings for name in training.precision]
        return Result(
            argument=self._argument,
            round=row.round,
            submitter=row.submitter or first.text("org") or None,
            system=row.system or "unnamed system",
            system_name=system.system_name if system else None,
            benchmark=row.benchmark,
            division=row.division,
            minutes=row.score_minutes,
            path=row.path,
            scaling=row.scaling,
            note=row.score_note,
            rules=row.verdict.rules,
            accelerators=system.accelerators if system else None,
            nodes=_count(description.get("number_of_nodes")),
            hardware=hardware_of(description.get("accelerator_model_name")),
            framework=framework_of(description.get("framework")),
            unit=_unit(rules),
            samples_per_second=mean(training.samples_per_second for training in trainings),
            logged_throughput=mean(training.logged_throughput for training in trainings),
            energy_joules=row.energy_joules,
            precision=", ".join(dict.fromkeys(precisions)) or None,
            target=target_of(rules),
            availability=_text(description.get("status")),
            hyperparameters=_hyperparameters(first),
        )

    def _trainings(self, scored: ScoredSet) -> list[Training]:
        """What the logs of the runs that count in the score say of their speed."""
        return [self._training(run.path) for run in scored.runs if run.dropped is None]

    def _training(self, path: str) -> Training:
        return read_training(self._places[path].source, self._runs[path])


def _count(value: Any) -> int | None:
    text = str(value).strip()
    return int(text) or None if _COUNT.fullmatch(text) else None


def _text(value: Any) -> str | None:
    return value.strip() or None if isinstance(value, str) else None


def _hyperparameters(run: Run) -> dict[str, str]:
    """Return the hyperparameters of a run, with its batch size."""
    batch_sizes = [("global_batch_size", size) for size in run.batch_sizes[:1]]
    return {**dict(batch_sizes), **run.hyperparameters}


def hardware_of(value: Any) -> str | None:
    """Return the accelerator without remarks: ``A100 (400W)`` is ``A100``."""
    return plain(_IN_BRACKETS.sub("", value)) or None if isinstance(value, str) else None


def framework_of(value: Any) -> str | None:
    """Return the first word, without version and commit."""
    return plain(value.split()[0]) or None if isinstance(value, str) and value.split() else None


def _unit(rules: Benchmark | None) -> str | None:
    if rules is None:
        return None
    return "tokens" if rules.unit == "tokens" else "samples"


def target_of(rules: Benchmark | None) -> str | None:
    """Return the quality that the rules require, as text to compare."""
    return json.dumps(rules.target, sort_keys=True) if rules else None
