"""The systems with results in a check: what the tables of ``score`` and ``results`` start from.

A system has the result sets of a folder of ``results/``, and its description fills the first and
last columns of the official tables.

Source: mlperf_logging.result_summarizer
"""

import re
from collections.abc import Callable, Iterator, Mapping
from operator import itemgetter
from posixpath import commonpath
from typing import Any

from msgspec import Struct

from mlperf_pkg.checker.values import Checked
from mlperf_pkg.checks.descriptions import SystemFile
from mlperf_pkg.checks.result_sets import SetResult
from mlperf_pkg.infra.json_values import parse_json, to_finite
from mlperf_pkg.infra.paths import ListedPath
from mlperf_pkg.submission.model import ResultSet, SystemFolder

Cell = str | int | float | None
Description = Mapping[str, Any]

REQUIRED = (
    "division",
    "status",
    "submitter",
    "system_name",
    "host_processor_model_name",
    "number_of_nodes",
    "host_processor_core_count",
    "host_processors_per_node",
    "accelerator_model_name",
    "accelerators_per_node",
    "framework",
    "hw_notes",
    "sw_notes",
)
_COMMIT = re.compile(r" commit hash = .*")


class System(Struct, frozen=True):
    """A folder of results, its system description, and its result sets.

    ``key`` is the path of its submission and its name; ``path`` is that of its description, which
    ``file`` is if it exists. ``division`` is that of its logs, empty if it has none.
    """

    key: str
    submitter: str
    folder: SystemFolder
    path: str
    file: SystemFile | None
    sets: tuple[tuple[ResultSet, SetResult], ...]
    division: str

    @property
    def name(self) -> str:
        """The name of its folder."""
        return self.folder.place.name

    @property
    def description(self) -> Description:
        """The fields of the system description, empty if it cannot be read."""
        return (self.file and self.file.contents) or {}

    @property
    def results(self) -> list[SetResult]:
        """The result sets with a log."""
        return [result for _, result in self.sets if result.row.runs_found]


def systems_of(checked: Checked) -> Iterator[System]:
    """Yield the systems of all submissions of a check, even those without a result set."""
    submissions = checked.submissions
    files = {system.path: system for system in checked.systems}
    results = {result.row.path: result for result in checked.sets}
    divisions = {run.path: run.division for run in checked.report.runs}
    # Labels in an archive begin with its folders, which are not part of a key.
    archived = submissions and isinstance(submissions[0].place.path, ListedPath)
    root = commonpath([s.place.folder.label for s in submissions]) if archived else ""
    for submission in submissions:
        submitter = submission.place.label.removeprefix(root).lstrip("/") or submission.name
        for folder in submission.tested:
            name = folder.place.name
            path = submission.place.child("systems").child(f"{name}.json").label
            own = ((s, s.place.label) for s in submission.result_sets if s.system == name)
            sets = tuple((of_set, results[label]) for of_set, label in own if label in results)
            logged = (divisions[run] for _, result in sets for run in result.runs)
            yield System(
                key=f"{submitter}/{name}",
                submitter=submission.name,
                folder=folder,
                path=path,
                file=files.get(path),
                sets=sets,
                division=next(logged, ""),
            )


# ---- cells of a description -----------------------------------------------------------------


def system_cells(description: Description, private_id: str | None) -> dict[str, Cell]:
    """Return the cells before the scores; ``private_id`` is the text of ``privateid.json``.

    Raises:
        ValueError: a field is missing or has a value on which the official summarizer crashes.
    """
    if missing := [name for name in REQUIRED if name not in description]:
        raise ValueError(f"no {', no '.join(missing)}")
    cells: dict[str, Cell] = {}
    for name in _BY_KIND:
        value = _CELLS[name](description)
        cells[name] = value if value is None or name in _COUNTS else str(value)
    try:
        contents = parse_json(private_id or "")
    except ValueError:
        contents = {}
    cells["private_id"] = str(contents.get("private_id", "")) if isinstance(contents, dict) else ""
    return {name: cells[name] for name in COLUMNS}


def known_cells(description: Description) -> tuple[dict[str, str], tuple[str, ...]]:
    """Return the cells that a description has, as strings, and the names of those that it lacks.

    These are the cells before the scores, without the private id; one that is missing is empty.
    """
    cells = {}
    for name in _BY_KIND:
        try:
            cells[name] = _CELLS[name](description)
        except (KeyError, ValueError):
            cells[name] = None
    gaps = tuple(name for name, value in cells.items() if value is None)
    return {name: "" if value is None else str(value) for name, value in cells.items()}, gaps


def url_cells(submitter: Any, system: str, usage: str, round_: str) -> dict[str, Cell]:
    """Return the cells after the scores; ``system`` is the name of its folder in ``results/``."""
    home = f"https://github.com/mlcommons/{usage}_results_v{round_}"
    return {
        "details_url": f"{home}/blob/main/{submitter}/systems/{system}.json",
        "code_url": f"{home}/blob/master/{submitter}/benchmarks",
    }


def _count(description: Description, name: str) -> int:
    try:
        count = int(description[name])
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"{name} is not a whole number") from error
    if to_finite(count) is None:
        raise ValueError(f"{name} is too large")
    return count


def _in_all_nodes(name: str) -> Callable[[Description], int]:
    return lambda description: _count(description, name) * _count(description, "number_of_nodes")


def _system(description: Description) -> Any:
    name = description["system_name"]
    chips = _count(description, "accelerators_per_node") * 2
    return f"TPUv3.{chips}" if name == "tpu-v3" else name


def _accelerator(description: Description) -> Any:
    name = description["accelerator_model_name"]
    return "TPUv3" if name == "tpu-v3" else name


def _framework(description: Description) -> Any:
    framework = description["framework"]
    if not isinstance(framework, str) or "TensorFlow" not in framework:
        return framework
    commit = _COMMIT.search(framework)
    return framework.replace(commit[0], "") if commit else framework


def _notes(description: Description) -> str:
    notes = [description[name] for name in ("hw_notes", "sw_notes") if description[name]]
    if not all(isinstance(note, str) for note in notes):
        raise ValueError("hw_notes or sw_notes is not a string")
    return ";".join(notes)


_CELLS: Mapping[str, Callable[[Description], Any]] = {
    "division": itemgetter("division"),
    "availability": itemgetter("status"),
    "submitter": itemgetter("submitter"),
    "system": _system,
    "number_of_nodes": itemgetter("number_of_nodes"),
    "host_processor_model_name": itemgetter("host_processor_model_name"),
    "host_processors_count": _in_all_nodes("host_processors_per_node"),
    "accelerator_model_name": _accelerator,
    "accelerators_count": _in_all_nodes("accelerators_per_node"),
    "framework": _framework,
    "notes": _notes,
}
_COUNTS = ("host_processors_count", "accelerators_count")
_BY_KIND = sorted(_CELLS, key=_COUNTS.__contains__)  # texts first: so are errors reported

COLUMNS = (*_CELLS, "private_id")
URLS = ("details_url", "code_url")
