"""The systems with results in a check, and their private ids.

A system has the result sets of a folder of ``results/``, and its description fills the first and
last columns of the official tables (mlperf_logging.result_summarizer). The tables of ``score`` and
``results`` start from it.

Private ids are unique names of rows that reveal nothing about them. The ids of a round are in one
file, by row. Its entries have the form of ``privateid.json`` of the official summarizer, which
writes one file per system:

    {"ACME/dgx": {"private_id": "table-sodium-kilo-orange"}}

An entry is never changed or removed: a row that is withdrawn keeps its id, and has it again when it
is submitted again.
"""

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import reduce
from itertools import count
from operator import itemgetter, xor
from pathlib import Path
from typing import Any, Self

from msgspec import Struct

from mlperf_pkg.checker.values import Checked
from mlperf_pkg.checks.descriptions import SystemFile
from mlperf_pkg.checks.result_sets import SetResult
from mlperf_pkg.errors import UserError
from mlperf_pkg.infra.files import write_whole
from mlperf_pkg.infra.json_values import (
    MAX_BYTES,
    JsonSyntaxError,
    parse_json,
    read_json,
    to_finite,
)
from mlperf_pkg.infra.paths import read_file
from mlperf_pkg.submission.model import ResultSet, Submission, SystemFolder

Cell = str | int | float | None
Description = Mapping[str, Any]

FIELD = "private_id"

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


class SubmittedSystem(Struct, frozen=True):
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
        if self.file is None:
            return {}
        return self.file.contents or {}

    @property
    def results(self) -> list[SetResult]:
        """The result sets with a log."""
        return [result for _, result in self.sets if result.row.runs_found]


def systems_of(checked: Checked) -> Iterator[SubmittedSystem]:
    """Yield the systems of all submissions of a check, even those without a result set."""
    files = {file.path: file for file in checked.systems}
    results = {result.row.path: result for result in checked.sets}
    divisions = {run.label: run.division for run in checked.report.runs}
    for submission in checked.submissions:
        submission_key = checked.distinct(submission.place.label)
        for folder in submission.tested:
            name = folder.place.name
            path = submission.place.child("systems").child(f"{name}.json").label
            sets = tuple(_sets_of(submission, name, results))
            yield SubmittedSystem(
                key=f"{submission_key}/{name}",
                submitter=submission.name,
                folder=folder,
                path=path,
                file=files.get(path),
                sets=sets,
                division=_logged_division(sets, divisions),
            )


def _sets_of(
    submission: Submission, system: str, results: Mapping[str, SetResult]
) -> Iterator[tuple[ResultSet, SetResult]]:
    """Yield the result sets of a system that were checked, with their results by path."""
    for result_set in submission.result_sets:
        label = result_set.place.label
        if result_set.system == system and label in results:
            yield result_set, results[label]


def _logged_division(
    sets: Iterable[tuple[ResultSet, SetResult]], divisions: Mapping[str, str]
) -> str:
    """Return the division of the first log, empty if there is none."""
    for _, result in sets:
        if result.runs:
            return divisions[result.runs[0]]
    return ""


def systems_with_results(argument: str, checked: Checked) -> list[SubmittedSystem]:
    """Return the systems of all submissions in ``argument``, in the order of their keys.

    Raises:
        UserError: there is no submission, or the submissions are of several rounds.
    """
    if not checked.submissions:
        problem = "no submission; expected <submitter>/systems and <submitter>/results"
        raise UserError(f"{argument}: {problem}")
    if checked.report.round is None:
        problem = "the submissions are of several rounds; expected one round, or --round ROUND"
        raise UserError(f"{argument}: {problem}")
    return sorted(systems_of(checked), key=lambda system: system.key)


# ---- cells of a description -----------------------------------------------------------------


def system_cells(description: Description) -> dict[str, Cell]:
    """Return the cells before the scores, without the private id.

    Raises:
        ValueError: a field is missing or has a value on which the official summarizer crashes.
    """
    missing = [name for name in REQUIRED if name not in description]
    if missing:
        raise ValueError(f"the description has no {' and no '.join(missing)}")
    cells: dict[str, Cell] = {}
    for name in _BY_KIND:
        value = _CELLS[name](description)
        if value is not None and name not in _COUNTS:
            value = str(value)
        cells[name] = value
    return cells


