"""Check a whole folder of rules: every file, and what the files must say together.

The compiler, the tests and ``--rules`` use it. A rulebook that passes can be loaded.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from itertools import chain, product, starmap
from pathlib import Path
from typing import Any, TypeAlias

from msgspec import Struct

from mlperf_pkg.errors import RulebookError
from mlperf_pkg.infra.resources import data_folder, rules_read_from
from mlperf_pkg.rulebook import documents
from mlperf_pkg.rulebook.documents import ROUND, problem_of
from mlperf_pkg.rulebook.explain import loaded
from mlperf_pkg.rulebook.formula import OF_A_RECORD, names_in
from mlperf_pkg.rulebook.load import SOURCES, codes, headings, load_benchmark, load_round
from mlperf_pkg.rulebook.model import (
    DIVISIONS,
    LOGGING,
    SECTIONS,
    Round,
    Rule,
    Rules,
    is_round_name,
)
from mlperf_pkg.rulebook.problems import Problem, RuleFile, Steps, suggestion
from mlperf_pkg.rulebook.validate import DEFINE, owner_of, parse, parts_of, problem_at, validated

_SHARED = ("findings.yaml", "reference_points.yaml", "sources.yaml", "tensors.yaml")


def check_rulebook(folder: Path) -> None:
    """Check the rules of a folder, together with those of the package that they build on.

    Raises:
        RulebookError: the folder is not a rulebook, or its rules are not valid. The message has
            a line for each problem.
    """
    has_rounds = any(is_round_name(path.parent.name) for path in folder.glob("*/*/*.yaml"))
    if not has_rounds and not any((folder / name).is_file() for name in _SHARED):
        raise RulebookError(
            f"{folder}: not a rulebook, which has files such as training/7.0/{ROUND}.yaml"
        )
    paths = [path for path in sorted(folder.rglob("*.y*ml")) if path.is_file()]
    files = [documents.file_in(folder, path.relative_to(folder).as_posix()) for path in paths]
    own_folders = [] if folder == data_folder("rules") else [folder]
    with rules_read_from(*own_folders):
        # What a later check reads has passed the earlier ones.
        _refuse(problem for file in files for problem in _of_name(folder, file))
        _refuse(problem for file in files for problem in _of_content(file))
        _refuse(_problems_of_sources(files))
        every_round = documents.every_round()
        _refuse(problem for round_ in every_round for problem in _of_round(*round_))
        of_divisions = product(starmap(load_round, every_round), DIVISIONS)
        references = chain.from_iterable(starmap(_of_division, of_divisions))
        _refuse(chain(references, _problems_of_definitions(files)))
        _refuse(_problems_of_codes())


def _refuse(problems: Iterable[Problem | RulebookError]) -> None:
    messages = list(dict.fromkeys(map(str, problems)))
    if messages:
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
        names = documents.usages()
    if usage not in names:
        return f"misplaced: unknown usage {usage!r}{suggestion(usage, names)}"
    if not is_round_name(round_name):
        return f"misplaced: expected a folder such as {usage}/7.0, not {usage}/{round_name}"
    if documents.own_file(usage, round_name, ROUND) is None:
        near = suggestion(ROUND, documents.own_stems(usage, round_name))
        return f"round {round_name} has no {ROUND}.yaml{near.replace('did you mean', 'is it')}"
    return ""


def _of_content(file: RuleFile) -> Iterator[RulebookError]:
    try:
        validated(file, file.read())
    except RulebookError as error:
        yield error


# ---- rounds -------------------------------------------------------------------------------


def _of_round(usage: str, name: str) -> Iterator[Problem | RulebookError]:
    problem = partial(problem_of, usage, name)
    stems = documents.own_stems(usage, name)
    try:
        round_ = load_round(usage, name)
    except RulebookError as error:
        yield error
        return
    label = documents.own(usage, name, ROUND)["round"]
    if label != name:
        message = f"round is {label}; expected {name} as in the folder's name"
        yield problem(ROUND, ("round",), message)
    if not round_.ruleset.startswith(f"{name}."):
        message = f"ruleset is {round_.ruleset}; expected one such as {name}.0"
        yield problem(ROUND, ("ruleset",), message)
    expected = {ROUND, *round_.benchmarks}
    for stem in filter(lambda stem: stem not in expected, stems):
        message = f"misnamed: {stem} is not a benchmark of round {name}"
        yield problem(stem, (), message + suggestion(stem, expected))
    for benchmark in round_.benchmarks:
        try:
            if load_benchmark(usage, name, benchmark) is None:
                message = f"benchmark {benchmark} has no rules: expected a file {benchmark}.yaml"
                yield problem(ROUND, ("benchmarks",), message + suggestion(benchmark, stems))
        except RulebookError as error:
            yield error


# ---- the keys that rules refer to: some rule of the same runs must be about each ----------

_Sections: TypeAlias = Mapping[Steps, Rules]  # rules by key, by the steps that lead to them


def _of_division(round_: Round, division: str) -> Iterator[Problem]:
    """Yield the references to keys that no rule of the same round and division is about.

    ``after`` and ``before`` may name any key.
    """
    common: _Sections = {(part,): round_.sections[part] for part in ("common", division)}
    keys_of_all = keys_of_round = set(chain.from_iterable(common.values()))
    for name in round_.benchmarks:
        rules = loaded(round_, name)
        variants = rules.variants if division == "closed" else {}
        sections: _Sections = {
            (division,): rules.sections[division],
            **{("variants", k, v): variants[k][v] for k in variants for v in variants[k]},
        }
        keys = keys_of_round.union(*sections.values())
        keys |= {rules.joined.key, rules.joined.of} if rules.joined else set()
        yield from _unknown(round_, name, sections, keys)
        keys_of_all = keys_of_all | keys
    yield from _unknown(round_, ROUND, common, keys_of_all)


def _unknown(round_: Round, stem: str, sections: _Sections, keys: set[str]) -> Iterator[Problem]:
    owner = f"round {round_.name}" if stem == ROUND else stem
    for section_steps, rules in sections.items():
        for key, key_rules in rules.items():
            for index, rule in enumerate(key_rules):
                for field, name in _references(rule):
                    if name not in keys:
                        message = f"{field} of {rule.code} uses {name!r}, which is not a key of"
                        message += f" {owner}{suggestion(name, keys)}"
                        steps = (*section_steps, key, index, field)
                        yield problem_of(round_.usage, round_.name, stem, steps, message)


def _references(rule: Rule) -> Iterator[tuple[str, str]]:
    """Yield the keys that a rule refers to, each with the field that does."""
    formulas = {"formula": rule.formula, "reaches": (rule.reaches or {}).get("formula")}
    for field, text in formulas.items():
        yield from ((field, name) for name in sorted(names_in(text or "") - OF_A_RECORD))
    within = rule.constraints.get("within_minutes", {})
    occurs = rule.occurs if isinstance(rule.occurs, Mapping) else {}
    named = (
        ("same_as", rule.constraints.get("same_as")),
        ("within_minutes", within.get("of")),
        ("within_minutes", within.get("until")),
        ("nth_since", rule.nth_since),
        *(("no_later_than", name) for name in rule.no_later_than),
        ("occurs", occurs.get("or")),
    )
    yield from ((field, name) for field, name in named if name)


# ---- names that a file defines ------------------------------------------------------------


def _problems_of_definitions(files: Iterable[RuleFile]) -> Iterator[Problem]:
    """Yield the names that files define although the same name is a key."""
    for file in files:
        usage, round_name, stem = *file.path.parts[-3:-1], file.path.stem
        if DEFINE in (document := parse(file, file.read())):
            for name in document[DEFINE].keys() & _all_keys(usage, round_name, stem):
                message = f"define must not use the name {name!r}, which is a key"
                yield problem_at(file, (DEFINE, name), message)


def _all_keys(usage: str, round_name: str, stem: str) -> set[str]:
    """Return the keys of a benchmark or, for the file of a round, of all its benchmarks."""
    names = load_round(usage, round_name).benchmarks if stem == ROUND else (stem,)
    whole = (documents.inherited(usage, round_name, name) for name in (ROUND, *names))
    return {key for document in whole for *_, keys in _rule_sections(document) for key in keys}


# ---- one code for one rule ----------------------------------------------------------------


class _Use(Struct, frozen=True):
    """A rule as a file has it: its code and key, and where it is."""

    code: str
    key: str
    division: str
    usage: str
    round: str
    stem: str
    steps: Steps

    @property
    def subject(self) -> str:
        """The key and the runs that it is about, in words."""
        runs = "every run" if self.stem == ROUND else f"{self.division.title()} {self.stem}"
        return f"{self.key} of {runs}"

    def problem(self, message: str) -> Problem:
        """Return a problem of this rule."""
        return problem_of(self.usage, self.round, self.stem, self.steps, message)


def _problems_of_codes() -> Iterator[Problem]:
    """Yield the codes that several rules have.

    In all rounds of a usage, a code is that of one key, of one division, and of one benchmark and
    those that are ``like`` it. A code in a ``round.yaml`` is that of one key, whatever the
    division, also where a benchmark replaces the rule. Several rules of one key have different
    codes, and ``findings.yaml`` has none of them.
    """
    for usage in documents.usages():
        uses = list(_uses(usage))
        of_every_run = {use.code for use in uses if use.stem == ROUND}
        models = _models(usage)
        yield from _shared(uses, of_every_run, models)
        lists: dict[tuple[str, str, Steps, str], _Use] = {}
        for use in uses:
            if lists.setdefault((use.round, use.stem, use.steps[:-1], use.code), use) is not use:
                yield use.problem(f"code {use.code} is that of another rule of {use.key}")
        for use in uses:
            if use.code in codes():
                yield use.problem(f"code {use.code} is in findings.yaml; expected an unused one")


def _shared(
    uses: list[_Use], of_every_run: set[str], models: Mapping[str, str]
) -> Iterator[Problem]:
    first: dict[str, _Use] = {}
    for use in uses:
        other = first.setdefault(use.code, use)
        same_runs = (use.division, models[use.stem]) == (other.division, models[other.stem])
        if use.key != other.key or not (same_runs or use.code in of_every_run):
            place = other.problem("")
            yield use.problem(
                f"code {use.code} of {use.subject} is that of {other.subject}"
                f" ({place.file}:{place.line})"
            )


def _models(usage: str) -> dict[str, str]:
    """Return which benchmark each one is ``like`` in the end, in any round."""
    names = documents.rounds(usage)
    places = [(name, stem) for name in names for stem in documents.own_stems(usage, name)]
    models = {s: documents.model_of(usage, name, s) or s for name, s in reversed(places)}
    for _ in models:
        models = {stem: models[model] for stem, model in models.items()}
    return models


def _uses(usage: str) -> Iterator[_Use]:
    """Yield every rule of every file of a usage: rounds by age, ``round.yaml`` first of each."""
    for name in documents.rounds(usage):
        stems = documents.own_stems(usage, name)
        for stem in sorted(stems, key=lambda stem: (stem != ROUND, stem)):
            for division, steps, section in _rule_sections(documents.own(usage, name, stem)):
                for key, entry in section.items():
                    for index, rule in enumerate(
                        [entry] if isinstance(entry, dict) else entry or ()
                    ):
                        where = (*steps, key, index)
                        yield _Use(rule["code"], key, division, usage, name, stem, where)


def _rule_sections(document: Mapping[str, Any]) -> Iterator[tuple[str, Steps, Mapping[str, Any]]]:
    """Yield each section of a file: its division, the steps that lead to it, its rules."""
    for name in SECTIONS:
        yield name, (name,), document.get(name, {})
    for key, choices in document.get("variants", {}).items():
        for value, section in choices.items():
            yield "closed", ("variants", key, value), section


# ---- what rules cite: a document and one of its headings ----------------------------------

OWN = "mlperf-pkg: "
"""The beginning of a source that is our own judgement; words follow."""

_CITING = (("source",), ("date_source",))
_RULESET = re.compile(r"ruleset \d+\.\d+\.\d+")


def problem_of_source(text: str, *, own_documents: bool = False) -> str:
    """Return what is wrong with a source, and what was meant; empty if it may be cited.

    With ``own_documents`` it may be a document of the user's own, unlike any that is listed.
    """
    if text.startswith(OWN):
        return ""
    document, _, heading = text.partition(", ")
    if document not in headings():
        near = suggestion(document, headings())
        if own_documents and not near:
            return ""
        expected = f"; expected one of {', '.join(headings())}, or {OWN}..."
        return f"{document!r} is not a document{near or expected}"
    names = headings()[document]
    if heading in names or (document == LOGGING and _RULESET.fullmatch(heading)):
        return ""
    return f"{heading!r} is not a heading of {document}{suggestion(heading, names)}"


def _problems_of_sources(files: Iterable[RuleFile]) -> Iterator[Problem]:
    """Yield the sources that valid files cite and that do not exist."""
    for file in files:
        own_documents = not file.path.is_relative_to(data_folder("rules"))
        document = {} if file.path.stem == SOURCES else parse(file, file.read())
        cited: list[tuple[Steps, str]] = [
            *(((SOURCES, text), text) for text in document.get(SOURCES, ())),
            *((s, t) for s, t in parts_of(document) if s[-1:] in _CITING and isinstance(t, str)),
        ]
        for steps, text in cited:
            problem = problem_of_source(text, own_documents=own_documents)
            if problem:
                owner = owner_of(steps[:-1], document) or "the file"
                yield problem_at(file, steps, f"{owner} cites {text!r}: {problem}")
