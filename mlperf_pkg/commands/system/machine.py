"""The values of a machine: host, network adapters, accelerators and software.

They are from ``/proc`` and ``/sys``, from ``nvidia-smi`` or, without it, the driver's files, and
from installed Python distributions. A source that is missing or cannot be read gives an empty
string; nothing here raises. Descriptions of network adapters are not read: they have host names.
"""

import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from msgspec import Struct

_LARGEST_FILE = 1 << 24
_PATIENCE_S = 30
_TOOL = "nvidia-smi"


class MachineSources(Struct, frozen=True):
    """The sources of one machine.

    ``root`` is the folder with ``proc``, ``sys`` and ``etc``, or a path that does not exist.
    ``nvidia_smi`` returns the output of that tool for some arguments, ``version_of`` the version
    of an installed Python distribution; both return an empty string if there is none.
    """

    root: Path
    nvidia_smi: Callable[..., str]
    version_of: Callable[[str], str]

    def text(self, path: str) -> str:
        """Return the contents of a file, stripped."""
        try:
            with (self.root / path).open("rb") as stream:
                data = stream.read(_LARGEST_FILE)
        except (OSError, ValueError):
            return ""
        return data.decode("utf-8", "replace").replace("\0", "").strip()

    def number(self, path: str) -> int | None:
        """Return the contents of a file as a non-negative whole number, None if it is not one."""
        text = self.text(path)
        return int(text) if text.isascii() and text.isdigit() else None

    def paths(self, pattern: str) -> list[str]:
        """Return the files and folders that match a pattern, sorted by name."""
        try:
            paths = self.root.glob(pattern)
            return sorted(path.relative_to(self.root).as_posix() for path in paths)
        except OSError:
            return []


def this_machine() -> MachineSources:
    """Return the sources of this machine; only Linux has files."""
    root = Path("/" if sys.platform == "linux" else os.devnull)
    return MachineSources(root, _nvidia_smi, _version_of)


def detected(sources: MachineSources, installed: Sequence[str]) -> Mapping[str, Any]:
    """Return the fields of a machine, empty where it gives no value; see ``frameworks``."""
    return {
        **_processors(sources),
        **_memory(sources),
        **_storage(sources),
        **_accelerators(sources),
        "host_networking": _network(sources),
        "hw_notes": _notes(sources),
        "framework": installed[0] if len(installed) == 1 else None,
        "other_software_stack": _libraries(sources),
        "operating_system": _operating_system(sources),
    }


def _notes(sources: MachineSources) -> str:
    """Return vendor and product, and the number of NUMA nodes if there are several."""
    vendor = sources.text("sys/class/dmi/id/sys_vendor")
    product = sources.text("sys/class/dmi/id/product_name")
    notes = [" ".join(filter(None, (vendor, product)))]
    nodes = len(sources.paths("sys/devices/system/node/node[0-9]*"))
    if nodes > 1:
        notes.append(f"{nodes} NUMA nodes")
    return ", ".join(filter(None, notes))


def _operating_system(sources: MachineSources) -> str:
    release = sources.text("etc/os-release") or sources.text("usr/lib/os-release")
    name = re.search(r"""^PRETTY_NAME=(["']?)(.*)\1$""", release, re.MULTILINE)
    return name[2].strip() if name else ""