def known_cells(description: Description) -> tuple[dict[str, str], tuple[str, ...]]:
    """Return the cells before the scores, as strings, and the names of those that are missing."""
    cells = {}
    missing = []
    for name in _BY_KIND:
        try:
            value = _CELLS[name](description)
        except (KeyError, ValueError):
            value = None
        if value is None:
            missing.append(name)
            value = ""
        cells[name] = str(value)
    return cells, tuple(missing)


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
    def count_in_all(description: Description) -> int:
        return _count(description, name) * _count(description, "number_of_nodes")

    return count_in_all


def _system(description: Description) -> Any:
    name = description["system_name"]
    chips = _count(description, "accelerators_per_node") * 2
    if name == "tpu-v3":
        return f"TPUv3.{chips}"
    return name


def _accelerator(description: Description) -> Any:
    name = description["accelerator_model_name"]
    if name == "tpu-v3":
        return "TPUv3"
    return name


def _framework(description: Description) -> Any:
    framework = description["framework"]
    if not isinstance(framework, str) or "TensorFlow" not in framework:
        return framework
    commit = _COMMIT.search(framework)
    if commit is None:
        return framework
    return framework.replace(commit[0], "")


def _notes(description: Description) -> str:
    notes = []
    for name in ("hw_notes", "sw_notes"):
        note = description[name]
        if note:
            notes.append(note)
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

COLUMNS = (*_CELLS, FIELD)
URLS = ("details_url", "code_url")


# ---- private ids --------------------------------------------------------------------------

_LONGEST = 100  # characters of an id
_HASHED = (
    "division",
    "submitter",
    "system_name",
    "number_of_nodes",
    "host_processor_model_name",
    "host_processors_per_node",
    "accelerator_model_name",
    "accelerators_per_node",
    "framework",
)
"""Fields of a description from which the official summarizer makes an id."""


class PrivateIds(Struct, frozen=True):
    """The entries of a file of ids, by row; ``exists`` says whether the file exists."""

    path: Path
    entries: Mapping[str, Mapping[str, Any]]
    exists: bool = False

    def __getitem__(self, key: str) -> str:
        """Return the id of a row."""
        private_id: str = self.entries[key][FIELD]
        return private_id

    def extended(self, systems: Iterable[SubmittedSystem]) -> Self:
        """Return these ids and those of new systems, whose order does not matter."""
        new = [system for system in systems if system.key not in self.entries]
        # The ids of trees come first, so that new ids differ from them.
        new.sort(key=lambda system: (own_id(system) is None, system.key))
        entries = dict(self.entries)
        taken = {self[key] for key in entries}
        for system in new:
            private_id = next(name for name in _choices(system) if name not in taken)
            taken.add(private_id)
            entries[system.key] = {FIELD: private_id}
        return type(self)(self.path, entries, self.exists)

    def text(self) -> str:
        """Return the contents of the file.

        Raises:
            UserError: they are too large.
        """
        text = json.dumps(self.entries, indent=4, sort_keys=True) + "\n"
        if len(text) > MAX_BYTES:
            raise UserError(f"{self.path}: more than {MAX_BYTES} bytes of private ids")
        return text

    def write(self) -> None:
        """Write the file, completely or not at all.

        Raises:
            UserError: the file cannot be written, is too large, or was created since it was read.
        """
        write_whole(self.path.resolve(), self.text(), replace=self.exists)


def read_ids(path: Path) -> PrivateIds:
    """Return the ids in a file, empty if it does not exist.

    Raises:
        UserError: the file cannot be read or is not a file of ids.
    """
    try:
        document = read_json(read_file(path, MAX_BYTES))
    except FileNotFoundError:
        return PrivateIds(path, {})
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror or error}") from error
    except JsonSyntaxError as error:
        raise UserError(f"{path}:{error.line}: {error.message}") from error
    for problem in document.problems:
        raise UserError(f"{path}:{problem.line}: {problem.message}")
    entries: dict[str, Any] = {"": None}
    if isinstance(document.value, dict):
        entries = document.value
    rows: dict[str, str] = {}
    for key, entry in entries.items():
        private_id = None
        if isinstance(entry, dict):
            private_id = _usable(entry.get(FIELD))
        line = document.line([key])
        if private_id is None:
            example = f'{{"ACME/dgx": {{"{FIELD}": "..."}}}}'
            raise UserError(f"{path}:{line}: expected private ids by row: {example}")
        if private_id in rows:
            raise UserError(f"{path}:{line}: {key} has the private id of {rows[private_id]}")
        rows[private_id] = key
    return PrivateIds(path, entries, exists=True)


