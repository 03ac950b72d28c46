"""Check a whole folder of rules: every file, and what the files must say together.

The compiler, the tests and ``--rules`` use it. A rulebook that passes can be loaded.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from mlperf_pkg.errors import RulebookError
from mlperf_pkg.infra.resources import data_folder, rules_read_from
from mlperf_pkg.rulebook.files import ROUND, file_in, own_file, own_stems, rounds, usages
from mlperf_pkg.rulebook.inheritance import own, problem_of
from mlperf_pkg.rulebook.load import load_benchmark, load_round
from mlperf_pkg.rulebook.model import Round, is_round_name
from mlperf_pkg.rulebook.problems import Problem, RuleFile, suggestion
from mlperf_pkg.rulebook.references import problems_of_definitions, problems_of_references
from mlperf_pkg.rulebook.sources import problems_of_sources
from mlperf_pkg.rulebook.unique_codes import problems_of_codes
from mlperf_pkg.rulebook.validate import validated

_SHARED = ("findings.yaml", "reference_points.yaml", "sources.yaml", "tensors.yaml")


def check_rulebook(folder: Path) -> None:
    """Check the rules of a folder, together with those of the package that they build on.

    Raises:
        RulebookError: the folder is not a rulebook, or its rules are not valid. The message has
            a line for each problem.
    """
    if not any(is_round_name(path.parent.name) for path in folder.glob("*/*/*.yaml")):
        raise RulebookError(
            f"{folder}: not a rulebook, which has files such as training/7.0/{ROUND}.yaml"
        )
    paths = [path for path in sorted(folder.rglob("*.y*ml")) if path.is_file()]
    files = [file_in(folder, path.relative_to(folder).as_posix()) for path in paths]
    own_folders = [] if folder == data_folder("rules") else [folder]
    with rules_read_from(*own_folders):
        # What a later check reads has passed the earlier ones.
        _refuse(problem for file in files for problem in _of_name(folder, file))
        _refuse(problem for file in files for problem in _of_content(file))
        _refuse(problems_of_sources(files))
        every_round = [(usage, name) for usage in usages() for name in rounds(usage)]
        _refuse(problem for round_ in every_round for problem in _of_round(*round_))
        _refuse([*problems_of_references(), *problems_of_definitions(files)])
        _refuse(problems_of_codes())


def _refuse(problems: Iterable[Problem | RulebookError]) -> None:
    if messages := list(dict.fromkeys(map(str, problems))):
        raise RulebookError("\n".join(messages))


# ---- files --------------------------------------------------------------------------------


def _of_name(folder: Path, file: RuleFile) -> Iterator[Problem]:
    """Yield what is wrong with the name of a file, or with the folders that it is in."""
    *folders, name = file.path.relative_to(folder).parts
    message = ""
    if file.path.suffix != ".yaml":
        message = f"misnamed: expected {file.path.stem}.yaml"
    elif len(folders) == 2:  # noqa: PLR2004 - usage and round
        message = _of_folders(*folders)
    elif folders:
        message = "misplaced: expected it at <usage>/<round>/<benchmark>.yaml"
    elif name not in _SHARED:
        message = f"misnamed: not a file of a rulebook{suggestion(name, _SHARED)}"
    if message:
        yield Problem(file.shown, 1, message)


def _of_folders(usage: str, round_name: str) -> str:
    with rules_read_from():
        names = usages()
    if usage not in names:
        return f"misplaced: unknown usage {usage!r}{suggestion(usage, names)}"
    if not is_round_name(round_name):
        return f"misplaced: expected a folder such as {usage}/7.0, not {usage}/{round_name}"
    if own_file(usage, round_name, ROUND) is None:
        near = suggestion(ROUND, own_stems(usage, round_name)).replace("did you mean", "is it")
        return f"round {round_name} has no {ROUND}.yaml{near}"
    return ""


def _of_content(file: RuleFile) -> Iterator[RulebookError]:
    try:
        validated(file, file.path.read_bytes())
    except RulebookError as error:
        yield error


# ---- rounds -------------------------------------------------------------------------------


def _of_round(usage: str, name: str) -> Iterator[Problem | RulebookError]:
    try:
        round_ = load_round(usage, name)
    except RulebookError as error:
        yield error
        return
    yield from _of_round_file(round_)
    for stem in own_stems(usage, name):
        if stem not in {ROUND, *round_.benchmarks}:
            message = f"misnamed: {stem} is not a benchmark of round {name}"
            message += suggestion(stem, {ROUND, *round_.benchmarks})
            yield problem_of(usage, name, stem, (), message)
    for benchmark in round_.benchmarks:
        yield from _of_benchmark(round_, benchmark)


def _of_round_file(round_: Round) -> Iterator[Problem]:
    document = own(round_.usage, round_.name, ROUND)
    if document["round"] != round_.name:
        message = f"round is {document['round']}; expected {round_.name} as in the folder's name"
        yield problem_of(round_.usage, round_.name, ROUND, ("round",), message)
    if not round_.ruleset.startswith(f"{round_.name}."):
        message = f"ruleset is {round_.ruleset}; expected one such as {round_.name}.0"
        yield problem_of(round_.usage, round_.name, ROUND, ("ruleset",), message)


def _of_benchmark(round_: Round, name: str) -> Iterator[Problem | RulebookError]:
    try:
        if load_benchmark(round_.usage, round_.name, name) is None:
            near = suggestion(name, own_stems(round_.usage, round_.name))
            message = f"benchmark {name} has no rules: expected a file {name}.yaml{near}"
            yield problem_of(round_.usage, round_.name, ROUND, ("benchmarks",), message)
    except RulebookError as error:
        yield error
