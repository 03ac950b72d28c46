"""Whether two result sets may have the same runs: the findings on copies."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from operator import attrgetter

from msgspec import Struct

from mlperf_pkg.checks.copies import Owner, Pair
from mlperf_pkg.checks.described import PREVIEW, category
from mlperf_pkg.checks.systems import SystemFile
from mlperf_pkg.findings import MAX_MESSAGES, Basis, Finding, Severity, in_words
from mlperf_pkg.results import wording
from mlperf_pkg.rulebook.load import codes
from mlperf_pkg.submission.model import Place

COPIED, RESUBMITTED = "SET150", "SET151"
_SCALINGS = {"strong", "weak"}


class _Opinion(Struct, frozen=True):
    """The judgement of the rules on a pair of sets with the same runs."""

    message: str
    code: str = COPIED
    severity: Severity = Severity.NOTE
    basis: Basis = Basis.ADVICE

    @property
    def weight(self) -> int:
        """The rank of the severity, 0 for the worst."""
        return tuple(Severity).index(self.severity)


def findings_on(pairs: Sequence[Pair], with_power: Collection[Place]) -> Iterator[Finding]:
    """Yield the findings on the copies of one result set: one for each original and run.

    ``with_power`` are the trees with power measurements. If there are more than ``MAX_MESSAGES``
    originals, those with the fewest runs share a finding.
    """
    by_runs = sorted(pairs, key=lambda pair: (-len(pair.runs), pair.original.context.path))
    is_many = len(pairs) > MAX_MESSAGES
    apart = MAX_MESSAGES - 1 if is_many else len(by_runs)
    for pair in by_runs[:apart]:
        yield from _findings(_opinion(pair, with_power), [pair])
    if is_many:
        rest = by_runs[apart:]
        worst = min((_opinion(pair, with_power) for pair in rest), key=attrgetter("weight"))
        name = f"{rest[0].original.context.label} and {len(rest) - 1} more result sets"
        yield from _findings(
            _Opinion(_copied(name), severity=worst.severity, basis=worst.basis), rest
        )


def _findings(opinion: _Opinion, pairs: Sequence[Pair]) -> Iterator[Finding]:
    runs = {copy: original for pair in pairs for copy, original in pair.runs.items()}
    for copy, original in runs.items():
        yield Finding(
            code=opinion.code,
            message=opinion.message,
            path=copy,
            severity=opinion.severity,
            basis=opinion.basis,
            found=original,
            source=codes()[opinion.code].source,
        )


def _opinion(pair: Pair, with_power: Collection[Place]) -> _Opinion:
    original, copy = pair.original, pair.copy
    if not (original.context.origin.has_name and copy.context.origin.has_name):
        return _Opinion(f"the same runs as {_name(pair)}")
    is_own = copy.has_submitter_of(original) and copy.benchmark == original.benchmark
    allowed = _allowed(pair, with_power) if is_own else None
    return allowed or _Opinion(_copied(_name(pair)), severity=Severity.ERROR, basis=Basis.RULES)


def _allowed(pair: Pair, with_power: Collection[Place]) -> _Opinion | None:
    """Return the reason why a submitter may use the same runs twice; None if it may not."""
    original, copy, name = pair.original, pair.copy, _name(pair)
    if copy.identity == original.identity:
        return _Opinion(f"the same result set as {name}")
    first, second = original.context.files, copy.context.files
    if copy.has_system_of(original) and {first.scaling_mode, second.scaling_mode} == _SCALINGS:
        return _Opinion(f"the same runs as {name}, as strong and as weak scaling")
    if copy.round != original.round:
        return _resubmitted(original, copy, name)
    if first.system == second.system and not {copy.tree, original.tree}.isdisjoint(with_power):
        return _Opinion(f"the same runs as {name}, with power measured differently")
    return None


def _copied(name: str) -> str:
    return f"copies of the runs of {name}; expected separate runs"


def _resubmitted(original: Owner, copy: Owner, name: str) -> _Opinion:
    text = f"resubmitted from {name}"
    before, after = original.context.system, copy.context.system
    if not (before and after and before.contents and after.contents):
        return _Opinion(f"{text}; system descriptions not compared", RESUBMITTED)
    if category(before.status or "") == PREVIEW != category(after.status or ""):
        text = f"{text}, a Preview; expected new runs to prove it"
    elif fields := different_fields(before, after):
        text = f"{text}; expected the same system description; different: {in_words(fields, 's')}"
    else:
        return _Opinion(f"{text}, with the same system description", RESUBMITTED)
    return _Opinion(text, RESUBMITTED, Severity.WARNING, Basis.RULES)


def different_fields(before: SystemFile, after: SystemFile) -> list[str]:
    """Return the fields that differ, except spellings of the same availability."""
    old, new = before.contents or {}, after.contents or {}
    fields = sorted(
        key for key in {*old, *new} if (key in old, old.get(key)) != (key in new, new.get(key))
    )
    status = category(before.status or "")
    is_same_status = status is not None and status == category(after.status or "")
    return [field[:80] for field in fields if not (field == "status" and is_same_status)]


def _name(pair: Pair) -> str:
    """Return the path of the original, its round if it differs, and whether files are identical."""
    original, count = pair.original, len(pair.runs)
    some = (
        wording.counted(pair.identical, "identical file") if pair.identical else "the files differ"
    )
    remarks = [
        f"round {original.context.round.name}" * (original.round != pair.copy.round),
        "identical files" if pair.identical == count else some,
        f"also in {pair.others} more result sets" * bool(pair.others),
    ]
    return f"{original.context.label} ({', '.join(filter(None, remarks))})"
