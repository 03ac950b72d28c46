"""What the arguments of ``compare`` hold: results with what their logs and systems tell."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from mlperf_pkg.checker.check import check_inputs
from mlperf_pkg.checker.scores import ScoredSet, scores
from mlperf_pkg.checker.values import Checked, Options
from mlperf_pkg.commands.compare.prices import plain
from mlperf_pkg.commands.compare.published import SUFFIX, read_published
from mlperf_pkg.commands.compare.ratios import Entry, named
from mlperf_pkg.commands.compare.throughput import Training, mean, read_training
from mlperf_pkg.infra.stores import StoredPath
from mlperf_pkg.results.report import description_path
from mlperf_pkg.rulebook.load import load_benchmark
from mlperf_pkg.rulebook.model import Benchmark
from mlperf_pkg.submission.find import find_input, labels
from mlperf_pkg.submission.model import Input, Submission

_DEPTH = 3  # results/<system>/<strong or weak>/<benchmark>
_COUNT = re.compile(r"[0-9]{1,9}")
_IN_BRACKETS = re.compile(r"\([^()]*\)")


class Wanted(Struct, frozen=True):
    """Which results to compare: patterns, of which one must match; all, where there are none."""

    benchmarks: tuple[str, ...] = ()
    systems: tuple[str, ...] = ()
    divisions: tuple[str, ...] = ()

    def benchmark(self, name: str) -> bool:
        """Whether results of this benchmark are wanted."""
        return _any(name, self.benchmarks)

    def entry(self, entry: Entry) -> bool:
        """Whether this result is wanted."""
        systems = not self.systems or any(named(entry, each) for each in self.systems)
        return systems and self.benchmark(entry.benchmark) and _any(entry.division, self.divisions)


def _any(name: str | None, patterns: Sequence[str]) -> bool:
    return not patterns or any(fnmatchcase(name or "", each) for each in patterns)


def contenders(arguments: Sequence[str], wanted: Wanted, how: Options) -> list[Entry]:
    """The results of all arguments that are ``wanted``, none of them twice.

    Raises:
        UserError: as ``check`` and ``read_published``.
    """
    found: dict[tuple[Path | StoredPath, str], Entry] = {}
    listed: dict[tuple[Path | StoredPath, str], Entry]
    for index, (argument, prefix) in enumerate(zip(arguments, labels(arguments), strict=True)):
        path = Path(argument)
        if path.suffix.lower() == SUFFIX and path.is_file():
            listed = {(path.resolve(), each.path): each for each in read_published(path, index)}
        else:
            checked = check_inputs((_find(argument, prefix, wanted),), how)
            listed = dict(_Reader(checked, index).entries(wanted))
        found = {**listed, **found}
    ordered = sorted(found.values(), key=lambda each: each.argument)
    return [entry for entry in ordered if wanted.entry(entry)]


# ---- finding ------------------------------------------------------------------------------


def _find(argument: str, prefix: str, wanted: Wanted) -> Input:
    """As ``find_input``, without benchmarks that are not wanted.

    A folder below ``results/`` of a submission is a part of it, whose systems are known.
    """
    path = Path(argument).resolve()
    given = find_input(argument, prefix)  # tells what is wrong with the argument
    for results in (path, *path.parents)[: _DEPTH + 1] if path.is_dir() else ():
        if results.name == "results" and (results.parent / "systems").is_dir():
            whole = os.path.relpath(results.parent)
            given = find_input(whole, prefix and whole)
            break
    parts = (_part(each, path, wanted) for each in given.submissions)
    return replace(given, submissions=tuple(parts))


def _part(submission: Submission, path: Path, wanted: Wanted) -> Submission:
    """The result sets in ``path`` or around it, and the systems, of a submission."""
    sets = (
        each
        for each in submission.result_sets
        if each.place.local.resolve().is_relative_to(path) and wanted.benchmark(each.benchmark)
    )
    return replace(submission, result_sets=tuple(sets), entries=())


# ---- reading ------------------------------------------------------------------------------


class _Reader:
    """Makes entries of what was checked."""

    def __init__(self, checked: Checked, argument: int) -> None:
        self._checked = checked
        self._argument = argument
        self._systems = {system.path: system for system in checked.systems}
        self._runs = {run.path: run for run in checked.runs}
        self._places = {
            label: place for given in checked.inputs for label, place in given.places.items()
        }

    def entries(self, wanted: Wanted) -> Iterator[tuple[tuple[Path | StoredPath, str], Entry]]:
        """Each result with what it is known again by: its folder, and what it is the result of."""
        for each in scores(self._checked).sets:
            if wanted.benchmark(each.row.benchmark) and each.runs:
                folder = self._places[each.runs[0].path].path.resolve().parent
                entry = self._entry(each)
                yield (folder, "/".join((*entry.group, entry.system))), entry

    def _entry(self, each: ScoredSet) -> Entry:
        row = each.row
        usage = self._runs[each.runs[0].path].usage
        rules = load_benchmark(usage, row.round, row.benchmark)
        system = self._systems.get(description_path(row))
        described = (system.contents if system else None) or {}
        trained = [] if row.scaling == "weak" else self._trained(each)
        return Entry(
            argument=self._argument,
            round=row.round,
            submitter=row.submitter or self._runs[each.runs[0].path].text("org") or None,
            system=row.system or "no system named",
            system_name=system.system_name if system else None,
            benchmark=row.benchmark,
            division=row.division,
            minutes=row.score_minutes,
            path=row.path,
            scaling=row.scaling,
            note=row.score_note,
            rules=row.verdict.rules,
            accelerators=system.accelerators if system else None,
            nodes=_count(described.get("number_of_nodes")),
            hardware=_hardware(described.get("accelerator_model_name")),
            framework=_framework(described.get("framework")),
            unit=_unit(rules),
            samples_per_second=mean(one.samples_per_second for one in trained),
            logged_throughput=mean(one.logged_throughput for one in trained),
            energy_joules=row.energy_joules,
            precision=", ".join(dict.fromkeys(p for one in trained for p in one.precision)) or None,
            target=_target(rules),
        )

    def _trained(self, each: ScoredSet) -> list[Training]:
        """What the logs of the runs that count in the score say of their speed."""
        counted = [run.path for run in each.runs if run.dropped is None]
        return [self._training(path) for path in counted]

    def _training(self, path: str) -> Training:
        return read_training(self._places[path].source, self._runs[path])


def _count(value: Any) -> int | None:
    text = str(value).strip()
    return int(text) or None if _COUNT.fullmatch(text) else None


def _hardware(value: Any) -> str | None:
    """The accelerator without remarks, so that ``A100 (400W)`` is ``A100``."""
    return plain(_IN_BRACKETS.sub("", value)) or None if isinstance(value, str) else None


def _framework(value: Any) -> str | None:
    """The first word, without version and commit."""
    return plain(value.split()[0]) or None if isinstance(value, str) and value.split() else None


def _unit(rules: Benchmark | None) -> str | None:
    if rules is None:
        return None
    return "tokens" if rules.unit == "tokens" else "samples"


def _target(rules: Benchmark | None) -> str | None:
    return json.dumps(rules.target, sort_keys=True) if rules else None
