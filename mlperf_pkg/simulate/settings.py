"""Values as recipes write them: plain, computed by a formula, or several to try in turn.

``4``, ``{formula: "0.1 * global_batch_size", digits: 3}``, ``{candidates: [4, 5]}``. The parts of
a list may be computed as well.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct, convert

from mlperf_pkg.rulebook.formula import evaluate, names_in
from mlperf_pkg.simulate.model import Assigned, Setting, Value


class Computed(Struct, frozen=True, forbid_unknown_fields=True):
    """A number from a formula, rounded to ``digits`` decimal places if these are set."""

    formula: str
    digits: int | None = None

    def number(self, values: Assigned) -> int | float:
        """Return the number.

        Raises:
            ValueError: as ``evaluate``.
        """
        number = evaluate(self.formula, values)
        return number if self.digits is None else round(number, self.digits)


def candidates(setting: Setting, assigned: Assigned) -> Iterator[Value]:
    """Yield the values of a setting, the preferred one first.

    Raises:
        ValueError: a formula is wrong, or needs a key that is not in ``assigned``.
    """
    for option in _options(setting):
        yield _value(option, assigned)


def names_of(setting: Setting) -> frozenset[str]:
    """Return the names in the formulas of a setting."""
    if isinstance(setting, dict) and "formula" in setting:
        return names_in(setting["formula"])
    parts = _options(setting)
    if parts == [setting]:
        parts = setting if isinstance(setting, list) else []
    return frozenset().union(*map(names_of, parts))


def _options(setting: Setting) -> list[Setting]:
    if isinstance(setting, dict) and "candidates" in setting:
        return list(setting["candidates"])
    return [setting]


def _value(setting: Setting, assigned: Assigned) -> Value:
    if isinstance(setting, dict):
        return convert(setting, Computed).number(assigned)
    if isinstance(setting, list):
        return [_value(part, assigned) for part in setting]
    return setting
