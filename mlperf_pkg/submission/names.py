"""What the path of a folder says of the result set in it."""

from __future__ import annotations

from msgspec import Struct

from mlperf_pkg.infra.paths import Location

SCALINGS = ("strong", "weak")


class SetName(Struct, frozen=True):
    """The names in the path of a result set.

    The path is ``results/<system>/<benchmark>`` or, with a scaling mode (HPC),
    ``results/<system>/{strong,weak}/<benchmark>``.
    """

    system: str
    benchmark: str
    scaling_mode: str | None = None

    @property
    def levels(self) -> int:
        """The number of folders from that of the system down to that of the set."""
        return 1 if self.scaling_mode is None else 2


def set_name(folder: Location) -> SetName | None:
    """Return the names in the path of a folder; None if a result set is elsewhere.

    Only the path is used; its links must be resolved.
    """
    parts = folder.split("/") if isinstance(folder, str) else list(folder.parts)
    *_, top, system, scaling, benchmark = ("", "", "", *parts)
    if scaling in SCALINGS and top == "results":
        name = SetName(system, benchmark, scaling)
    elif system == "results" and benchmark not in SCALINGS:
        name = SetName(scaling, benchmark)
    else:
        return None
    return None if name.system.startswith(".") or benchmark.startswith(".") else name


def is_result_log(name: str) -> bool:
    """Return whether a file of this name is the log of a run, in a folder of a submission."""
    return name.startswith("result_") and name.endswith(".txt")
