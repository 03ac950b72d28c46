"""What the machine that this runs on says of itself, for a system description.

``describe`` gives every field of a description; what no machine knows, or this one does not tell,
is marked ``FILL IN``, which ``checks.systems`` refuses. The host is read from ``/proc`` and
``/sys`` rather than through psutil, which knows neither processor models, caches, memory modules
nor InfiniBand, and reads ``/sys`` of this machine alone, where tests need those of others.
"""

from mlperf_pkg.commands.system.describe import Wanted, describe
from mlperf_pkg.commands.system.sources import Sources, this_machine

__all__ = ["Sources", "Wanted", "describe", "this_machine"]
