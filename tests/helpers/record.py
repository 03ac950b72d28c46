"""The record of all published rounds: its rows, and the result sets that they describe."""

import csv
import gzip
from functools import cache

from msgspec.structs import replace

from mlperf_pkg.checks.context import SetContext
from mlperf_pkg.checks.copies import findings_on, pairs_of, shared_runs
from mlperf_pkg.checks.descriptions import SystemFile
from mlperf_pkg.findings import Finding, Verdict, Verdicts
from mlperf_pkg.infra.source import Source
from mlperf_pkg.rulebook.load import load_round
from mlperf_pkg.run.model import LogFile, unread_run
from mlperf_pkg.submission.model import Place, PowerFolder, ResultSet
from tests.helpers.corpus import CORPUS

NOTHING = Finding(code="", message="", path="")


@cache
def rows(name: str) -> tuple[dict[str, str], ...]:
    with gzip.open(CORPUS.parent / "record" / f"{name}.csv.gz", "rt", encoding="utf-8") as stream:
        return tuple(csv.DictReader(stream))


@cache
def paths() -> dict[str, str]:
    """The path of each result set of the record below the corpus."""
    prefix = {"hpc": "hpc_v", "training": "v"}
    return {r["set"]: f"{prefix[r['usage']]}{r['round']}/{r['path']}" for r in rows("sets")}


@cache
def contexts() -> list[SetContext]:
    """All published result sets with their places, and with their systems from the record."""
    logs: dict[str, list[dict[str, str]]] = {}
    for row in rows("logs"):
        if "/" not in row["name"]:
            logs.setdefault(row["set"], []).append(row)
    return [_context(row, logs[row["set"]]) for row in rows("sets") if row["set"] in logs]


def _context(row: dict[str, str], logs: list[dict[str, str]]) -> SetContext:
    place = Place(f"/{paths()[row['set']]}", paths()[row["set"]])
    scaling = place.path.parent.name
    run = unread_run(LogFile(Source("", b""), row["usage"], row["round"]), NOTHING)
    mode = scaling if scaling in ("strong", "weak") else None
    power = PowerFolder(place, {}) if row["energy_joules"] else None
    files = ResultSet(place, row["system"], row["benchmark"], (), scaling_mode=mode, power=power)
    hashes = {f"{place.label}/{log['name']}": bytes.fromhex(log["sha256_16"]) for log in logs}
    run = replace(run, start_ms=1.0, verdicts=Verdicts(Verdict.PASS, Verdict.PASS))
    runs = (replace(run, path=path, fingerprint=digest) for path, digest in hashes.items())
    round_, system = load_round(row["usage"], row["round"]), _system(row)
    return SetContext(files, tuple(runs), round_, None, submitter=row["submitter"], system=system)


_COMPANIES = {"smc-ac-power": "smc", "smc-dc-power": "smc"}
"""The company that the descriptions in a folder name, where it is not the name of the folder."""


def _system(row: dict[str, str]) -> SystemFile:
    names = ("system_name", "status", "nodes", "host_processor", "framework")
    contents = {name: row[name] for name in names}
    contents["accelerator_model_name"] = row["accelerator_model"]
    company = _COMPANIES.get(row["submitter"], row["submitter"])
    texts = (company, row["division"], row["status"], row["system_name"])
    nodes = int(row["nodes"]) if row["nodes"].isdigit() else None
    return SystemFile("", row["system"], contents, *texts, int(row["accelerators"] or 0), (), nodes)


@cache
def opinions() -> dict[frozenset[str], Finding]:
    """The finding on every pair of result sets with the same runs."""
    all_contexts = contexts()
    runs = (run for context in all_contexts for run in context.runs)
    digests = {run.path: run.fingerprint for run in runs if run.fingerprint}
    pairs = pairs_of(all_contexts, shared_runs(all_contexts), digests)
    with_power = {context.tree for context in all_contexts if context.files.power}
    named = ((frozenset({p.original.context.path, p.copy.context.path}), p) for p in pairs)
    return {names: next(findings_on([pair], with_power)) for names, pair in named}
