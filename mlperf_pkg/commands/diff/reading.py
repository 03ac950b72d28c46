"""Read the two sides of a comparison: findings, digests of files, and the settings in logs."""

import hashlib
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import repeat

from msgspec.structs import replace

from mlperf_pkg.checker.check import check
from mlperf_pkg.checker.fold import copies_in, find_pairs
from mlperf_pkg.checker.values import Checked, Options, scores
from mlperf_pkg.checks.consistency import is_known, originals
from mlperf_pkg.checks.context import SetContext
from mlperf_pkg.checks.copies import check_previews, has_several_rounds, shared_runs
from mlperf_pkg.commands.diff.changes import Comparison, ResultSet, Side, System, compare
from mlperf_pkg.commands.diff.entries import entry_verdicts
from mlperf_pkg.commands.diff.runs import Log, as_text
from mlperf_pkg.findings import Finding, folded, in_order
from mlperf_pkg.infra.paths import AnyPath, open_file
from mlperf_pkg.infra.source import Source
from mlperf_pkg.log.reader import LogReader
from mlperf_pkg.rulebook.explain import own_keys
from mlperf_pkg.rulebook.load import load_benchmark, load_round
from mlperf_pkg.run import evaluations
from mlperf_pkg.run.model import Run
from mlperf_pkg.run.readers import is_hyperparameter
from mlperf_pkg.submission.model import Input, Place

_UNREADABLE = "cannot be read"


def compare_paths(
    old: str, new: str, options: Options, borrowed_from: str | None = None
) -> Comparison:
    """Return what changed from one path to another; each path is as for ``check``.

    If only the old side has several submissions, the one with the name of the new side is compared.
    Hyperparameters may have been borrowed from any submission of the old side, or of the round
    ``borrowed_from``.

    Raises:
        UserError: as ``check``.
    """
    before, after = (check([path], options) for path in (old, new))
    lending = check([borrowed_from], options) if borrowed_from else before
    olds, news = (checked.inputs[0].submissions for checked in (before, after))
    names = [(item.place.label, item.name) for item in news]
    own = next((o.place for o in olds if o.place.label and names == [("", o.name)]), None)
    if own:
        old = str(own.path)
        of_round = before.report
        before = check([old], replace(options, usage=of_round.usage, round=of_round.round))
    checks = (before, after)
    rounds = {(run.usage, run.round) for checked in (*checks, lending) for run in checked.runs}
    keys = frozenset[str]().union(*(settings_named(usage, round_) for usage, round_ in rounds))
    logs = _Logs(keys, checks if lending in checks else (*checks, lending))
    submissions = [checked.inputs[0].submissions for checked in checks]
    alone = all(len(of_side) == 1 for of_side in submissions)
    # A single submission may have another name on the other side; several go by their names.
    labels = [of_side[0].place.label if alone else None for of_side in submissions]
    first, second = map(_side, checks, labels, repeat(logs))
    lenders = first.sets if lending is checks[0] else tuple(_sets(lending, None, logs))
    comparison = compare(first, second)
    submitter = submissions[0][0].name if alone else None
    return replace(
        comparison,
        across_rounds=_across_rounds((old, new), checks, submitter),
        entries=entry_verdicts(comparison, first, second, lenders),
    )


class _Logs:
    """Reads logs; of those with equal bytes only one is parsed."""

    def __init__(self, keys: frozenset[str], checks: Iterable[Checked]) -> None:
        """``keys`` are those of the settings to read, ``checks`` are kept by the caller."""
        self._keys = keys
        self._settings: dict[str, dict[str, str]] = {}
        runs = [run for checked in checks for run in checked.runs if is_known(run)]
        self._runs = {id(run): index for run, index in zip(runs, originals(runs), strict=True)}

    def read(self, log: Place, run: Run | None) -> Log:
        """Return the digest of a log, its settings and its run."""
        digest = _digest(log.path)
        if digest == _UNREADABLE:
            return Log(log.name, digest, {})
        if digest not in self._settings:
            self._settings[digest] = read_settings(log.source, self._keys)
        key = self._runs.get(id(run), digest)
        return Log(log.name, digest, self._settings[digest], key, log.source)


def _digest(path: AnyPath) -> str:
    try:
        with open_file(path) as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError:
        return _UNREADABLE


def _side(checked: Checked, label: str | None, logs: _Logs) -> Side:
    """Return a side; ``label`` is that of its submission if it is compared alone."""
    contents = checked.inputs[0]
    places = checked.inputs[0].places
    sets = tuple(_sets(checked, label, logs))
    compared = {system.path for system in checked.systems}
    compared |= {run.path for scored in scores(checked).sets for run in scored.runs}
    return Side(
        verdict=checked.report.verdict,
        systems=tuple(
            System(_within(label, s.path), s.id, _digest(places[s.path].path), s.contents or {})
            for s in checked.systems
        ),
        sets=sets,
        findings=tuple(_outside(checked.report.findings, sets)),
        files={_within(label, path): digest for path, digest in _others(contents, compared)},
    )