def with_private_ids(argument: str, checked: Checked, ids: PrivateIds) -> PrivateIds:
    """Add the systems of a check to a file of ids, and return all ids.

    Raises:
        UserError: the check has no submission or several rounds, or the file cannot be written.
    """
    extended = ids.extended(systems_with_results(argument, checked))
    if extended.entries != ids.entries or not ids.exists:
        extended.write()
    return extended


def written_id(system: SubmittedSystem) -> Any:
    """Return the id in the ``privateid.json`` of a system, whatever it is; empty if it has none."""
    try:
        contents = parse_json(system.folder.private_id or "")
    except ValueError:
        return ""
    if not isinstance(contents, dict):
        return ""
    return contents.get(FIELD, "")


def own_id(system: SubmittedSystem) -> str | None:
    """Return the id in the ``privateid.json`` of a system; None if it is not usable."""
    return _usable(written_id(system))


def _usable(private_id: Any) -> str | None:
    """Return an id if it can be shown and compared, else None."""
    if not isinstance(private_id, str) or not private_id.isprintable():
        return None
    if not private_id.strip() or len(private_id) > _LONGEST:
        return None
    return private_id


def _choices(system: SubmittedSystem) -> Iterator[str]:
    """Yield ids, the preferred one first.

    The official summarizer adds the name of the system if an earlier system has the same text.
    """
    submitted = own_id(system)
    if submitted:
        yield submitted
    description = system.description
    text = system.key
    if description:
        text = "".join(str(description.get(name, "")) for name in _HASHED)
    yield in_words(text)
    text += system.name
    yield in_words(text)
    for number in count(2):
        yield in_words(f"{text}{number}")


_LIST = """
    ack alabama alanine alaska alpha angel apart april arizona arkansas artist asparagus aspen
    august autumn avocado bacon bakerloo batman beer berlin beryllium black blossom blue
    bluebird bravo bulldog burger butter california carbon cardinal carolina carpet cat
    ceiling charlie chicken coffee cola cold colorado comet connecticut crazy cup dakota
    december delaware delta diet don double early earth east echo edward eight eighteen eleven
    emma enemy equal failed fanta fifteen fillet finch fish five fix floor florida football
    four fourteen foxtrot freddie friend fruit gee georgia glucose golf green grey hamper
    happy harry hawaii helium high hot hotel hydrogen idaho illinois india indigo ink iowa
    island item jersey jig johnny juliet july jupiter kansas kentucky kilo king kitten lactose
    lake lamp lemon leopard lima lion lithium london louisiana low magazine magnesium maine
    mango march mars maryland massachusetts may mexico michigan mike minnesota mirror
    mississippi missouri mobile mockingbird monkey montana moon mountain muppet music nebraska
    neptune network nevada nine nineteen nitrogen north november nuts october ohio oklahoma
    one orange oranges oregon oscar oven oxygen papa paris pasta pennsylvania pip pizza pluto
    potato princess purple quebec queen quiet red river robert robin romeo rugby sad salami
    saturn september seven seventeen shade sierra single sink six sixteen skylark snake social
    sodium solar south spaghetti speaker spring stairway steak stream summer sweet table tango
    ten tennessee tennis texas thirteen three timing triple twelve twenty two uncle undress
    uniform uranus utah vegan venus vermont victor video violet virginia washington west
    whiskey white william winner winter wisconsin wolfram wyoming xray yankee yellow zebra
    zulu
"""
_WORDS = tuple(_LIST.split())
_NUMBER = 4


def in_words(text: str) -> str:
    """Return the id of a string, such as ``table-sodium-kilo-orange``."""
    digest = hashlib.sha256(text.encode("utf-8", "backslashreplace")).digest()
    size = len(digest) // _NUMBER
    words = []
    for start in range(0, len(digest), size):
        part = digest[start : start + size]
        words.append(_WORDS[reduce(xor, part)])
    return "-".join(words)
