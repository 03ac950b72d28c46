"""What rules cite: a document and one of its headings, which ``sources.yaml`` lists."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from mlperf_pkg.infra.resources import data_folder, per_rulebook
from mlperf_pkg.rulebook.files import read, rule_files
from mlperf_pkg.rulebook.metaschema import owner_of
from mlperf_pkg.rulebook.model import LOGGING
from mlperf_pkg.rulebook.problems import Problem, RuleFile, Steps, suggestion
from mlperf_pkg.rulebook.strictyaml import parse, problem_at

OWN = "mlperf-pkg: "
"""The beginning of a source that is our own judgement; words follow."""

SOURCES = "sources"
"""The name of the file of headings, without ``.yaml``, and of the keys of each source in a file."""

_CITING = ("source", "date_source")
_RULESET = re.compile(r"ruleset \d+\.\d+\.\d+")


@per_rulebook
def headings() -> Mapping[str, tuple[str, ...]]:
    """Return the headings of each document that a source may cite.

    Raises:
        RulebookError: a file ``sources.yaml`` is not valid.
    """
    merged: dict[str, tuple[str, ...]] = {}
    for file in reversed(list(rule_files(f"{SOURCES}.yaml"))):
        for document, names in read(file).items():
            merged[document] = (*merged.get(document, ()), *names)
    return merged


def problem_of_source(text: str, *, own_documents: bool = False) -> str:
    """Return what is wrong with a source, and what was meant; empty if it may be cited.

    With ``own_documents`` it may be a document of the user's own, unlike any that is listed.
    """
    if text.startswith(OWN):
        return ""
    document, _, heading = text.partition(", ")
    documents = headings()
    if document not in documents:
        near = suggestion(document, documents)
        if own_documents and not near:
            return ""
        expected = f"; expected one of {', '.join(documents)}, or {OWN}..."
        return f"{document!r} is not a document{near or expected}"
    names = documents[document]
    if heading in names or (document == LOGGING and _RULESET.fullmatch(heading)):
        return ""
    return f"{heading!r} is not a heading of {document}{suggestion(heading, names)}"


def problems_of_sources(files: Iterable[RuleFile]) -> Iterator[Problem]:
    """Yield the sources that valid files cite and that do not exist."""
    for file in files:
        own_documents = not file.path.is_relative_to(data_folder("rules"))
        if file.path.stem == SOURCES:
            continue
        document = parse(file, file.path.read_bytes())
        for steps, text in _cited(document):
            if problem := problem_of_source(text, own_documents=own_documents):
                owner = owner_of(steps[:-1], document) or "the file"
                yield problem_at(file, steps, f"{owner} cites {text!r}: {problem}")


def _cited(document: Any, steps: Steps = ()) -> Iterator[tuple[Steps, str]]:
    """Yield every source in a document, with the steps that lead to it."""
    if isinstance(document, list):
        for index, part in enumerate(document):
            yield from _cited(part, (*steps, index))
    elif isinstance(document, dict):
        for name, part in document.items():
            if name in _CITING and isinstance(part, str):
                yield (*steps, name), part
            elif name == SOURCES and not steps:
                yield from (((name, text), text) for text in part)
            else:
                yield from _cited(part, (*steps, name))
