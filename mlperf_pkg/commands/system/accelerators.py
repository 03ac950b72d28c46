"""NVIDIA accelerators, as ``nvidia-smi`` or, without it, the driver's files report them."""

from __future__ import annotations

import re
from collections import Counter

from mlperf_pkg.commands.system.host import counted
from mlperf_pkg.commands.system.sources import Sources

_QUERY = {
    "name": "name",
    "memory": "memory.total",
    "clock": "clocks.max.sm",
    "generation": "pcie.link.gen.max",
    "width": "pcie.link.width.max",
    "driver": "driver_version",
}
_LINK = re.compile(r"^\s*Link \d+: ([\d.]+) GB/s", re.MULTILINE)


def accelerators(sources: Sources) -> dict[str, str]:
    """Return the fields of accelerators; no field where there is no NVIDIA accelerator.

    The number is never given as 0, as there may be accelerators of another vendor.
    """
    cards = _cards(sources)
    if not cards:
        models = _models_of_driver(sources)
        count, model = len(models), counted(Counter(models))
        return _counted_fields(count, model) if models else {}
    first = cards[0]
    uniform = len({card["name"] for card in cards}) == 1
    model = first["name"] if uniform else counted(Counter(card["name"] for card in cards))
    return {
        **_counted_fields(len(cards), model),
        "accelerator_host_interconnect": _pcie(first),
        "accelerator_frequency": _with_unit(first["clock"], "MHz"),
        "accelerator_memory_capacity": _with_unit(first["memory"], "MiB"),
        "accelerator_interconnect": _links(sources),
    }


def driver(sources: Sources) -> str:
    """Return the version of the driver."""
    text = sources.text("proc/driver/nvidia/version")
    version = re.search(r"Kernel Module.*?(\d+\.[\d.]*\d)", text)
    return version[1] if version else next((card["driver"] for card in _cards(sources)), "")


def _cards(sources: Sources) -> list[dict[str, str]]:
    query = f"--query-gpu={','.join(_QUERY.values())}"
    output = sources.nvidia_smi(query, "--format=csv,noheader,nounits")
    rows = ([cell.strip() for cell in line.split(",")] for line in output.splitlines())
    return [dict(zip(_QUERY, row, strict=True)) for row in rows if len(row) == len(_QUERY)]


def _models_of_driver(sources: Sources) -> list[str]:
    files = sources.paths("proc/driver/nvidia/gpus/*/information")
    matches = (re.search(r"^Model:\s+(\S.*)$", sources.text(f), re.MULTILINE) for f in files)
    return [_vendor(match[1].strip()) for match in matches if match]


def _counted_fields(count: int, model: str) -> dict[str, str]:
    return {"accelerators_per_node": str(count), "accelerator_model_name": _vendor(model)}


def _vendor(model: str) -> str:
    return model if "NVIDIA" in model else f"NVIDIA {model}"


def _with_unit(number: str, unit: str) -> str:
    return f"{number} {unit}" if number.isdigit() else ""


def _pcie(card: dict[str, str]) -> str:
    complete = card["generation"].isdigit() and card["width"].isdigit()
    return f"PCIe Gen{card['generation']} x{card['width']}" if complete else ""


def _links(sources: Sources) -> str:
    """Return the links of the first accelerator; the tool reports GB/s per direction."""
    speeds = _LINK.findall(sources.nvidia_smi("nvlink", "--status", "-i", "0"))
    return f"NVLink: {counted(Counter(f'{speed} GB/s' for speed in speeds))}" if speeds else ""
