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
    nodes = len(sources.paths("sys/devices/system/node/node[0-9]*"))
    about = [sources.text(f"sys/class/dmi/id/{name}") for name in ("sys_vendor", "product_name")]
    numa = f"{nodes} NUMA nodes" if nodes > 1 else ""
    release = sources.text("etc/os-release") or sources.text("usr/lib/os-release")
    system = re.search(r"""^PRETTY_NAME=(["']?)(.*)\1$""", release, re.MULTILINE)
    return {
        **_processors(sources),
        **_memory(sources),
        **_storage(sources),
        **_accelerators(sources),
        "host_networking": _network(sources),
        "hw_notes": ", ".join(filter(None, (" ".join(filter(None, about)), numa))),
        "framework": installed[0] if len(installed) == 1 else None,
        "other_software_stack": _libraries(sources),
        "operating_system": system[2].strip() if system else "",
    }


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

_KINDS = {"Data": "d", "Instruction": "i"}


def _processors(sources: MachineSources) -> dict[str, str]:
    """Return the fields of the host's processors."""
    blocks = []
    for text in sources.text("proc/cpuinfo").split("\n\n"):
        pairs = (line.partition(":") for line in text.splitlines())
        blocks.append({name.strip(): value.strip() for name, _, value in pairs})
    logical = [block for block in blocks if "processor" in block]
    model = _model(logical[0]) if logical else ""
    cores = _cores(sources, logical)
    count = len({socket for socket, _ in cores})
    link = next((link for begins, link in _LINKS.items() if model.startswith(begins)), "")
    return {
        "host_processors_per_node": str(count or ""),
        "host_processor_model_name": model,
        "host_processor_core_count": str(len(cores) // count if count else ""),
        "host_processor_vcpu_count": str(len(logical) or ""),
        "host_processor_frequency": _frequency(sources),
        "host_processor_caches": _caches(sources),
        "host_processor_interconnect": link if count > 1 else "",
    }


def _memory(sources: MachineSources) -> dict[str, str]:
    """Return the fields of the host's memory.

    The memory blocks add up to the installed memory; the kernel's total, used where there are no
    blocks, lacks what the firmware reserves.
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


def _storage(sources: MachineSources) -> dict[str, str]:
    """Return the fields of built-in disks, without virtual ones: loops, memory and arrays."""
    kinds = Counter[str]()
    sizes = Counter[str]()
    for disk in sources.paths("sys/block/*"):
        size = (sources.number(f"{disk}/size") or 0) * _SECTOR
        kind = _kind(sources, disk)
        if size and kind and sources.text(f"{disk}/removable") != "1":
            kinds[kind] += 1
            tb = size / 1e12
            sizes[f"{tb:.3g} TB" if tb >= 1 else f"{size / 1e9:.3g} GB"] += 1
    return {"host_storage_type": ", ".join(sorted(kinds)), "host_storage_capacity": _counted(sizes)}


def _counted(names: Counter[str]) -> str:
    """Return text like ``8 x 3.84 TB, 480 GB``, the most frequent name first."""
    ordered = sorted(names.items(), key=lambda pair: (-pair[1], pair[0]))
    return ", ".join(f"{_times(number)}{name}" for name, number in ordered)


def _times(number: int) -> str:
    return f"{number} x " if number > 1 else ""


def _model(block: dict[str, str]) -> str:
    arm = _ARM.get(block.get("CPU part", ""))
    name = block.get("model name") or (f"Neoverse-{arm}" if arm else "")
    plain = re.sub(r"\((R|TM|r|tm)\)|\bCPU\b|@.*|\b\d+-Core Processor\b|\bProcessor\b", " ", name)
    return " ".join(plain.split())


def _cores(sources: MachineSources, logical: Iterable[dict[str, str]]) -> set[tuple[str, str]]:
    """Return the cores, as pairs of socket and core number."""
    pairs = [(block.get("physical id", ""), block.get("core id", "")) for block in logical]
    if not all(core for _, core in pairs):
        folders = [f"{cpu}/topology" for cpu in sources.paths(f"{_CPU}/cpu[0-9]*")]
        packages = (sources.text(f"{folder}/physical_package_id") for folder in folders)
        cores = (sources.text(f"{folder}/core_id") for folder in folders)
        pairs = list(zip(packages, cores, strict=True))
    return {(socket, core) for socket, core in pairs if core}


def _frequency(sources: MachineSources) -> str:
    """Return frequencies worded like published descriptions; the kernel counts in kHz."""
    files = {"base": "base_frequency", "boost": "cpuinfo_max_freq"}
    khz = {kind: sources.number(f"{_CPU}/cpu0/cpufreq/{name}") for kind, name in files.items()}
    frequencies = [f"{value / 1e6:.2f} GHz {kind}" for kind, value in khz.items() if value]
    in_name = re.search(
        r"^model name.*@ *([\d.]+) ?GHz", sources.text("proc/cpuinfo"), re.MULTILINE
    )
    if in_name and not khz["base"]:
        frequencies.insert(0, f"{float(in_name[1].rstrip('.')):.2f} GHz base")
    return ", ".join(frequencies)


def _caches(sources: MachineSources) -> str:
    """Return the caches of one processor: number, size, level and kind."""
    package = sources.text(f"{_CPU}/cpu0/topology/physical_package_id")
    sharers: dict[tuple[str, str], set[str]] = {}
    for cpu in sources.paths(f"{_CPU}/cpu[0-9]*"):
        if sources.text(f"{cpu}/topology/physical_package_id") == package:
            for index in sources.paths(f"{cpu}/cache/index[0-9]*"):
                level, kind, size, shared = (
                    sources.text(f"{index}/{name}")
                    for name in ("level", "type", "size", "shared_cpu_list")
                )
                name = f"L{level}{_KINDS.get(kind, '')}"
                sharers.setdefault((name, _binary(size)), set()).add(shared)
    caches = sorted((name, size, len(shared)) for (name, size), shared in sharers.items() if size)
    return ", ".join(f"{_times(number)}{size} {name}" for name, size, number in caches)


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
        return {"0": "SSD", "1": "HDD"}.get(sources.text(f"{disk}/queue/rotational"), "")
    return ""


def _binary(size: str) -> str:
    """Return a size that the kernel writes like ``32768K`` with its unit."""
    match = re.fullmatch(r"(\d{1,12})K", size)
    kib = int(match[1]) if match else 0
    return "" if not kib else f"{kib / 1024:g} MiB" if kib >= 1024 else f"{kib} KiB"  # noqa: PLR2004


# ---- network adapters ---------------------------------------------------------------------

_ETHERNET = "1"  # ARPHRD_ETHER


def _network(sources: MachineSources) -> str:
    """Return adapters by kind and speed, without those whose link is down: they have no speed."""
    ports = Counter[str]()
    for port in sources.paths("sys/class/infiniband/*/ports/*"):
        is_up = sources.text(f"{port}/state").endswith("ACTIVE")
        rate = re.match(r"([\d.]+ Gb/s)ec(?: \(\w+ (\w+)\))?", sources.text(f"{port}/rate"))
        if rate and sources.text(f"{port}/link_layer") == "InfiniBand" and is_up:
            ports[" ".join(filter(None, ("InfiniBand", rate[2], rate[1])))] += 1
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
        files = sources.paths("proc/driver/nvidia/gpus/*/information")
        lines = (re.search(r"^Model:\s+(\S.*)$", sources.text(f), re.MULTILINE) for f in files)
        models = [_vendor(line[1].strip()) for line in lines if line]
        return _counted_fields(len(models), _counted(Counter(models))) if models else {}
    first = cards[0]
    # The tool reports GB/s per direction, of the first accelerator.
    speeds = _LINK.findall(sources.nvidia_smi("nvlink", "--status", "-i", "0"))
    links = _counted(Counter(f"{speed} GB/s" for speed in speeds))
    generation = first["generation"]
    width = first["width"]
    has_pcie = generation.isdigit() and width.isdigit()
    uniform = len({card["name"] for card in cards}) == 1
    model = first["name"] if uniform else _counted(Counter(card["name"] for card in cards))
    return {
        **_counted_fields(len(cards), model),
        "accelerator_host_interconnect": f"PCIe Gen{generation} x{width}" if has_pcie else "",
        "accelerator_frequency": _with_unit(first["clock"], "MHz"),
        "accelerator_memory_capacity": _with_unit(first["memory"], "MiB"),
        "accelerator_interconnect": f"NVLink: {links}" if links else "",
    }


def _cards(sources: MachineSources) -> list[dict[str, str]]:
    query = f"--query-gpu={','.join(_QUERY.values())}"
    output = sources.nvidia_smi(query, "--format=csv,noheader,nounits")
    rows = ([cell.strip() for cell in line.split(",")] for line in output.splitlines())
    return [dict(zip(_QUERY, row, strict=True)) for row in rows if len(row) == len(_QUERY)]


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
    versions = ((name, sources.version_of(package)) for package, name in _FRAMEWORKS.items())
    return [f"{name} {version}" for name, version in versions if version]


def _libraries(sources: MachineSources) -> dict[str, str]:
    """Return the versions of libraries and of the driver, by name."""
    versions = {
        name: next(filter(None, map(sources.version_of, packages)), "")
        for name, packages in _LIBRARIES.items()
    }
    module = sources.text("proc/driver/nvidia/version")
    driver = re.search(r"Kernel Module.*?(\d+\.[\d.]*\d)", module)
    of_cards = (card["driver"] for card in _cards(sources))
    versions["NVIDIA driver"] = driver[1] if driver else next(of_cards, "")
    return {name: version for name, version in versions.items() if version}