def _nvidia_smi(*arguments: str) -> str:
    """Run the driver's tool, found in PATH and called by its absolute path."""
    tool = shutil.which(_TOOL)
    if tool is None or not Path(tool).is_absolute():
        return ""
    try:
        done = subprocess.run(  # noqa: S603 - a fixed name and fixed arguments
            [tool, *arguments],
            capture_output=True,
            timeout=_PATIENCE_S,
            check=True,
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.decode("utf-8", "replace")


def _version_of(distribution: str) -> str:
    try:
        return version(distribution) or ""
    except PackageNotFoundError:
        return ""


# ---- the host -----------------------------------------------------------------------------

_CPU = "sys/devices/system/cpu"
_SECTOR = 512  # bytes, the unit of ``size`` for every device
_ARM = {"0xd0c": "N1", "0xd40": "V1", "0xd49": "N2", "0xd4f": "V2"}  # of Neoverse
_LINKS = {"AMD EPYC": "Infinity Fabric", "Intel Xeon Platinum": "UPI", "Intel Xeon Gold": "UPI"}
"""The interconnect of the sockets of a server, by the start of its processor's name."""

_KINDS = {"Data": "d", "Instruction": "i"}  # of caches
_DISKS = {"0": "SSD", "1": "HDD"}  # by whether they rotate


def _processors(sources: MachineSources) -> dict[str, str]:
    """Return the fields of the host's processors."""
    logical = _logical_processors(sources)
    model = _model(logical[0]) if logical else ""
    cores = _cores(sources, logical)
    number = len({socket for socket, _ in cores})
    return {
        "host_processors_per_node": str(number or ""),
        "host_processor_model_name": model,
        "host_processor_core_count": str(len(cores) // number if number else ""),
        "host_processor_vcpu_count": str(len(logical) or ""),
        "host_processor_frequency": _frequency(sources),
        "host_processor_caches": _caches(sources),
        "host_processor_interconnect": _socket_link(model) if number > 1 else "",
    }


def _logical_processors(sources: MachineSources) -> list[dict[str, str]]:
    """Return what the kernel says of each logical processor."""
    processors = []
    for block in sources.text("proc/cpuinfo").split("\n\n"):
        values = {}
        for line in block.splitlines():
            name, _, value = line.partition(":")
            values[name.strip()] = value.strip()
        if "processor" in values:
            processors.append(values)
    return processors


def _socket_link(model: str) -> str:
    for beginning, link in _LINKS.items():
        if model.startswith(beginning):
            return link
    return ""


def _memory(sources: MachineSources) -> dict[str, str]:
    """Return the fields of the host's memory.

    The memory blocks add up to the installed memory; the kernel's total, used where there are no
    blocks, lacks what the firmware reserves.
    """
    block_size = sources.text("sys/devices/system/memory/block_size_bytes")
    blocks = sources.paths("sys/devices/system/memory/memory[0-9]*")
    total = re.search(r"^MemTotal:\s+(\d+) kB$", sources.text("proc/meminfo"), re.MULTILINE)
    size = 0
    if blocks and re.fullmatch(r"[0-9a-f]{1,16}", block_size):
        size = len(blocks) * int(block_size, 16)
    elif total:
        size = int(total[1]) << 10
    return {
        "host_memory_capacity": f"{size / (1 << 30):.0f} GiB" if size else "",
        "host_memory_configuration": _modules(sources),
    }


def _storage(sources: MachineSources) -> dict[str, str]:
    """Return the fields of built-in disks, without virtual ones: loops, memory and arrays."""
    kinds = set[str]()
    sizes = Counter[str]()
    for disk in sources.paths("sys/block/*"):
        size = (sources.number(f"{disk}/size") or 0) * _SECTOR
        kind = _kind(sources, disk)
        if size and kind and sources.text(f"{disk}/removable") != "1":
            kinds.add(kind)
            sizes[_decimal(size)] += 1
    return {"host_storage_type": ", ".join(sorted(kinds)), "host_storage_capacity": _counted(sizes)}


def _decimal(size: int) -> str:
    """Return a number of bytes as the makers of disks count."""
    terabytes = size / 1e12
    if terabytes >= 1:
        return f"{terabytes:.3g} TB"
    return f"{size / 1e9:.3g} GB"


def _counted(names: Counter[str]) -> str:
    """Return text like ``8 x 3.84 TB, 480 GB``, the most frequent name first."""
    ordered = sorted(names.items(), key=lambda pair: (-pair[1], pair[0]))
    return ", ".join(f"{_times(number)}{name}" for name, number in ordered)


def _times(number: int) -> str:
    return f"{number} x " if number > 1 else ""


def _model(processor: dict[str, str]) -> str:
    name = processor.get("model name", "")
    arm = _ARM.get(processor.get("CPU part", ""))
    if not name and arm:
        name = f"Neoverse-{arm}"
    plain = re.sub(r"\((R|TM|r|tm)\)|\bCPU\b|@.*|\b\d+-Core Processor\b|\bProcessor\b", " ", name)
    return " ".join(plain.split())


def _cores(sources: MachineSources, logical: Iterable[dict[str, str]]) -> set[tuple[str, str]]:
    """Return the cores, as pairs of socket and core number."""
    cores = [(cpu.get("physical id", ""), cpu.get("core id", "")) for cpu in logical]
    if not all(number for _, number in cores):
        cores = []
        for cpu in sources.paths(f"{_CPU}/cpu[0-9]*"):
            socket = sources.text(f"{cpu}/topology/physical_package_id")
            cores.append((socket, sources.text(f"{cpu}/topology/core_id")))
    return {(socket, number) for socket, number in cores if number}


def _frequency(sources: MachineSources) -> str:
    """Return frequencies worded like published descriptions; the kernel counts in kHz."""
    frequencies = []
    base = sources.number(f"{_CPU}/cpu0/cpufreq/base_frequency")
    in_name = re.search(
        r"^model name.*@ *([\d.]+) ?GHz", sources.text("proc/cpuinfo"), re.MULTILINE
    )
    if base:
        frequencies.append(f"{base / 1e6:.2f} GHz base")
    elif in_name:
        frequencies.append(f"{float(in_name[1].rstrip('.')):.2f} GHz base")
    boost = sources.number(f"{_CPU}/cpu0/cpufreq/cpuinfo_max_freq")
    if boost:
        frequencies.append(f"{boost / 1e6:.2f} GHz boost")
    return ", ".join(frequencies)


def _caches(sources: MachineSources) -> str:
    """Return the caches of one processor: number, size, level and kind."""
    package = sources.text(f"{_CPU}/cpu0/topology/physical_package_id")
    sharers: dict[tuple[str, str], set[str]] = {}
    for cpu in sources.paths(f"{_CPU}/cpu[0-9]*"):
        if sources.text(f"{cpu}/topology/physical_package_id") != package:
            continue
        for cache in sources.paths(f"{cpu}/cache/index[0-9]*"):
            kind = _KINDS.get(sources.text(f"{cache}/type"), "")
            name = f"L{sources.text(f'{cache}/level')}{kind}"
            size = _binary(sources.text(f"{cache}/size"))
            if size:
                shared = sources.text(f"{cache}/shared_cpu_list")
                sharers.setdefault((name, size), set()).add(shared)
    parts = []
    for (name, size), lists in sorted(sharers.items()):
        parts.append(f"{_times(len(lists))}{size} {name}")
    return ", ".join(parts)


def _modules(sources: MachineSources) -> str:
    """Return the memory modules that the memory controllers report; sizes are in MiB."""
    modules = Counter[str]()
    for module in sources.paths("sys/devices/system/edac/mc/mc[0-9]*/dimm[0-9]*"):
        size = sources.number(f"{module}/size")
        if size:
            kind = sources.text(f"{module}/dimm_mem_type")
            modules[f"{size / 1024:g} GiB {kind}".strip()] += 1
    return _counted(modules)


def _kind(sources: MachineSources, disk: str) -> str:
    """Return the kind of a disk, empty if it is not a physical disk or unknown, as in clouds."""
    name = disk.rpartition("/")[2]
    if re.fullmatch(r"nvme\d+n\d+", name):
        return "NVMe SSD"
    virtual = re.search(r"^flags.*\bhypervisor\b", sources.text("proc/cpuinfo"), re.MULTILINE)
    if re.fullmatch(r"sd[a-z]+", name) and not virtual:
        return _DISKS.get(sources.text(f"{disk}/queue/rotational"), "")
    return ""


def _binary(size: str) -> str:
    """Return a size that the kernel writes like ``32768K`` with its unit."""
    match = re.fullmatch(r"(\d{1,12})K", size)
    kib = int(match[1]) if match else 0
    if not kib:
        return ""
    if kib < 1024:  # noqa: PLR2004
        return f"{kib} KiB"
    return f"{kib / 1024:g} MiB"


# ---- network adapters ---------------------------------------------------------------------

_ETHERNET = "1"  # ARPHRD_ETHER


def _network(sources: MachineSources) -> str:
    """Return adapters by kind and speed, without those whose link is down: they have no speed."""
    ports = Counter[str]()
    for port in sources.paths("sys/class/infiniband/*/ports/*"):
        is_up = sources.text(f"{port}/state").endswith("ACTIVE")
        is_infiniband = sources.text(f"{port}/link_layer") == "InfiniBand"
        rate = re.match(r"([\d.]+ Gb/s)ec(?: \(\w+ (\w+)\))?", sources.text(f"{port}/rate"))
        if is_up and is_infiniband and rate:
            kind_and_speed = filter(None, ("InfiniBand", rate[2], rate[1]))
            ports[" ".join(kind_and_speed)] += 1
    for card in sources.paths("sys/class/net/*"):
        speed = sources.number(f"{card}/speed")
        kind = sources.text(f"{card}/type")
        if speed and kind == _ETHERNET and sources.paths(f"{card}/device"):
            ports[f"{speed / 1000:g} GbE"] += 1
    return _counted(ports)


# ---- NVIDIA accelerators ------------------------------------------------------------------

_QUERY = {
    "name": "name",
    "memory": "memory.total",
    "clock": "clocks.max.sm",
    "generation": "pcie.link.gen.max",
    "width": "pcie.link.width.max",
    "driver": "driver_version",
}
_LINK = re.compile(r"^\s*Link \d+: ([\d.]+) GB/s", re.MULTILINE)


def _accelerators(sources: MachineSources) -> dict[str, str]:
    """Return the fields of accelerators; no field where there is no NVIDIA accelerator.

    The number is never given as 0, as there may be accelerators of another vendor.
    """
    cards = _cards(sources)
    if not cards:
        return _accelerators_of_driver(sources)
    first = cards[0]
    generation = first["generation"]
    width = first["width"]
    has_pcie = generation.isdigit() and width.isdigit()
    models = Counter(card["name"] for card in cards)
    return {
        **_counted_fields(len(cards), first["name"] if len(models) == 1 else _counted(models)),
        "accelerator_host_interconnect": f"PCIe Gen{generation} x{width}" if has_pcie else "",
        "accelerator_frequency": _with_unit(first["clock"], "MHz"),
        "accelerator_memory_capacity": _with_unit(first["memory"], "MiB"),
        "accelerator_interconnect": _nvlink(sources),
    }


def _accelerators_of_driver(sources: MachineSources) -> dict[str, str]:
    """Return the fields that the files of the driver give."""
    models = Counter[str]()
    for file in sources.paths("proc/driver/nvidia/gpus/*/information"):
        line = re.search(r"^Model:\s+(\S.*)$", sources.text(file), re.MULTILINE)
        if line:
            models[_vendor(line[1].strip())] += 1
    return _counted_fields(models.total(), _counted(models)) if models else {}


def _nvlink(sources: MachineSources) -> str:
    """Return the links of the first accelerator; the tool reports GB/s per direction."""
    speeds = _LINK.findall(sources.nvidia_smi("nvlink", "--status", "-i", "0"))
    if not speeds:
        return ""
    return f"NVLink: {_counted(Counter(f'{speed} GB/s' for speed in speeds))}"


def _cards(sources: MachineSources) -> list[dict[str, str]]:
    query = f"--query-gpu={','.join(_QUERY.values())}"
    output = sources.nvidia_smi(query, "--format=csv,noheader,nounits")
    cards = []
    for line in output.splitlines():
        cells = [cell.strip() for cell in line.split(",")]
        if len(cells) == len(_QUERY):
            cards.append(dict(zip(_QUERY, cells, strict=True)))
    return cards


def _counted_fields(count: int, model: str) -> dict[str, str]:
    return {"accelerators_per_node": str(count), "accelerator_model_name": _vendor(model)}


def _vendor(model: str) -> str:
    return model if "NVIDIA" in model else f"NVIDIA {model}"


def _with_unit(number: str, unit: str) -> str:
    return f"{number} {unit}" if number.isdigit() else ""


# ---- software -----------------------------------------------------------------------------

_FRAMEWORKS = {
    "torch": "PyTorch",
    "tensorflow": "TensorFlow",
    "jax": "JAX",
    "paddlepaddle-gpu": "PaddlePaddle",
    "paddlepaddle": "PaddlePaddle",
    "mindspore": "MindSpore",
    "mxnet": "MXNet",
    "tinygrad": "tinygrad",
    "popart": "PopART",
}
_CUDA = ("13", "12", "11")  # suffixes of distributions, the newest first
_LIBRARIES = {
    "CUDA": ("nvidia-cuda-runtime", *(f"nvidia-cuda-runtime-cu{n}" for n in _CUDA)),
    "cuDNN": tuple(f"nvidia-cudnn-cu{n}" for n in _CUDA),
    "NCCL": tuple(f"nvidia-nccl-cu{n}" for n in _CUDA),
    "cuBLAS": ("nvidia-cublas", *(f"nvidia-cublas-cu{n}" for n in _CUDA)),
    "DALI": tuple(f"nvidia-dali-cuda{n}0" for n in _CUDA),
    "Transformer Engine": ("transformer-engine",),
    "FlashAttention": ("flash-attn",),
    "Apex": ("apex",),
    "Megatron Core": ("megatron-core",),
    "NeMo": ("nemo-toolkit",),
    "Lightning": ("lightning", "pytorch-lightning"),
    "DeepSpeed": ("deepspeed",),
    "Horovod": ("horovod",),
    "Transformers": ("transformers",),
    "jaxlib": ("jaxlib",),
    "libtpu": ("libtpu", "libtpu-nightly"),
    "XLA": ("torch-xla",),
    "Triton": ("triton",),
}


def frameworks(sources: MachineSources) -> list[str]:
    """Return each installed framework with its version."""
    installed = []
    for package, name in _FRAMEWORKS.items():
        number = sources.version_of(package)
        if number:
            installed.append(f"{name} {number}")
    return installed


def _libraries(sources: MachineSources) -> dict[str, str]:
    """Return the versions of libraries and of the driver, by name."""
    versions = {}
    for name, packages in _LIBRARIES.items():
        numbers = map(sources.version_of, packages)
        versions[name] = next(filter(None, numbers), "")
    versions["NVIDIA driver"] = _driver(sources)
    return {name: number for name, number in versions.items() if number}


def _driver(sources: MachineSources) -> str:
    module = sources.text("proc/driver/nvidia/version")
    of_module = re.search(r"Kernel Module.*?(\d+\.[\d.]*\d)", module)
    if of_module:
        return of_module[1]
    cards = _cards(sources)
    return cards[0]["driver"] if cards else ""
