"""Read the two sides of a comparison: findings, digests of files, and the settings in logs."""

import hashlib
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import BinaryIO

from msgspec import Struct
from msgspec.structs import replace

from mlperf_pkg.checker.check import check, check_inputs
from mlperf_pkg.checker.fold import copies_in, find_pairs
from mlperf_pkg.checker.values import Checked, Options, ScoredSet, scores
from mlperf_pkg.checks.context import SetContext
from mlperf_pkg.checks.copies import check_previews, has_several_rounds, shared_runs
from mlperf_pkg.checks.descriptions import SystemFile
from mlperf_pkg.checks.resubmission import SubmittedSet, submitted_set
from mlperf_pkg.commands.diff.changes import (
    ComparedSet,
    ComparedSide,
    ComparedSystem,
    VersionComparison,
    compare,
)
from mlperf_pkg.commands.diff.entries import entry_verdicts
from mlperf_pkg.commands.diff.runs import ComparedLog, as_text
from mlperf_pkg.findings import Finding, folded, in_order
from mlperf_pkg.infra.paths import open_file
from mlperf_pkg.infra.source import Source
from mlperf_pkg.infra.streams import decompressed
from mlperf_pkg.log.reader import LogReader
from mlperf_pkg.rulebook.explain import own_keys
from mlperf_pkg.rulebook.load import load_benchmark, load_round
from mlperf_pkg.run import evaluations
from mlperf_pkg.run.model import Run
from mlperf_pkg.run.readers import is_hyperparameter
from mlperf_pkg.run.relations import is_known, originals
from mlperf_pkg.submission.find import find_alone
from mlperf_pkg.submission.model import Input, Place
from mlperf_pkg.submission.submitters import SubmitterNames

_UNREADABLE = "cannot be read"


class _Version(Struct, frozen=True):
    """A path that was checked: one of the two versions to compare."""

    path: str
    checked: Checked

    def below(self, label: str) -> str:
        """Return a path within the version as one that begins with the version's path."""
        return f"{self.path.rstrip('/')}/{label}"

    @property
    def sources(self) -> dict[str, Source]:
        """The files of the version by their paths."""
        places = self.checked.places
        return {self.below(label): place.source for label, place in places.items()}


def compare_paths(
    old: str, new: str, options: Options, borrowed_from: str | None = None
) -> VersionComparison:
    """Return what changed from one path to another; each path is as for ``check``.

    If only the old side has several submissions, the one with the name of the new side is compared.
    Hyperparameters may have been borrowed from any submission of the old side, or of the round
    ``borrowed_from``.

    Raises:
        UserError: as ``check``.
    """
    round_before = _Version(old, check([old], options))
    after = _Version(new, check([new], options))
    lending = check([borrowed_from], options) if borrowed_from else round_before.checked
    before = _counterpart(round_before, after.checked, options)

    checks = [before.checked, after.checked]
    if lending not in checks:
        checks.append(lending)
    logs = _Logs(checks)
    is_single = all(len(version.submissions) == 1 for version in checks[:2])
    old_side = _side(before.checked, logs, is_single=is_single)
    new_side = _side(after.checked, logs, is_single=is_single)
    lenders = old_side.sets
    if lending is not before.checked:
        lenders = tuple(_sets(lending, logs, is_single=False))

    comparison = compare(old_side, new_side)
    return replace(
        comparison,
        across_rounds=_across_rounds(before, after, is_single=is_single),
        entries=entry_verdicts(comparison, old_side, new_side, lenders),
    )


def _counterpart(before: _Version, after: Checked, options: Options) -> _Version:
    """Return the old version, or only its submission that the new version is one of.

    It is checked again alone, by the rules of the round that the whole was found to be of.
    """
    only = after.alone
    if only is None or before.checked.alone is not None:
        return before
    for submission in before.checked.submissions:
        if submission.name == only.name:
            report = before.checked.report
            options = replace(options, usage=report.usage, round=report.round)
            checked = check_inputs((find_alone(submission),), options)
            return _Version(str(submission.place.path), checked)
    return before


_CHUNK = 1 << 20


class _Logs:
    """Reads logs; of those with equal bytes only one is parsed."""

    def __init__(self, checks: Collection[Checked]) -> None:
        """``checks`` are those of all versions; they are kept by the caller."""
        runs = [run for checked in checks for run in checked.runs]
        self._keys = _setting_keys(runs)
        self._settings: dict[str, dict[str, str]] = {}
        known_runs = list(filter(is_known, runs))
        self._originals: dict[int, int] = {}
        for run, original in zip(known_runs, originals(known_runs), strict=True):
            self._originals[id(run)] = original

    def read(self, log: Place, run: Run | None) -> ComparedLog:
        """Return the digest of a log, its settings and its run."""
        digest = _digest(log)
        log_name = log.label.rpartition("/")[2]
        if digest == _UNREADABLE:
            return ComparedLog(log_name, digest, {})
        if digest not in self._settings:
            self._settings[digest] = read_settings(log.source, self._keys)
        key = self._originals.get(id(run), digest)
        return ComparedLog(log_name, digest, self._settings[digest], key, run, log.source)


