"""Check a whole folder of rules: every file, and what the files must say together.

The compiler, the tests and ``--rules`` use it. A rulebook that passes can be loaded.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, TypeAlias

from msgspec import Struct

from mlperf_pkg.errors import RulebookError
from mlperf_pkg.infra.resources import data_folder, rules_read_from
from mlperf_pkg.infra.text import nearest
from mlperf_pkg.rulebook import documents
from mlperf_pkg.rulebook.documents import ROUND, problem_of
from mlperf_pkg.rulebook.explain import loaded
from mlperf_pkg.rulebook.formula import OF_A_RECORD, names_in
from mlperf_pkg.rulebook.load import SOURCES, codes, headings, load_benchmark, load_round
from mlperf_pkg.rulebook.model import (
    DIVISIONS,
    LOGGING,
    OWN,
    SECTIONS,
    Benchmark,
    Round,
    Rule,
    Rules,
    is_round_name,
)
from mlperf_pkg.rulebook.problems import Problem, RuleFile, Steps, suggestion
from mlperf_pkg.rulebook.validate import DEFINE, owner_of, parse, parts_of, problem_at, validated

_SHARED = ("findings.yaml", "sources.yaml", "tensors.yaml")


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
        _refuse(_problems_of_names(folder, files))
        _refuse(_problems_of_contents(files))
        _refuse(_problems_of_sources(files))
        _refuse(_problems_of_rounds())
        _refuse(chain(_problems_of_references(), _problems_of_definitions(files)))
        _refuse(_problems_of_codes())


def _refuse(problems: Iterable[Problem | RulebookError]) -> None:
    messages = list(dict.fromkeys(map(str, problems)))
    if messages:
        raise RulebookError("\n".join(messages))


# ---- files --------------------------------------------------------------------------------


def _problems_of_names(folder: Path, files: Iterable[RuleFile]) -> Iterator[Problem]:
    for file in files:
        message = _problem_of_name(file.path.relative_to(folder))
        if message:
            yield Problem(file.shown, 1, message)


def _problem_of_name(path: Path) -> str:
    """Return what is wrong with the name of a file, or with the folders that it is in."""
    *folders, name = path.parts
    if path.suffix != ".yaml":
        return f"the file is misnamed; expected the name {path.stem}.yaml"
    if len(folders) == 2:  # noqa: PLR2004 - usage and round
        return _problem_of_folders(*folders)
    if folders:
        return "the file is misplaced; expected at <usage>/<round>/<benchmark>.yaml"
    if name not in _SHARED:
        return (
            f"the file is misnamed, as rules have no file of this name{suggestion(name, _SHARED)}"
        )
    return ""


def _problem_of_folders(usage: str, round_name: str) -> str:
    with rules_read_from():
        names = documents.usages()
    if usage not in names:
        return f"the file is misplaced, as there is no usage {usage!r}{suggestion(usage, names)}"
    if not is_round_name(round_name):
        return (
            f"the file is in the folder {usage}/{round_name}; expected a folder such as {usage}/7.0"
        )
    if documents.own_file(usage, round_name, ROUND) is None:
        near = nearest(ROUND, documents.own_stems(usage, round_name))
        question = f"; is {near}.yaml misnamed?" if near else ""
        return f"round {round_name} has no {ROUND}.yaml{question}"
    return ""


def _problems_of_contents(files: Iterable[RuleFile]) -> Iterator[RulebookError]:
    for file in files:
        try:
            validated(file, file.read())
        except RulebookError as error:
            yield error


# ---- rounds -------------------------------------------------------------------------------


def _problems_of_rounds() -> Iterator[Problem | RulebookError]:
    for usage, name in documents.every_round():
        try:
            round_ = load_round(usage, name)
        except RulebookError as error:
            yield error
            continue
        yield from _problems_of_labels(round_)
        yield from _problems_of_benchmarks(round_)


def _problems_of_labels(round_: Round) -> Iterator[Problem]:
    """Yield what is wrong with the names that a round gives to itself and to its ruleset."""
    problem = partial(problem_of, round_.usage, round_.name, ROUND)
    label = documents.own(round_.usage, round_.name, ROUND)["round"]
    if label != round_.name:
        yield problem(
            ("round",), f"round is {label}; expected {round_.name}, as in the name of the folder"
        )
    if not round_.ruleset.startswith(f"{round_.name}."):
        yield problem(
            ("ruleset",), f"ruleset is {round_.ruleset}; expected a ruleset such as {round_.name}.0"
        )


def _problems_of_benchmarks(round_: Round) -> Iterator[Problem | RulebookError]:
    """Yield the files of a round without a benchmark, and the benchmarks without valid rules."""
    usage = round_.usage
    stems = documents.own_stems(usage, round_.name)
    expected = {ROUND, *round_.benchmarks}
    for stem in stems:
        if stem not in expected:
            message = f"the file is misnamed, as {stem} is not a benchmark of round {round_.name}"
            message += suggestion(stem, expected)
            yield problem_of(usage, round_.name, stem, (), message)
    for benchmark in round_.benchmarks:
        try:
            rules = load_benchmark(usage, round_.name, benchmark)
        except RulebookError as error:
            yield error
            continue
        if rules is None:
            message = f"benchmark {benchmark} has no rules; expected a file {benchmark}.yaml"
            message += suggestion(benchmark, stems)
            yield problem_of(usage, round_.name, ROUND, ("benchmarks",), message)


# ---- the keys that rules refer to: some rule of the same runs must be about each ----------

_Sections: TypeAlias = Mapping[Steps, Rules]  # rules by key, by the steps that lead to them


def _problems_of_references() -> Iterator[Problem]:
    """Yield the references to keys that no rule of the same round and division is about.

    ``after`` and ``before`` may name any key.
    """
    for usage, name in documents.every_round():
        round_ = load_round(usage, name)
        for division in DIVISIONS:
            yield from _problems_of_division(round_, division)


def _problems_of_division(round_: Round, division: str) -> Iterator[Problem]:
    common: _Sections = {(part,): round_.sections[part] for part in ("common", division)}
    keys_of_round: set[str] = set().union(*common.values())
    keys_of_all = set(keys_of_round)
    for name in round_.benchmarks:
        benchmark = loaded(round_, name)
        sections = _benchmark_sections(benchmark, division)
        keys = keys_of_round.union(*sections.values())
        if benchmark.joined:
            keys |= {benchmark.joined.key, benchmark.joined.of}
        yield from _unknown_keys(round_, name, sections, keys)
        keys_of_all |= keys
    yield from _unknown_keys(round_, ROUND, common, keys_of_all)


def _benchmark_sections(benchmark: Benchmark, division: str) -> _Sections:
    sections: dict[Steps, Rules] = {(division,): benchmark.sections[division]}
    if division == "closed":
        for key, choices in benchmark.variants.items():
            for value, rules in choices.items():
                sections["variants", key, value] = rules
    return sections


def _unknown_keys(
    round_: Round, stem: str, sections: _Sections, keys: set[str]
) -> Iterator[Problem]:
    """Yield the references of the rules of one file that are not to one of ``keys``."""
    owner = f"round {round_.name}" if stem == ROUND else stem
    for steps, rule in _placed_rules(sections):
        for field, name in _references(rule):
            if name not in keys:
                message = (
                    f"{field} of {rule.code} uses {name!r}, which is not a key of"
                    f" {owner}{suggestion(name, keys)}"
                )
                yield problem_of(round_.usage, round_.name, stem, (*steps, field), message)


def _placed_rules(sections: _Sections) -> Iterator[tuple[Steps, Rule]]:
    """Yield every rule of some sections, with the steps that lead to it."""
    for section_steps, rules in sections.items():
        for key, rules_of_key in rules.items():
            for index, rule in enumerate(rules_of_key):
                yield (*section_steps, key, index), rule


def _references(rule: Rule) -> Iterator[tuple[str, str]]:
    """Yield the keys that a rule refers to, each with the field that does."""
    formulas = {"formula": rule.formula, "reaches": (rule.reaches or {}).get("formula")}
    for field, formula in formulas.items():
        for name in sorted(names_in(formula or "") - OF_A_RECORD):
            yield field, name
    within = rule.constraints.get("within_minutes", {})
    occurs = rule.occurs if isinstance(rule.occurs, Mapping) else {}
    references = (
        ("same_as", rule.constraints.get("same_as")),
        ("within_minutes", within.get("of")),
        ("within_minutes", within.get("until")),
        ("nth_since", rule.nth_since),
        *(("no_later_than", name) for name in rule.no_later_than),
        ("occurs", occurs.get("or")),
    )
    for field, key in references:
        if key:
            yield field, key


# ---- names that a file defines ------------------------------------------------------------


def _problems_of_definitions(files: Iterable[RuleFile]) -> Iterator[Problem]:
    """Yield the names that files define although the same name is a key."""
    for file in files:
        document = parse(file, file.read())
        if DEFINE in document:
            for name in document[DEFINE].keys() & _keys_of_file(file):
                message = f"define must not use the name {name!r}, which is a key"
                yield problem_at(file, (DEFINE, name), message)


def _keys_of_file(file: RuleFile) -> set[str]:
    """Return the keys of a benchmark or, for the file of a round, of all its benchmarks."""
    *_, usage, round_name, _ = file.path.parts
    stems = [ROUND, file.path.stem]
    if file.path.stem == ROUND:
        stems += load_round(usage, round_name).benchmarks
    keys: set[str] = set()
    for stem in stems:
        for _, _, section in _rule_sections(documents.inherited(usage, round_name, stem)):
            keys.update(section)
    return keys


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
        yield from _codes_of_other_runs(usage, uses)
        yield from _codes_given_twice(uses)
        for use in uses:
            if use.code in codes():
                yield use.problem(f"code {use.code} is in findings.yaml; expected an unused code")


def _codes_of_other_runs(usage: str, uses: Sequence[_Use]) -> Iterator[Problem]:
    """Yield the codes that a rule about another key, or about other runs, had first."""
    models = _models(usage)
    codes_of_rounds = {use.code for use in uses if use.stem == ROUND}
    first_uses: dict[str, _Use] = {}
    for use in uses:
        first = first_uses.setdefault(use.code, use)
        runs = (use.division, models[use.stem])
        first_runs = (first.division, models[first.stem])
        may_differ = runs == first_runs or use.code in codes_of_rounds
        if use.key != first.key or not may_differ:
            place = first.problem("")
            yield use.problem(
                f"code {use.code} of {use.subject} is already used by {first.subject}"
                f" ({place.file}:{place.line})"
            )


def _codes_given_twice(uses: Sequence[_Use]) -> Iterator[Problem]:
    """Yield the codes that another rule of the same list has."""
    places: set[tuple[str, str, Steps, str]] = set()
    for use in uses:
        place = (use.round, use.stem, use.steps[:-1], use.code)
        if place in places:
            yield use.problem(f"code {use.code} is already used by another rule of {use.key}")
        places.add(place)


def _models(usage: str) -> dict[str, str]:
    """Return which benchmark each one is ``like`` in the end, in any round."""
    models: dict[str, str] = {}
    for name in reversed(documents.rounds(usage)):
        for stem in reversed(documents.own_stems(usage, name)):
            models[stem] = documents.model_of(usage, name, stem) or stem
    for _ in models:
        models = {stem: models[model] for stem, model in models.items()}
    return models


def _uses(usage: str) -> Iterator[_Use]:
    """Yield every rule of every file of a usage: rounds by age, ``round.yaml`` first of each."""
    for name in documents.rounds(usage):
        stems = documents.own_stems(usage, name)
        for stem in sorted(stems, key=lambda stem: (stem != ROUND, stem)):
            for division, steps, section in _rule_sections(documents.own(usage, name, stem)):
                for key, index, rule in _written_rules(section):
                    place = (*steps, key, index)
                    yield _Use(rule["code"], key, division, usage, name, stem, place)


def _written_rules(section: Mapping[str, Any]) -> Iterator[tuple[str, int, Mapping[str, Any]]]:
    """Yield every rule of a section of a file, with its key and its index among the key's."""
    for key, entry in section.items():
        rules = [entry] if isinstance(entry, dict) else entry or ()
        for index, rule in enumerate(rules):
            yield key, index, rule


def _rule_sections(document: Mapping[str, Any]) -> Iterator[tuple[str, Steps, Mapping[str, Any]]]:
    """Yield each section of a file: its division, the steps that lead to it, its rules."""
    for name in SECTIONS:
        yield name, (name,), document.get(name, {})
    for key, choices in document.get("variants", {}).items():
        for value, section in choices.items():
            yield "closed", ("variants", key, value), section


# ---- what rules cite: a document and one of its headings ----------------------------------

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
        if file.path.stem == SOURCES:
            continue
        own_documents = not file.path.is_relative_to(data_folder("rules"))
        document = parse(file, file.read())
        for steps, source in _cited_sources(document):
            problem = problem_of_source(source, own_documents=own_documents)
            if problem:
                owner = owner_of(steps[:-1], document) or "the file"
                yield problem_at(file, steps, f"{owner} cites {source!r}: {problem}")


def _cited_sources(document: Mapping[str, Any]) -> Iterator[tuple[Steps, str]]:
    """Yield every source that a document cites, with the steps that lead to it."""
    for source in document.get(SOURCES, ()):
        yield (SOURCES, source), source
    for steps, part in parts_of(document):
        if steps[-1:] in _CITING and isinstance(part, str):
            yield steps, part
