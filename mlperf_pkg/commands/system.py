"""System descriptions: those of this machine and of several nodes, and checked by themselves.

``describe`` returns every field of a description. Required fields that could not be detected are
marked ``FILL IN``, which ``checks`` rejects. The values of a machine are from ``/proc`` and
``/sys``, from ``nvidia-smi`` or, without it, the driver's files, and from installed Python
distributions; not from psutil, which has no processor models, caches, memory modules or InfiniBand,
and cannot read the ``/sys`` of another machine, as the tests do. A source that is missing or cannot
be read gives an empty string. Descriptions of network adapters are not read: they have host names.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from mlperf_pkg.checker.fold import system_row, tool
from mlperf_pkg.checker.values import Options
from mlperf_pkg.checks import system_schema as schema
from mlperf_pkg.checks.descriptions import SystemFile, check_system, unchecked_system
from mlperf_pkg.checks.names import FIELDS as NAME_FIELDS
from mlperf_pkg.checks.names import published_spelling
from mlperf_pkg.checks.tree import not_read
from mlperf_pkg.errors import UserError
from mlperf_pkg.findings import Verdicts, folded, in_order
from mlperf_pkg.infra.json_values import MAX_BYTES, JsonSyntaxError, read_json
from mlperf_pkg.infra.paths import NotAFileError, is_folder, open_file, read_file
from mlperf_pkg.infra.text import did_you_mean
from mlperf_pkg.results.report import Report, as_json
from mlperf_pkg.results.wording import counted
from mlperf_pkg.rulebook.documents import rounds
from mlperf_pkg.rulebook.load import load_round
from mlperf_pkg.rulebook.model import DIVISIONS, version_of
from mlperf_pkg.rulebook.rounds import TRAINING, Sureness
from mlperf_pkg.run.identity import Identity, identify
from mlperf_pkg.run.model import LogFile
from mlperf_pkg.submission.find import find_input

DEFAULT_LOGS = "logs"
"""The folder of logs in a workspace, beside that of the descriptions."""


class SystemRound(Struct, frozen=True):
    """The round whose rules apply to a description, and the reason for it."""

    usage: str
    name: str
    reason: str


def round_of_systems(options: Options, paths: Sequence[str] = ()) -> SystemRound:
    """Return the round of the options, or else of the configuration, the logs, or else the newest.

    The logs are those in a folder ``logs`` beside the folder of a description in ``paths``.

    Raises:
        UserError: the rulebook has no such round.
    """
    usage = options.usage or options.config.usage or TRAINING
    if options.round:
        name, reason = options.round, "as given"
    elif options.config.round:
        name, reason = options.config.round, f"as {options.origin} says"
    elif of_logs := _round_of_logs(paths, options.usage or options.config.usage):
        return of_logs
    else:
        name, reason = rounds(usage)[-1], "the newest of the rulebook"
    return SystemRound(usage, load_round(usage, name).name, reason)


def _round_of_logs(paths: Sequence[str], usage: str | None) -> SystemRound | None:
    """Return the newest round that follows from the times of logs; None if there is none."""
    folders = dict.fromkeys((p if is_folder(p) else p.parent).absolute() for p in map(Path, paths))
    logs = [folder.parent / DEFAULT_LOGS for folder in folders]
    identities = [i for folder in logs if is_folder(folder) for i in _identities(folder, usage)]
    inferred = [i for i in identities if i.choice.sureness is Sureness.INFERRED]
    if not inferred:
        return None
    newest = max(inferred, key=lambda identity: version_of(identity.choice.name))
    reason = f"from the logs in {DEFAULT_LOGS}/, {newest.choice.reason}"
    return SystemRound(newest.usage, newest.choice.name, reason)


def _identities(folder: Path, usage: str | None) -> Iterator[Identity]:
    with suppress(UserError, OSError):  # logs that cannot be read do not show the round
        for place in find_input(str(folder)).every_log:
            yield identify(LogFile(place.source, usage=usage))


def check_descriptions(paths: Sequence[str], round_: SystemRound) -> Report:
    """Check descriptions, and all ``*.json`` of folders, by the rules of a round.

    Raises:
        UserError: a folder has no ``*.json``.
        OSError: a file does not exist.
    """
    files = [file for path in paths for file in description_files(path)]
    systems = [checked_description(file, round_) for file in files]
    findings = [f for system in systems for f in folded(system.findings, system.path)]
    rows = tuple(system_row(system, round_.usage, round_.name) for system in systems)
    return Report(
        tool=tool(),
        usage=round_.usage,
        round=round_.name,
        round_reason=round_.reason,
        verdict=Verdicts.worst(row.verdict for row in rows),
        systems=rows,
        findings=in_order(findings),
    )


def checked_description(file: str, round_: SystemRound) -> SystemFile:
    """Check one description by the rules of a round.

    Raises:
        OSError: the file does not exist.
    """
    try:
        with open_file(Path(file)) as stream:
            data = stream.read(MAX_BYTES + 1)
    except (PermissionError, NotAFileError) as error:
        return unchecked_system(file, not_read(file, str(error.strerror)))
    return check_system(file, data, round_.usage, round_.name)


def description_files(path: str) -> list[str]:
    """Return a file, or the ``*.json`` of a folder.

    Raises:
        UserError: the folder has none.
    """
    if not is_folder(Path(path)):
        return [path]
    files = sorted(str(file) for file in Path(path).glob("*.json") if file.is_file())
    if not files:
        raise UserError(f"{path}: no system description in this folder (no file named *.json)")
    return files


# ---- the values of a machine -------------------------------------------------------------

_LARGEST_FILE = 1 << 24
_PATIENCE_S = 30
_TOOL = "nvidia-smi"


class Sources(Struct, frozen=True):
    """The sources of one machine.

    ``root`` is the folder of ``proc``, ``sys`` and ``etc``, None where there is none.
    ``nvidia_smi`` returns the output of that tool for some arguments, ``version_of`` the version
    of an installed Python distribution; both return an empty string if there is none.
    """

    root: Path | None
    nvidia_smi: Callable[..., str]
    version_of: Callable[[str], str]

    def text(self, path: str) -> str:
        """Return the contents of a file, stripped."""
        return "" if self.root is None else _text(self.root / path)

    def number(self, path: str) -> int | None:
        """Return the contents of a file as a non-negative whole number, None if it is not one."""
        text = self.text(path)
        return int(text) if text.isascii() and text.isdigit() else None

    def exists(self, path: str) -> bool:
        """Return whether a file or folder exists."""
        return self.root is not None and (self.root / path).exists()

    def paths(self, pattern: str) -> list[str]:
        """Return the files and folders that match a pattern, sorted by name."""
        if self.root is None:
            return []
        try:
            return sorted(
                path.relative_to(self.root).as_posix() for path in self.root.glob(pattern)
            )
        except OSError:
            return []


def this_machine() -> Sources:
    """Return the sources of this machine; only Linux has files."""
    root = Path("/") if sys.platform == "linux" else None
    return Sources(root, _nvidia_smi, _version_of)


def detected(sources: Sources, installed: Sequence[str]) -> Mapping[str, Any]:
    """Return the fields of a machine, empty where it gives no value; see ``frameworks``."""
    nodes = len(sources.paths("sys/devices/system/node/node[0-9]*"))
    numa = f"{nodes} NUMA nodes" if nodes > 1 else ""
    release = sources.text("etc/os-release") or sources.text("usr/lib/os-release")
    system = re.search(r"""^PRETTY_NAME=(["']?)(.*)\1$""", release, re.MULTILINE)
    return {
        **_processors(sources),
        **_memory(sources),
        **_storage(sources),
        **_accelerators(sources),
        "host_networking": _network(sources),
        "hw_notes": ", ".join(filter(None, (_product(sources), numa))),
        "framework": installed[0] if len(installed) == 1 else None,
        "other_software_stack": _libraries(sources),
        "operating_system": system[2].strip() if system else "",
    }


def _text(path: Path) -> str:
    try:
        with path.open("rb") as stream:
            return stream.read(_LARGEST_FILE).decode("utf-8", "replace").replace("\0", "").strip()
    except (OSError, ValueError):
        return ""


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


def _processors(sources: Sources) -> dict[str, str]:
    """Return the fields of the host's processors."""
    blocks = [_entries(block) for block in sources.text("proc/cpuinfo").split("\n\n")]
    logical = [block for block in blocks if "processor" in block]
    model = _model(logical[0]) if logical else ""
    sockets = _sockets(sources, logical)
    cores = set().union(*sockets.values())
    count = len(sockets)
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


def _memory(sources: Sources) -> dict[str, str]:
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


def _storage(sources: Sources) -> dict[str, str]:
    """Return the fields of built-in disks, without virtual ones: loops, memory and arrays."""
    kinds, sizes = Counter[str](), Counter[str]()
    for disk in sources.paths("sys/block/*"):
        size = (sources.number(f"{disk}/size") or 0) * _SECTOR
        kind = _kind(sources, disk)
        if size and kind and sources.text(f"{disk}/removable") != "1":
            kinds[kind] += 1
            tb = size / 1e12
            sizes[f"{tb:.3g} TB" if tb >= 1 else f"{size / 1e9:.3g} GB"] += 1
    return {"host_storage_type": ", ".join(sorted(kinds)), "host_storage_capacity": _counted(sizes)}


def _product(sources: Sources) -> str:
    """Return the vendor and the name of the machine."""
    names = ("sys_vendor", "product_name")
    return " ".join(filter(None, (sources.text(f"sys/class/dmi/id/{name}") for name in names)))


def _counted(names: Counter[str]) -> str:
    """Return text like ``8 x 3.84 TB, 480 GB``, the most frequent name first."""
    ordered = sorted(names.items(), key=lambda pair: (-pair[1], pair[0]))
    return ", ".join(f"{_times(number)}{name}" for name, number in ordered)


def _times(number: int) -> str:
    return f"{number} x " if number > 1 else ""


def _entries(block: str) -> dict[str, str]:
    pairs = (line.partition(":") for line in block.splitlines())
    return {name.strip(): value.strip() for name, _, value in pairs}


def _model(block: dict[str, str]) -> str:
    arm = _ARM.get(block.get("CPU part", ""))
    name = block.get("model name") or (f"Neoverse-{arm}" if arm else "")
    plain = re.sub(r"\((R|TM|r|tm)\)|\bCPU\b|@.*|\b\d+-Core Processor\b|\bProcessor\b", " ", name)
    return " ".join(plain.split())


def _sockets(
    sources: Sources, logical: Iterable[dict[str, str]]
) -> dict[str, set[tuple[str, str]]]:
    """Return the cores of each socket, as pairs of socket and core number."""
    pairs = [(block.get("physical id", ""), block.get("core id", "")) for block in logical]
    if not all(core for _, core in pairs):
        topologies = [f"{cpu}/topology" for cpu in sources.paths(f"{_CPU}/cpu[0-9]*")]
        pairs = [
            (sources.text(f"{folder}/physical_package_id"), sources.text(f"{folder}/core_id"))
            for folder in topologies
        ]
    sockets: dict[str, set[tuple[str, str]]] = {}
    for socket, core in pairs:
        if core:
            sockets.setdefault(socket, set()).add((socket, core))
    return sockets


def _frequency(sources: Sources) -> str:
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


def _caches(sources: Sources) -> str:
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


def _modules(sources: Sources) -> str:
    """Return the memory modules that the memory controllers report; sizes are in MiB."""
    modules = Counter[str]()
    for module in sources.paths("sys/devices/system/edac/mc/mc[0-9]*/dimm[0-9]*"):
        if size := sources.number(f"{module}/size"):
            kind = sources.text(f"{module}/dimm_mem_type")
            modules[f"{size / 1024:g} GiB {kind}".strip()] += 1
    return _counted(modules)


def _kind(sources: Sources, disk: str) -> str:
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


def _network(sources: Sources) -> str:
    """Return adapters by kind and speed, without those whose link is down: they have no speed."""
    ports = Counter[str]()
    for port in sources.paths("sys/class/infiniband/*/ports/*"):
        is_up = sources.text(f"{port}/state").endswith("ACTIVE")
        rate = re.match(r"([\d.]+ Gb/s)ec(?: \(\w+ (\w+)\))?", sources.text(f"{port}/rate"))
        if rate and sources.text(f"{port}/link_layer") == "InfiniBand" and is_up:
            ports[" ".join(filter(None, ("InfiniBand", rate[2], rate[1])))] += 1
    for card in sources.paths("sys/class/net/*"):
        built_in = sources.exists(f"{card}/device")
        speed = sources.number(f"{card}/speed")
        if built_in and speed and sources.text(f"{card}/type") == _ETHERNET:
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


def _accelerators(sources: Sources) -> dict[str, str]:
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
    generation, width = first["generation"], first["width"]
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


def _cards(sources: Sources) -> list[dict[str, str]]:
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


def frameworks(sources: Sources) -> list[str]:
    """Return each installed framework with its version."""
    versions = ((name, sources.version_of(package)) for package, name in _FRAMEWORKS.items())
    return [f"{name} {version}" for name, version in versions if version]


def _libraries(sources: Sources) -> dict[str, str]:
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


# ---- its description ---------------------------------------------------------------------

ONE_NODE = "N/A, one node"
"""The network topology of a system with one node."""


class UserValues(Struct, frozen=True):
    """Values that only the user knows; their spelling depends on ``usage`` and ``round``.

    ``status`` is an availability in the words of any round. ``name`` is the system's name in the
    results table, never that of the host.
    """

    round: str
    submitter: str | None = None
    division: str | None = None
    status: str | None = None
    name: str | None = None
    nodes: int | None = None
    usage: str = TRAINING


def describe(sources: Sources, user_values: UserValues) -> dict[str, Any]:
    """Return the completed description of a machine, with names as published.

    Raises:
        UserError: the round has no such availability.
    """
    installed = frameworks(sources)
    values = detected(sources, installed)
    names = {field: values.get(field) or "" for field in NAME_FIELDS}
    spellings = {field: published_spelling(field, name) or name for field, name in names.items()}
    return completed({**values, **spellings}, user_values, installed)


def completed(
    values: Mapping[str, Any], user_values: UserValues, installed: Sequence[str] = ()
) -> dict[str, Any]:
    """Return every required field, in order, then others, and those that need an answer.

    The value of an unknown field begins with ``FILL IN`` where the rules require an answer, and is
    empty where they do not; ``installed`` are the frameworks to choose from.

    Raises:
        UserError: the round has no such availability.
    """
    values = {**values, **user_fields(user_values)}
    required = {name: values.get(name) or "" for name in schema.required_fields()}
    fields = required | {name: value for name, value in values.items() if value}
    for group in schema.needing_answer():
        if not any(fields.get(name) for name in group):
            fields[group[0]] = f"{schema.FILL_IN}: {_question(group[0], user_values, installed)}"
    return fields


def user_fields(user_values: UserValues) -> dict[str, str]:
    """Return the fields that the user gives.

    Raises:
        UserError: the round has no such availability.
    """
    values = {
        "submitter": user_values.submitter,
        "division": user_values.division,
        "status": _status(user_values),
        "system_name": user_values.name,
        "number_of_nodes": str(user_values.nodes) if user_values.nodes else None,
        "host_networking_topology": ONE_NODE if user_values.nodes == 1 else None,
    }
    return {name: value for name, value in values.items() if value}


def _status(user_values: UserValues) -> str | None:
    if user_values.status is None:
        return None
    status = schema.status_of_round(user_values.status, user_values.usage, user_values.round)
    if status is None:
        raise UserError(
            f"unknown status of round {user_values.round}: {user_values.status!r}"
            f"{did_you_mean(user_values.status, schema.spelled_statuses(), schema.SIMILAR)}"
            f" (known: {'; '.join(schema.statuses(user_values.usage, user_values.round))})"
        )
    return status


def _question(field: str, user_values: UserValues, installed: Sequence[str]) -> str:
    """Return what the user must fill in, or the possible answers."""
    choices = {
        "status": schema.statuses(user_values.usage, user_values.round),
        "division": DIVISIONS,
        "framework": installed,
    }.get(field)
    return " or ".join(choices) if choices else schema.meaning(field)


# ---- a system with several nodes ----------------------------------------------------------

_MOST_NAMED = 3  # files with one value, and values of one field
_COUNT = "number_of_nodes"
_BY_NAME = "other_software_stack"  # its members are separate values

_Name = tuple[str, ...]  # a field, or a field and the name of a member


Node = tuple[str, dict[str, Any]]
"""The file and the fields of the description of one node."""


def read_nodes(paths: Sequence[str]) -> list[Node]:
    """Return the descriptions in files, and in the ``*.json`` files of folders.

    Raises:
        UserError: a file is named twice or is not a description, or a folder has no ``*.json``.
        OSError: a file cannot be read.
    """
    files = [file for path in paths for file in description_files(path)]
    first_by_file: dict[Path, str] = {}
    for file in files:
        first = first_by_file.setdefault(Path(file).resolve(), file)
        if first is not file:
            raise UserError(f"{file}: named twice; expected a file for each node")
    return [(file, _fields(file)) for file in files]


def _fields(file: str) -> dict[str, Any]:
    try:
        fields = as_json(read_json(read_file(Path(file), MAX_BYTES)).value)
    except JsonSyntaxError as error:
        raise UserError(f"{file}:{error.line}: {error.message}") from error
    if not isinstance(fields, dict):
        raise UserError(
            f"{file}: the file holds {schema.shown(fields)}; expected an object of fields"
        )
    return fields


def merge(nodes: Sequence[Node], user_values: UserValues) -> tuple[dict[str, Any], list[str]]:
    """Return the description of the system of these nodes, and a line for each difference.

    A field in which nodes differ begins with ``FILL IN``, unless only one value is an answer, which
    then applies to the system. Fields that the user sets do not differ.

    Raises:
        UserError: the user gives another number of nodes, or an unknown availability.
    """
    number = len(nodes)
    if user_values.nodes not in (None, number):
        raise UserError(f"--nodes is {user_values.nodes}; expected {number}, one for each file")
    user_values = replace(user_values, nodes=number)
    of_user = user_fields(user_values)
    fields: dict[str, Any] = {}
    counts = (of_node.get(_COUNT) for _, of_node in nodes)
    unlike = [None if schema.whole_number(value) in (1, number) else value for value in counts]
    others = {text: answer for text, answer in _answers(nodes, unlike).items() if text}
    expected = f"expected {number}, one for each file"
    differences = [f"{_COUNT}: {_in_words(others)}; {expected}"] if others else []
    for name, values in _values(nodes).items():
        if name[0] not in of_user:
            answers = _answers(nodes, values)
            members = fields if len(name) == 1 else fields.setdefault(name[0], {})
            members[name[-1]] = _merged(answers)
            if len(answers) > 1:
                differences.append(f"{'.'.join(name)}: {_in_words(answers)}")
    return completed(fields, user_values), differences


def _values(nodes: Sequence[Node]) -> Mapping[_Name, list[Any]]:
    """Return the values of each field, one per node, None if a node has no value."""
    named = all(isinstance(fields.get(_BY_NAME, {}), dict) for _, fields in nodes)
    flat = [dict(_members(fields, named=named)) for _, fields in nodes]
    names = dict.fromkeys(name for values in flat for name in values)
    return {name: [values.get(name) for values in flat] for name in names}


def _members(fields: Mapping[str, Any], *, named: bool) -> Iterator[tuple[_Name, Any]]:
    """Yield the values of a node, with each version of its software if it is ``named``."""
    for name, value in fields.items():
        if name == _BY_NAME and named:
            yield from (((name, member), version) for member, version in value.items())
        elif value != ONE_NODE:
            yield (name,), value


_Answer = tuple[Any, list[str]]
"""A value of a field, and the files that have it."""


def _answers(nodes: Sequence[Node], values: Sequence[Any]) -> dict[str, _Answer]:
    """Return the different values by their text, which is empty for nodes without an answer."""
    answers: dict[str, _Answer] = {}
    for (path, _), value in zip(nodes, values, strict=True):
        text = value if isinstance(value, str) else json.dumps(value)
        is_known = schema.is_answer(value) and not schema.is_to_fill_in(value)
        _, files = answers.setdefault(text if is_known else "", (value, []))
        files.append(Path(path).name)
    return answers


def _merged(answers: Mapping[str, _Answer]) -> Any:
    """Return the only answer, or a placeholder with all answers."""
    texts = [text for text in answers if text]
    if len(texts) > 1:
        return f"{schema.FILL_IN}: {' or '.join(_some(texts))}"
    return answers[texts[0] if texts else ""][0]


def _in_words(answers: Mapping[str, _Answer]) -> str:
    """Return the values, the most frequent first, with their files or the number of nodes."""
    parts = []
    for text, (_, files) in sorted(answers.items(), key=lambda pair: -len(pair[1][1])):
        where = ", ".join(files) if len(files) <= _MOST_NAMED else f"{len(files)} nodes"
        parts.append(f"{schema.shown(text) if text else 'no value'} ({where})")
    return "; ".join(_some(parts))


def _some(texts: list[str]) -> list[str]:
    more = len(texts[_MOST_NAMED:])
    return [*texts[:_MOST_NAMED], *([counted(more, "other value")] if more else [])]