def _setting_keys(runs: Iterable[Run]) -> frozenset[str]:
    rounds = {(run.usage, run.round) for run in runs}
    keys: set[str] = set()
    for usage, round_ in rounds:
        keys |= settings_named(usage, round_)
    return frozenset(keys)


def _digest(file: Place) -> str:
    """Return the digest of the bytes of a file, decompressed."""
    try:
        with file.source.open() if file.part else _opened(file) as stream:
            digest = hashlib.sha256()
            while data := stream.read(_CHUNK):
                digest.update(data)
            return digest.hexdigest()
    except OSError:
        return _UNREADABLE


def _opened(file: Place) -> BinaryIO:
    """Open a file that is not a part of another.

    Raises:
        OSError: the file cannot be opened; a source reads as empty if there is no permission.
    """
    stream = open_file(file.path)
    return decompressed(stream, file.compression) if file.compression else stream


def _side(checked: Checked, logs: _Logs, *, is_single: bool) -> ComparedSide:
    """Return a side; paths within a submission that ``is_single`` do not have its name."""
    path_of = _paths(checked, is_single=is_single)
    sets = tuple(_sets(checked, logs, is_single=is_single))
    compared = {system.path for system in checked.systems}
    for scored in scores(checked).sets:
        compared.update(run.label for run in scored.runs)
    files = {}
    for path, digest in _others(checked.inputs[0], compared):
        files[path_of(path)] = digest
    places = checked.places
    systems = []
    for system in checked.systems:
        systems.append(_system(path_of(system.path), system, places[system.path]))
    return ComparedSide(
        verdict=checked.report.verdict,
        systems=tuple(systems),
        sets=sets,
        findings=tuple(_outside(checked.report.findings, sets)),
        files=files,
    )


def _paths(checked: Checked, *, is_single: bool) -> Callable[[str], str]:
    """Return what makes a path of the report one that the other side has, too.

    It begins with the name of its submission, unless that ``is_single``.
    """
    return checked.submissions[0].within if is_single else checked.distinct


def _system(path: str, system: SystemFile, file: Place) -> ComparedSystem:
    return ComparedSystem(
        path=path,
        id=system.id,
        digest=_digest(file),
        fields=system.contents or {},
    )


def _sets(checked: Checked, logs: _Logs, *, is_single: bool) -> Iterator[ComparedSet]:
    """Yield the result sets of a side."""
    path_of = _paths(checked, is_single=is_single)
    places = checked.places
    runs = {run.path: run for run in checked.runs}
    rows = zip(scores(checked).sets, checked.sets, checked.contexts, strict=True)
    for scored, result, context in rows:
        set_logs = []
        for run_row in scored.runs:
            path = run_row.label
            set_logs.append(logs.read(places[path], runs.get(path)))
        submitter = _submitter(scored, context, is_single=is_single)
        yield ComparedSet(
            path=path_of(scored.row.path),
            row=scored.row,
            logs=tuple(set_logs),
            findings=tuple(result.observations),
            system=context.system,
            submitter=submitter,
            identity=context.identity,
            is_raw=not context.origin.has_folder,
            submitted=_submitted(context, submitter),
        )


def _submitted(context: SetContext, submitter: str) -> SubmittedSet:
    """Return what decides whether a set is a resubmission, with its submitter if it has one."""
    submitted = submitted_set(context)
    if not submitter:
        return submitted
    described = context.system.submitter if context.system else None
    return replace(submitted, names=SubmitterNames(submitter, described or ""))


def _submitter(scored: ScoredSet, context: SetContext, *, is_single: bool) -> str:
    """Return the name of a submission; of a single one, that in the system description."""
    name = scored.row.submitter
    if not context.origin.has_folder or not name:
        return ""
    described = context.system.submitter if context.system else None
    if is_single and described is not None:
        return described
    return name


def _outside(findings: Iterable[Finding], sets: Iterable[ComparedSet]) -> Iterator[Finding]:
    """Yield the findings of a report without those of its result sets, which it repeats."""
    repeated = Counter(finding.sort_key for result_set in sets for finding in result_set.findings)
    for finding in findings:
        if repeated[finding.sort_key]:
            repeated[finding.sort_key] -= 1
        else:
            yield finding


def _others(contents: Input, compared: Collection[str]) -> Iterator[tuple[str, str]]:
    """Yield path and digest of the files that are not ``compared`` otherwise."""
    for log in contents.logs:
        if log.label not in compared:
            yield log.label, _digest(log)
    for submission in contents.submissions:
        for entry in submission.entries:
            place = submission.place.child(entry.path)
            is_folder = entry.folder and entry.link is None
            if place.label in compared or is_folder:
                continue
            # Links are not followed; a pipe or a device would never end.
            if entry.link is not None:
                yield place.label, f"link to {entry.link}"
            elif place.path.is_file():
                yield place.label, _digest(place)
            else:
                yield place.label, ""


