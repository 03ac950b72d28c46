"""The host: processors, memory, storage and operating system, from ``/proc`` and ``/sys``.

Each function gives the text of one or more fields, empty where the machine does not tell.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

from mlperf_pkg.commands.system.sources import Sources

_CPU = "sys/devices/system/cpu"
_SECTOR = 512  # bytes, whatever the device's own
_ARM = {"0xd0c": "Neoverse-N1", "0xd40": "Neoverse-V1", "0xd49": "Neoverse-N2"} | {
    "0xd4f": "Neoverse-V2"
}
_LINKS = (
    ("AMD EPYC", "Infinity Fabric"),
    ("Intel Xeon Platinum", "UPI"),
    ("Intel Xeon Gold", "UPI"),
)
"""How the sockets of a server are linked, by how its processor's name begins."""

_KINDS = {"Data": "d", "Instruction": "i"}
_BINARY = ("B", "KiB", "MiB", "GiB", "TiB")


def processors(sources: Sources) -> dict[str, str]:
    """The fields of the host's processors."""
    blocks = [_fields(block) for block in sources.text("proc/cpuinfo").split("\n\n")]
    logical = [block for block in blocks if "processor" in block]
    model = _model(logical[0]) if logical else ""
    sockets = _sockets(sources, logical)
    cores = {core for several in sockets.values() for core in several}
    count = len(sockets)
    return {
        "host_processors_per_node": str(count or ""),
        "host_processor_model_name": model,
        "host_processor_core_count": str(len(cores) // count if count else ""),
        "host_processor_vcpu_count": str(len(logical) or ""),
        "host_processor_frequency": _frequency(sources),
        "host_processor_caches": _caches(sources),
        "host_processor_interconnect": _link(model) if count > 1 else "",
    }


def memory(sources: Sources) -> dict[str, str]:
    """The fields of the host's memory.

    The blocks of memory are all that is installed; where only the kernel's total is known, what
    the firmware keeps is missing from it.
    """
    block = sources.text("sys/devices/system/memory/block_size_bytes")
    blocks = sources.paths("sys/devices/system/memory/memory[0-9]*")
    total = re.search(r"^MemTotal:\s+(\d+) kB$", sources.text("proc/meminfo"), re.MULTILINE)
    if blocks and re.fullmatch(r"[0-9a-f]{1,16}", block):
        size = len(blocks) * int(block, 16)
    else:
        size = int(total[1]) << 10 if total else 0
    return {
        "host_memory_capacity": f"{size / (1 << 30):.0f} GiB" if size else "",
        "host_memory_configuration": _modules(sources),
    }


def storage(sources: Sources) -> dict[str, str]:
    """The fields of the disks built in, without those that are none: loops, memory, arrays."""
    kinds, sizes = Counter[str](), Counter[str]()
    for disk in sources.paths("sys/block/*"):
        size = (sources.number(f"{disk}/size") or 0) * _SECTOR
        kind = _kind(sources, disk)
        if size and kind and sources.text(f"{disk}/removable") != "1":
            kinds[kind] += 1
            sizes[_decimal(size)] += 1
    return {
        "host_storage_type": ", ".join(sorted(kinds)),
        "host_storage_capacity": counted(sizes),
    }


def operating_system(sources: Sources) -> str:
    """Name and version of the distribution."""
    lines = sources.text("etc/os-release") or sources.text("usr/lib/os-release")
    found = re.search(r"""^PRETTY_NAME=(["']?)(.*)\1$""", lines, re.MULTILINE)
    return found[2].strip() if found else ""


def product(sources: Sources) -> str:
    """What the vendor calls the machine."""
    names = ("sys_vendor", "product_name")
    return " ".join(filter(None, (sources.text(f"sys/class/dmi/id/{name}") for name in names)))


def numa(sources: Sources) -> str:
    """How many memory domains the processors see."""
    nodes = len(sources.paths("sys/devices/system/node/node[0-9]*"))
    return f"{nodes} NUMA nodes" if nodes > 1 else ""


def counted(names: Counter[str]) -> str:
    """Like ``8 x 3.84 TB, 480 GB``, the most frequent first."""
    ordered = sorted(names.items(), key=lambda pair: (-pair[1], pair[0]))
    return ", ".join(f"{_times(number)}{name}" for name, number in ordered)


def _times(number: int) -> str:
    return f"{number} x " if number > 1 else ""


def _fields(block: str) -> dict[str, str]:
    pairs = (line.partition(":") for line in block.splitlines())
    return {name.strip(): value.strip() for name, _, value in pairs}


def _model(block: dict[str, str]) -> str:
    name = block.get("model name") or _ARM.get(block.get("CPU part", ""), "")
    plain = re.sub(r"\((R|TM|r|tm)\)|\bCPU\b|@.*|\b\d+-Core Processor\b|\bProcessor\b", " ", name)
    return " ".join(plain.split())


def _sockets(
    sources: Sources, logical: Iterable[dict[str, str]]
) -> dict[str, set[tuple[str, str]]]:
    """The cores of each socket, told apart by socket and number."""
    pairs = [(block.get("physical id", ""), block.get("core id", "")) for block in logical]
    if not all(core for _, core in pairs):
        topologies = [f"{cpu}/topology" for cpu in sources.paths(f"{_CPU}/cpu[0-9]*")]
        pairs = [
            (sources.text(f"{place}/physical_package_id"), sources.text(f"{place}/core_id"))
            for place in topologies
        ]
    sockets: dict[str, set[tuple[str, str]]] = {}
    for socket, core in pairs:
        if core:
            sockets.setdefault(socket, set()).add((socket, core))
    return sockets


def _frequency(sources: Sources) -> str:
    """In the text of published descriptions; the kernel counts in kHz."""
    files = {"base": "base_frequency", "boost": "cpuinfo_max_freq"}
    found = {what: sources.number(f"{_CPU}/cpu0/cpufreq/{name}") for what, name in files.items()}
    known = [f"{khz / 1e6:.2f} GHz {what}" for what, khz in found.items() if khz]
    written = re.search(
        r"^model name.*@ *([\d.]+) ?GHz", sources.text("proc/cpuinfo"), re.MULTILINE
    )
    if written and not found["base"]:
        known.insert(0, f"{float(written[1].rstrip('.')):.2f} GHz base")
    return ", ".join(known)


def _caches(sources: Sources) -> str:
    """The caches of one processor: how many of each kind and level, and their size."""
    package = sources.text(f"{_CPU}/cpu0/topology/physical_package_id")
    found: dict[tuple[str, str], set[str]] = {}
    for cpu in sources.paths(f"{_CPU}/cpu[0-9]*"):
        if sources.text(f"{cpu}/topology/physical_package_id") == package:
            for index in sources.paths(f"{cpu}/cache/index[0-9]*"):
                level, kind, size, shared = (
                    sources.text(f"{index}/{name}")
                    for name in ("level", "type", "size", "shared_cpu_list")
                )
                name = f"L{level}{_KINDS.get(kind, '')}"
                found.setdefault((name, _binary(size)), set()).add(shared)
    caches = sorted((name, size, len(shared)) for (name, size), shared in found.items() if size)
    return ", ".join(f"{_times(number)}{size} {name}" for name, size, number in caches)


def _link(model: str) -> str:
    return next((link for begins, link in _LINKS if model.startswith(begins)), "")


def _modules(sources: Sources) -> str:
    """Memory modules as the memory controllers report them; sizes are in MiB."""
    modules = Counter[str]()
    for module in sources.paths("sys/devices/system/edac/mc/mc[0-9]*/dimm[0-9]*"):
        if size := sources.number(f"{module}/size"):
            kind = sources.text(f"{module}/dimm_mem_type")
            modules[f"{size / 1024:g} GiB {kind}".strip()] += 1
    return counted(modules)


def _kind(sources: Sources, disk: str) -> str:
    """The kind of a disk; empty where it is none of its own, or does not tell, as in clouds."""
    name = disk.rpartition("/")[2]
    if re.fullmatch(r"nvme\d+n\d+", name):
        return "NVMe SSD"
    virtual = re.search(r"^flags.*\bhypervisor\b", sources.text("proc/cpuinfo"), re.MULTILINE)
    if re.fullmatch(r"sd[a-z]+", name) and not virtual:
        return {"0": "SSD", "1": "HDD"}.get(sources.text(f"{disk}/queue/rotational"), "")
    return ""


def _binary(size: str) -> str:
    """A size as the kernel writes it, such as ``32768K``."""
    found = re.fullmatch(r"(\d{1,12})K", size)
    kib = int(found[1]) if found else 0
    return "" if not kib else f"{kib / 1024:g} MiB" if kib >= 1024 else f"{kib} KiB"  # noqa: PLR2004


def _decimal(size: int) -> str:
    return f"{size / 1e12:.3g} TB" if size >= 1e12 else f"{size / 1e9:.3g} GB"  # noqa: PLR2004
