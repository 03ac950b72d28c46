"""Invented files of the tree of a simulated round: notice, code, system descriptions."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from mlperf_pkg.simulate.plan import PER_NODE

NOTICE = "README.md"
NOTICE_BEGINS = "# Simulated by mlperf-pkg"

CONFIG_KEY = "config_filename"
_CONFIG = "config.sh"

SYSTEM: Mapping[str, Any] = {
    "submitter": "Simulated",
    "division": "closed",
    "status": "Available on-premise",
    "system_name": "Simulated system",
    "number_of_nodes": "1",
    "host_processors_per_node": "2",
    "host_processor_model_name": "Simulated processor",
    "host_processor_core_count": "64",
    "host_processor_vcpu_count": "",
    "host_processor_frequency": "2.5 GHz",
    "host_processor_caches": "",
    "host_processor_interconnect": "",
    "host_memory_capacity": "1024 GiB",
    "host_storage_type": "NVMe SSD",
    "host_storage_capacity": "4 x 3.84 TB",
    "host_networking": "8 x InfiniBand 200 Gb/s",
    "host_networking_topology": "Fat tree",
    "host_memory_configuration": "16 x 64 GiB DDR4",
    "accelerators_per_node": str(PER_NODE),
    "accelerator_model_name": "Simulated accelerator",
    "accelerator_host_interconnect": "PCIe Gen5 x16",
    "accelerator_frequency": "1.5 GHz",
    "accelerator_on-chip_memories": "",
    "accelerator_memory_configuration": "HBM3",
    "accelerator_memory_capacity": "80 GB",
    "accelerator_interconnect": "Simulated links",
    "accelerator_interconnect_topology": "",
    "cooling": "Air",
    "hw_notes": "Simulated: no such system was measured",
    "framework": "Simulated framework 1.0",
    "other_software_stack": {"simulated library": "1.0"},
    "operating_system": "Linux",
    "sw_notes": "",
}
"""The description of a system of one node, with a status that every round has."""


def notice(usage: str, round_: str, seed: int) -> str:
    """Return the text at the top of the tree, which allows another round to replace it."""
    return (
        f"{NOTICE_BEGINS}\n\nMLPerf {usage} {round_}, seed {seed}. No result in this folder was"
        " measured: submitters, systems and logs are made up.\n"
    )


def description(values: Mapping[str, str], system: Mapping[str, Any] = SYSTEM) -> str:
    """Return the description of ``system``, with other ``values`` of some fields."""
    return f"{json.dumps({**system, **values}, indent=2)}\n"


def code(benchmark: str, config: str | None) -> dict[str, str]:
    """Return stubs of a benchmark's code by file name; ``config`` names the one that logs name."""
    return {
        "README.md": f"# {benchmark}\n\n"
        "Simulated: there is no code. `bash run_and_time.sh` says so.\n",
        "run_and_time.sh": "#!/bin/bash\n"
        f"echo 'simulated: {benchmark} is not trained' >&2\nexit 1\n",
        config or _CONFIG: "# Simulated: nothing is configured.\n",
    }
