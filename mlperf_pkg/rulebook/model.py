"""What a rulebook says, as frozen values: rounds, benchmarks, rules."""

import re
from collections.abc import Iterable, Mapping
from datetime import date
from enum import StrEnum
from functools import lru_cache
from itertools import chain
from typing import Any

from msgspec import Struct, field

from mlperf_pkg.findings import Basis, Severity

DIVISIONS = ("closed", "open")

SECTIONS = ("common", *DIVISIONS)
"""The parts of a file that hold rules by key; a benchmark has no common one."""

# As in rules/metaschema.json, which takes time to read.
REQUIRED_OF_ROUNDS = ("round", "ruleset", "submission_date", "benchmarks", "normalised")
REQUIRED_OF_BENCHMARKS = ("runs", "target", "convergence")
"""The fields that a round and a benchmark must have after inheritance."""


EVALUATION_KEYS = frozenset({"eval_accuracy", "eval_error", "averaged_validation_loss"})
"""The keys of evaluations; the last is that of Flux.1 in the Open division."""

POSITION_UNITS = {"samples_count": "samples", "epoch_num": "epochs", "step_num": "steps"}
"""The metadata that count training, with their units, in the order in which they are tried."""

SUBMISSION_KEYS = tuple(
    f"submission_{n}" for n in ("benchmark", "division", "org", "platform", "status")
)
"""The keys by which a run describes itself."""

LOGGING = "mlperf-logging"
"""The document that rules cite for what only the official checker requires."""


OWN = "mlperf-pkg: "
"""The beginning of the source of a finding that no document asks for."""


PACKAGE_CHECKER = f"{LOGGING}, package_checker"
"""The source of what only the official package checker requires."""


def ruleset_source(ruleset: str) -> str:
    """Return the source of what only the official checker requires, in a ruleset."""
    return f"{LOGGING}, ruleset {ruleset}"


def is_round_name(name: str) -> bool:
    """Return whether a name is that of a round, such as 2.0."""
    return re.fullmatch(r"[0-9]{1,4}\.[0-9]{1,4}", name) is not None


@lru_cache
def version_of(name: str) -> tuple[int, ...]:
    """Return the name of a round or ruleset ("2.0") as numbers that compare: 10.0 after 9.1.

    Raises:
        ValueError: a part of the name is not a number.
    """
    return tuple([int(part) for part in name.split(".")])


class Rule(Struct, frozen=True, omit_defaults=True):
    """One rule about the records of one key.

    ``constraints`` maps names of ``constraints.CONSTRAINTS`` to their arguments: every record must
    meet them, with ``first`` only the first record. ``occurs`` limits how often the key is logged:
    ``once``, ``at_least_once``, ``{or: key}``, ``{at_least: n}`` or ``{at_most: n}``. At least one
    record must meet the constraints of ``reaches``. The records' metadata must list each of
    ``tensors`` exactly once.

    ``formula`` is a condition on this key's ``value``, its ``metadata``, the values of other keys,
    and ``nth``: the number of records of this key before this one, since the last record of the key
    ``nth_since``. ``written`` is the formula as its file has it, with the meaning of the names
    that the file defines; None where it uses none. ``units`` says what metadata count in it. With
    ``last`` it is evaluated only for the last record, and sees the final values of the run.

    With ``reached``, a record whose status is success requires that the last evaluation reached
    the target; with ``covers_target``, that no record is earlier than the first evaluation that
    reached it. No record of the keys ``no_later_than`` may be earlier than the first of this key.
    Both compare the times of records, and forgive a second between clocks; ``covers_target`` does
    not where the evaluation is also logged after the record.

    Where a ``fatal`` rule is broken, the official checker crashes: it loads a rule file by the
    value's name.
    """

    code: str
    key: str
    source: str
    basis: Basis = Basis.BOTH
    severity: Severity = Severity.ERROR
    message: str | None = None
    needed: str | None = None
    hint: str | None = None
    occurs: str | Mapping[str, Any] | None = None
    constraints: Mapping[str, Any] = field(default_factory=dict)
    reaches: Mapping[str, Any] | None = None
    tensors: tuple[str, ...] | None = None
    formula: str | None = None
    written: str | None = None
    nth_since: str | None = None
    units: Mapping[str, str] = field(default_factory=dict)
    first: bool = False
    last: bool = False
    reached: bool = False
    covers_target: bool = False
    no_later_than: tuple[str, ...] = ()
    fatal: bool = False

    @property
    def official(self) -> bool:
        """Whether the official checker tests it."""
        return self.basis in (Basis.BOTH, Basis.OFFICIAL)

    @property
    def formula_text(self) -> str:
        """The formula as a person reads it."""
        return self.written or self.formula or ""


