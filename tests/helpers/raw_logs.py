"""Raw logs, and descriptions of systems, of a workspace."""

from tests.helpers.logs import edited
from tests.helpers.workspaces import described, logs_of, numbered

LOGS = logs_of("bow-pod16")


def a_system(name: str, **changes: object) -> dict[str, bytes]:
    return {f"systems/{name}.json": described("bow-pod16", **{"system_name": name, **changes})}


OWN, OTHER = a_system("bow-pod16"), a_system("bow-pod64", number_of_nodes="4")


def saying(key: str, value: str) -> dict[str, bytes]:
    return numbered((edited(log, key, value=value) for log in LOGS), "logs/{}.log")


RAW = numbered(LOGS, "logs/{}.log")