# ---- settings -----------------------------------------------------------------------------

MAX_VALUES = 10  # of one key in one log

# Rules name these too, but they record what happened, not what was set. "actual_..." is "not a
# hyperparameter, cannot be borrowed" in training_rules, Hyperparameters: minigo.
_OUTCOMES = evaluations.KEYS | {
    *("actual_selfplay_games_per_generation", "aggregated_eval_accuracy", "cache_clear"),
    *("config_filename", "seed", "weights_initialization"),
}
# Named in training_rules, Hyperparameter borrowing, but neither required of a log by the rulebook
# nor compared between runs.
_WRITTEN = (
    *("data_eval_samples", "evaluation_input_shape", "evaluation_overlap"),
    *("local_batch_size", "training_oversampling"),
)
_SUFFIXES = ("_start", "_stop")


def settings_named(usage: str, round_: str) -> frozenset[str]:
    """Return the keys of settings that the rules of a round name, for any of its benchmarks.

    Raises:
        UserError: the rulebook has no such round.
    """
    rulebook = load_round(usage, round_)
    keys = set(_WRITTEN).union(*rulebook.sections.values())
    for name in rulebook.benchmarks:
        benchmark = load_benchmark(usage, round_, name)
        if benchmark:
            keys.update(benchmark.variants, own_keys(benchmark))
    keys -= _OUTCOMES
    return frozenset(
        key for key in keys if not key.startswith("submission_") and not key.endswith(_SUFFIXES)
    )


def read_settings(source: Source, keys: frozenset[str]) -> dict[str, str]:
    """Return the values of these keys, and of all hyperparameters, in a log as JSON by key.

    Several values are separated by commas. Equal numbers have equal text: ``1.0`` becomes ``1``.

    Raises:
        OSError: the log cannot be read.
    """
    values: dict[str, dict[str, None]] = {}
    with source.open() as stream:
        for block in LogReader(stream, source.label, lambda _: None).blocks():
            for key, indexes in block.indexes.items():
                if key in keys or is_hyperparameter(key):
                    texts = values.setdefault(key, {})
                    for value in block.values(indexes):
                        if len(texts) == MAX_VALUES:
                            break
                        texts[as_text(value)] = None
    return {key: ", ".join(texts) for key, texts in values.items()}


# ---- findings between rounds ----------------------------------------------------------------


def _across_rounds(before: _Version, after: _Version, *, is_single: bool) -> tuple[Finding, ...]:
    """Return the findings between the versions, whose paths begin with those of the versions.

    There are none between versions of one round. Submissions of which each version is a single one
    have the submitter of the old version, as their names may differ.
    """
    submitter = before.checked.submissions[0].name if is_single else None
    old_contexts = list(_contexts(before, submitter))
    new_contexts = list(_contexts(after, submitter))
    contexts = [*old_contexts, *new_contexts]
    if not has_several_rounds(contexts):
        return ()
    sources = {**before.sources, **after.sources}
    findings = _resubmissions(contexts, len(old_contexts), sources)
    # Previews between the rounds of one side are findings of that side.
    if not has_several_rounds(old_contexts) and not has_several_rounds(new_contexts):
        rows = [*before.checked.report.result_sets, *after.checked.report.result_sets]
        minutes = [row.score_minutes for row in rows]
        for index, finding in check_previews(contexts, minutes):
            findings.setdefault(index, []).append(finding)
    return in_order(_folded(contexts, findings))


def _resubmissions(
    contexts: Sequence[SetContext], old_sets: int, sources: dict[str, Source]
) -> dict[int, list[Finding]]:
    """Return the findings on runs that sets of both versions have, of different rounds.

    The findings are by the index of the set; the first ``old_sets`` are those of the old version.
    """
    pairs = []
    for pair in find_pairs(contexts, shared_runs(contexts), sources):
        is_original_old = pair.original.index < old_sets
        is_copy_old = pair.copy.index < old_sets
        if is_original_old != is_copy_old and pair.original.round != pair.copy.round:
            pairs.append(pair)
    return copies_in(contexts, pairs)


def _folded(
    contexts: Sequence[SetContext], findings: dict[int, list[Finding]]
) -> Iterator[Finding]:
    for index, set_findings in findings.items():
        context = contexts[index]
        paths = [run.path for run in context.runs]
        yield from folded(set_findings, context.label, paths, context.id)


def _contexts(version: _Version, submitter: str | None) -> Iterator[SetContext]:
    """Yield the sets of a version, with paths that begin with its path."""
    side = version.path.rstrip("/")
    for context in version.checked.contexts:
        files = context.files
        place = replace(files.place, label=version.below(files.place.label))
        runs = [replace(run, path=version.below(run.path)) for run in context.runs]
        yield replace(
            context,
            files=replace(files, place=place),
            runs=tuple(runs),
            submitter=submitter or context.submitter,
            id=f"{context.id} in {side}",
        )