Rules = Mapping[str, tuple[Rule, ...]]

_EVENTS = frozenset({"cache_clear", "seed", "weights_initialization", "eval_accuracy"})
"""What a run logs besides its hyperparameters, and what starts and stops."""


def is_setting(key: str, rules: Iterable[Rule]) -> bool:
    """Return whether the key of these rules is a hyperparameter."""
    is_event = key in _EVENTS or key.startswith("submission_") or key.endswith(("_start", "_stop"))
    return not (is_event or any(rule.reaches for rule in rules))


class Runs(Struct, frozen=True):
    """How many runs make a result, and how many of the fastest and of the slowest are dropped."""

    required: int
    drop: int


class Joined(Struct, frozen=True):
    """Metrics that are logged one a record and judged together, as if in one record ``key``.

    Records of ``of`` whose metadata has ``name`` belong together where their metadata agrees in
    ``by``; the joint value holds each one's value under its name, and ``by`` itself.
    """

    key: str
    of: str
    by: str
    name: str


class Epochs(Struct, frozen=True):
    """The number of samples behind the epochs that a benchmark's evaluations log.

    ``samples`` is the size of the data set of the Closed division, None if only the log gives it.
    Evaluations begin at epoch ``numbered_from``; a number above ``at_most`` does not count epochs.
    """

    samples: int | None = None
    numbered_from: int = 0
    at_most: int | None = None


class Rcp(StrEnum):
    """What the official RCP checker does with the Closed sets of a benchmark.

    TESTED: it compares them with reference convergence points. UNKNOWN: it does not know the
    benchmark and crashes. SKIPPED: the package checker does not ask it.
    """

    TESTED = "tested"
    UNKNOWN = "unknown"
    SKIPPED = "skipped"


class Benchmark(Struct, frozen=True):
    """The rules of one benchmark in one round.

    ``target`` holds the constraints on the quality that training must reach. ``unit`` is what
    convergence is counted in, and ``counted_by`` the metadata of an evaluation that counts it.
    ``variants`` maps a key (``opt_name``) to the rules that each of its values adds to the Closed
    division.
    """

    name: str
    runs: Runs
    target: Mapping[str, Any]
    unit: str
    counted_by: str
    sections: Mapping[str, Rules]
    variants: Mapping[str, Mapping[Any, Rules]]
    joined: Joined | None = None
    epochs: Epochs = field(default_factory=Epochs)
    rcp: Rcp = Rcp.TESTED

    @property
    def open_needs_target(self) -> bool:
        """Whether the rules ask Open runs to reach a target, as they did in 0.7."""
        rules = chain.from_iterable(self.sections["open"].values())
        return any(rule.reaches and rule.basis is not Basis.OFFICIAL for rule in rules)


class Round(Struct, frozen=True):
    """One round of one usage: ``name`` "2.0", ``ruleset`` "2.0.0" as mlperf-logging spells it.

    ``sections`` holds the rules ``common`` to all runs and those of each division.
    ``date_source`` is the source of the ``submission_date``. ``benchmarks`` names all benchmarks of
    the round. ``normalised`` says whether the rules multiply the scores of Closed sets that
    converge faster than the reference, as they do from Training 2.1 and HPC 3.0 on. ``text_of`` is
    the round of Training whose written rules apply: its own, but for HPC.
    """

    usage: str
    name: str
    ruleset: str
    submission_date: date
    date_source: str | None
    normalised: bool
    benchmarks: tuple[str, ...]
    sections: Mapping[str, Rules]
    text_of: str

    @property
    def text_version(self) -> tuple[int, ...]:
        """``text_of`` as numbers, which can be compared."""
        return version_of(self.text_of)

    @property
    def version(self) -> tuple[int, ...]:
        """Its name as numbers, which can be compared."""
        return version_of(self.name)
