"""The network adapters, from ``/sys``; their descriptions are not read: they have host names."""

from __future__ import annotations

import re
from collections import Counter

from mlperf_pkg.commands.system.host import counted
from mlperf_pkg.commands.system.sources import Sources

_ETHERNET = "1"  # ARPHRD_ETHER


def network(sources: Sources) -> str:
    """Return adapters by kind and speed, without those whose link is down: they have no speed."""
    ports = Counter[str]()
    for port in sources.paths("sys/class/infiniband/*/ports/*"):
        rate = re.match(r"([\d.]+ Gb/s)ec(?: \(\w+ (\w+)\))?", sources.text(f"{port}/rate"))
        if rate and sources.text(f"{port}/link_layer") == "InfiniBand" and _is_up(sources, port):
            ports[" ".join(filter(None, ("InfiniBand", rate[2], rate[1])))] += 1
    for card in sources.paths("sys/class/net/*"):
        built_in = sources.exists(f"{card}/device")
        speed = sources.number(f"{card}/speed")
        if built_in and speed and sources.text(f"{card}/type") == _ETHERNET:
            ports[f"{speed / 1000:g} GbE"] += 1
    return counted(ports)


def _is_up(sources: Sources, port: str) -> bool:
    return sources.text(f"{port}/state").endswith("ACTIVE")
