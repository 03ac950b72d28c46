"""Made-up machines: their files, the output of nvidia-smi, what Python distributions they have."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from mlperf_pkg.commands.system.machine import MachineSources

HOST = "secret-host-17"
_CPU = "sys/devices/system/cpu"
_QUERY = "--query-gpu=name,memory.total,clocks.max.sm,pcie.link.gen.max,pcie.link.width.max"


@dataclass(frozen=True)
class Machine:
    files: Mapping[str, str] = field(default_factory=dict)
    nvidia_smi: Mapping[tuple[str, ...], str] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)

    def sources(self, root: Path) -> MachineSources:
        for name, text in self.files.items():
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return MachineSources(
            root,
            lambda *arguments: self.nvidia_smi.get(arguments[:1], ""),
            lambda name: self.versions.get(name, ""),
        )


def _caches(cpu: int, l3_of: str) -> dict[str, str]:
    kinds = (
        ("1", "Data", "32K", f"{cpu}"),
        ("1", "Instruction", "64K", f"{cpu}"),
        ("2", "Unified", "512K", f"{cpu}"),
        ("3", "Unified", "32768K", l3_of),
    )
    return {
        f"{_CPU}/cpu{cpu}/cache/index{index}/{name}": f"{text}\n"
        for index, kind in enumerate(kinds)
        for name, text in zip(("level", "type", "size", "shared_cpu_list"), kind, strict=True)
    }


def _topology(cpu: int, socket: int, core: int) -> dict[str, str]:
    return {
        f"{_CPU}/cpu{cpu}/topology/physical_package_id": f"{socket}\n",
        f"{_CPU}/cpu{cpu}/topology/core_id": f"{core}\n",
    }


def _block(cpu: int) -> str:
    """Eight logical processors: two sockets of two cores of two threads."""
    return (
        f"processor\t: {cpu}\nmodel name\t: AMD EPYC 9654 96-Core Processor\n"
        f"physical id\t: {cpu % 4 // 2}\ncore id\t\t: {cpu % 2}\nflags\t\t: fpu vme\n"
    )


def _disk(name: str, size: int, rotational: str, removable: str = "0") -> dict[str, str]:
    return {
        f"sys/block/{name}/size": f"{size // 512}\n",
        f"sys/block/{name}/queue/rotational": f"{rotational}\n",
        f"sys/block/{name}/removable": f"{removable}\n",
    }


def _infiniband(number: int, state: str = "4: ACTIVE", layer: str = "InfiniBand") -> dict[str, str]:
    port = f"sys/class/infiniband/mlx5_{number}/ports/1"
    return {
        f"sys/class/infiniband/mlx5_{number}/node_desc": f"{HOST} mlx5_{number}\n",
        f"{port}/rate": "400 Gb/sec (4X NDR)\n",
        f"{port}/state": f"{state}\n",
        f"{port}/link_layer": f"{layer}\n",
    }


def _card(name: str, speed: str, kind: str = "1", built_in: bool = True) -> dict[str, str]:
    card = f"sys/class/net/{name}"
    device = {f"{card}/device/vendor": "0x15b3\n"} if built_in else {}
    return {f"{card}/speed": f"{speed}\n", f"{card}/type": f"{kind}\n", **device}


_NAMES = {
    "etc/hostname": f"{HOST}\n",
    "proc/sys/kernel/hostname": f"{HOST}\n",
    "proc/version": f"Linux version 6.8.0 (root@{HOST})\n",
}

EPYC = Machine(
    files={
        **_NAMES,
        "proc/cpuinfo": "\n".join(map(_block, range(8))),
        "proc/meminfo": "MemTotal:       2113413120 kB\nMemFree: 1 kB\n",
        "proc/driver/nvidia/version": "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15\n",
        "etc/os-release": 'NAME="Ubuntu"\nPRETTY_NAME="Ubuntu 22.04.4 LTS"\n',
        "sys/class/dmi/id/sys_vendor": "ACME\n",
        "sys/class/dmi/id/product_name": "X8\n",
        "sys/devices/system/memory/block_size_bytes": "8000000000\n",
        **{f"sys/devices/system/memory/memory{n}/state": "online\n" for n in range(4)},
        **{f"sys/devices/system/node/node{n}/cpulist": "0\n" for n in range(2)},
        **{
            f"sys/devices/system/edac/mc/mc{n}/dimm0/{name}": f"{text}\n"
            for n in range(24)
            for name, text in (("size", "98304"), ("dimm_mem_type", "Registered-DDR5"))
        },
        f"{_CPU}/cpu0/cpufreq/cpuinfo_max_freq": "3707812\n",
        f"{_CPU}/cpu0/cpufreq/base_frequency": "2400000\n",
        **{k: v for n in range(8) for k, v in _topology(n, n % 4 // 2, n % 2).items()},
        **{k: v for n in (0, 1, 4, 5) for k, v in _caches(n, "0-1,4-5").items()},
        **{k: v for n in (2, 3, 6, 7) for k, v in _caches(n, "2-3,6-7").items()},
        **{k: v for n in range(4) for k, v in _disk(f"nvme{n}n1", 3_840_755_982_336, "0").items()},
        **_disk("nvme0c0n1", 3_840_755_982_336, "0"),
        **_disk("sda", 480_103_981_056, "0"),
        **_disk("sdb", 0, "1"),
        **_disk("sdc", 16_000_000_000, "0", removable="1"),
        **_disk("loop0", 64 << 20, "0"),
        **_disk("md0", 7_681_511_964_672, "0"),
        **{k: v for n in range(8) for k, v in _infiniband(n).items()},
        **_infiniband(8, state="1: DOWN"),
        **_infiniband(9, layer="Ethernet"),
        **_card("eno1", "25000"),
        **_card("eno2", "-1"),
        **_card("ib0", "400000", kind="32"),
        **_card("docker0", "10000", built_in=False),
    },
    nvidia_smi={
        (f"{_QUERY},driver_version",): "NVIDIA H100 80GB HBM3, 81559, 1980, 5, 16, 550.54.15\n" * 8,
        ("nvlink",): "GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-1)\n"
        + "".join(f"\t Link {n}: 26.562 GB/s\n" for n in range(18)),
    },
    versions={
        "torch": "2.3.0+cu121",
        "nvidia-cudnn-cu12": "8.9.2.26",
        "nvidia-nccl-cu12": "2.20.5",
        "nvidia-cuda-runtime-cu12": "12.1.105",
    },
)

ARM = Machine(
    files={
        **_NAMES,
        "proc/cpuinfo": "\n".join(
            f"processor\t: {n}\nCPU implementer\t: 0x41\nCPU part\t: 0xd4f\n" for n in range(2)
        ),
        "proc/meminfo": "MemTotal:       501904128 kB\n",
        **_topology(0, 0, 0),
        **_topology(1, 0, 1),
        "proc/driver/nvidia/gpus/0009:01:00.0/information": "Model: \t\t GH200 480GB\nIRQ: 1\n",
        "proc/driver/nvidia/version": (
            "NVRM version: NVIDIA UNIX Open Kernel Module for aarch64  560.1\n"
        ),
        **_card("enP1", "1000"),
    },
    nvidia_smi={(f"{_QUERY},driver_version",): "NVIDIA-SMI has failed\n"},
    versions={"torch": "2.4.0", "jax": "0.4.30"},
)

CONTAINER = Machine(
    files={
        **_NAMES,
        "proc/cpuinfo": "processor\t: 0\n"
        "model name\t: Intel(R) Xeon(R) Platinum 8481C CPU @ 2.70GHz\n"
        "physical id\t: 0\ncore id\t\t: 0\nflags\t\t: fpu hypervisor\n",
        "proc/meminfo": "MemTotal:       65843148 kB\n",
        "usr/lib/os-release": "PRETTY_NAME='Debian GNU/Linux 12 (bookworm)'\n",
        **_disk("sda", 100 << 30, "1"),
    }
)

BROKEN = Machine(
    files={
        **_NAMES,
        "proc/cpuinfo": "processor\nprocessor : \n\n\0\ud7ff:::\nphysical id: x\n",
        "proc/meminfo": "MemTotal: lots kB\n",
        "etc/os-release": "PRETTY_NAME\n",
        "sys/devices/system/memory/block_size_bytes": "-8\n",
        "sys/devices/system/memory/memory0/state": "?\n",
        f"{_CPU}/cpu0/cpufreq/cpuinfo_max_freq": "fast\n",
        f"{_CPU}/cpu0/cache/index0/size": "unknown\n",
        "sys/devices/system/edac/mc/mc0/dimm0/size": "\n",
        "sys/block/nvme0n1/size": "many\n",
        "sys/class/infiniband/x/ports/1/rate": "\n",
        "sys/class/net/eth0/speed/oops": "a folder\n",
    },
    nvidia_smi={(f"{_QUERY},driver_version",): ",,\nNVIDIA, [N/A], x\n"},
)
