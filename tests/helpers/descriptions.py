"""A good system description."""

import json
from typing import Any

# Written with an indent, the nth field is on line n + 1.
GOOD = {
    "submitter": "Acme",
    "division": "closed",
    "status": "Available on-premise",
    "system_name": "anvil",
    "number_of_nodes": "2",
    "host_processors_per_node": "2",
    "host_processor_model_name": "Forge 9",
    "host_processor_core_count": "32",
    "host_processor_vcpu_count": "",
    "host_processor_frequency": "",
    "host_processor_caches": "",
    "host_processor_interconnect": "",
    "host_memory_capacity": "512 GB",
    "host_storage_type": "SSD",
    "host_storage_capacity": "4 TB",
    "host_networking": "100 GbE",
    "host_networking_topology": "N/A",
    "host_memory_configuration": "16 x 32 GB",
    "accelerators_per_node": "8",
    "accelerator_model_name": "Hammer 1",
    "accelerator_host_interconnect": "PCIe 4.0 x16",
    "accelerator_frequency": "",
    "accelerator_on-chip_memories": "",
    "accelerator_memory_configuration": "HBM3",
    "accelerator_memory_capacity": "80 GB",
    "accelerator_interconnect": "Tongs",
    "accelerator_interconnect_topology": "",
    "cooling": "Air-cooled",
    "hw_notes": "",
    "framework": "PyTorch 2.1",
    "other_software_stack": "driver 1.2",
    "operating_system": "Ubuntu 22.04",
    "sw_notes": "",
    "system_type": "datacenter",
    "host_network_card_count": "8",
}


def written(**changes: Any) -> bytes:
    """The good description with other fields; a field of ``...`` is left out."""
    fields = {k: v for k, v in {**GOOD, **changes}.items() if v is not ...}
    return json.dumps(fields, indent=2).encode()