def _sets(checked: Checked, label: str | None, logs: _Logs) -> Iterator[ResultSet]:
    places = checked.inputs[0].places
    runs = {run.path: run for run in checked.runs}
    rows = zip(scores(checked).sets, checked.sets, checked.contexts, strict=True)
    for scored, result, context in rows:
        described = context.system.submitter if context.system and label is not None else None
        in_tree = context.origin.has_folder
        path = _within(label, scored.row.path)
        name = (scored.row.submitter or "") if in_tree else ""
        yield ResultSet(
            path=path,
            row=scored.row,
            logs=tuple(logs.read(places[run.path], runs.get(run.path)) for run in scored.runs),
            findings=tuple(result.observations),
            system=context.system,
            submitter=described if name and described is not None else name,
            identity=context.identity,
            is_raw=not in_tree,
        )


def _outside(findings: Iterable[Finding], sets: Iterable[ResultSet]) -> Iterator[Finding]:
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
            yield log.label, _digest(log.path)
    for submission in contents.submissions:
        for entry in submission.entries:
            place = submission.place.child(entry.path)
            if place.label not in compared and not (entry.folder and entry.link is None):
                # Links are not followed; a pipe or a device would never end.
                link = None if entry.link is None else f"link to {entry.link}"
                yield place.label, link or (_digest(place.path) if place.path.is_file() else "")


def _within(label: str | None, path: str) -> str:
    return path.removeprefix(f"{label}/") if label else path


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
    settings = (key for key in keys - _OUTCOMES if not key.startswith("submission_"))
    return frozenset(key for key in settings if not key.endswith(_SUFFIXES))


def read_settings(source: Source, keys: frozenset[str]) -> dict[str, str]:
    """Return the values of these keys, and of all hyperparameters, in a log as JSON by key.

    Several values are separated by commas. Equal numbers have equal text: ``1.0`` becomes ``1``.

    Raises:
        OSError: the log cannot be read.
    """
    values: dict[str, dict[str, None]] = {}
    with source.open() as stream:
        for record in filter(None, LogReader(stream, source.label, lambda _: None)):
            if isinstance(record.key, str) and (
                record.key in keys or is_hyperparameter(record.key)
            ):
                texts = values.setdefault(record.key, {})
                if len(texts) < MAX_VALUES:
                    texts[as_text(record.value)] = None
    return {key: ", ".join(texts) for key, texts in values.items()}


# ---- findings between rounds ----------------------------------------------------------------


def _across_rounds(
    names: Sequence[str], checks: Sequence[Checked], submitter: str | None
) -> tuple[Finding, ...]:
    """Return the findings between the sides; their ``names`` begin the paths.

    There are none between sides of one round, which are versions of each other. ``submitter`` is
    the name of both sides if they are single submissions, whose names may differ.
    """
    sides = [list(_contexts(*side, submitter)) for side in zip(names, checks, strict=True)]
    contexts = [context for side in sides for context in side]
    if not has_several_rounds(contexts):
        return ()
    sources = {
        _below(name, label): place.source
        for name, checked in zip(names, checks, strict=True)
        for label, place in checked.inputs[0].places.items()
    }
    every = find_pairs(contexts, shared_runs(contexts), sources)
    old = len(sides[0])
    pairs = (p for p in every if (p.original.index < old) != (p.copy.index < old))
    findings = copies_in(contexts, (p for p in pairs if p.original.round != p.copy.round))
    if not any(map(has_several_rounds, sides)):
        minutes = [row.score_minutes for checked in checks for row in checked.report.result_sets]
        for index, finding in check_previews(contexts, minutes):
            findings.setdefault(index, []).append(finding)
    return in_order(
        finding
        for context, of_set in ((contexts[index], of_set) for index, of_set in findings.items())
        for finding in folded(of_set, context.label, [r.path for r in context.runs], context.id)
    )


def _contexts(name: str, checked: Checked, submitter: str | None) -> Iterator[SetContext]:
    """Yield the sets of a side, with paths below its name."""
    for context in checked.contexts:
        place = context.files.place
        label = _below(name, place.label)
        yield replace(
            context,
            files=replace(context.files, place=replace(place, label=label)),
            runs=tuple(replace(run, path=_below(name, run.path)) for run in context.runs),
            submitter=submitter or context.submitter,
            id=f"{context.id} in {name.rstrip('/')}",
        )


def _below(name: str, label: str) -> str:
    return f"{name.rstrip('/')}/{label}"
