"""Reference pages for every code of a finding and every round."""

from collections.abc import Iterator, Sequence
from itertools import groupby

from mlperf_pkg.render.rules import USAGES, exceptions
from mlperf_pkg.rulebook import explain
from mlperf_pkg.rulebook.documents import rounds, usages
from mlperf_pkg.rulebook.explain import RuleHistory, RuleSpan, example
from mlperf_pkg.rulebook.load import codes, load_round
from mlperf_pkg.rulebook.model import Round, Rule
from references.markdown import block, code, page, plain, table

_FAMILIES = {
    "CHECK": "What could not be checked",
    "CODE": "The code of a submission",
    "CONF": "Systems in mlperf-pkg.yaml",
    "LOG": "Records of a log",
    "PACK": "Archives",
    "POW": "Power logs",
    "RAW": "Raw logs",
    "RCP": "Reference convergence points",
    "REPO": "Names, sizes and links",
    "ROUND": "The round of a run",
    "SEED": "Seeds",
    "SET": "Result sets",
    "SYS": "System descriptions",
    "TREE": "The tree of a submission",
    "WAIVE": "Waivers",
}
_OUTSIDE_MENU = "---\norphan: true\n---\n\n"  # the table of the families leads to it
_INTRODUCTION = (
    "Every finding has a code; `mlperf-pkg rules show CODE` shows the same texts as these pages."
    " Codes start with their family, so `--select` and `--ignore` accept families too."
)


def pages() -> Iterator[tuple[str, str]]:
    """Yield a page for each family of codes, a list of the families, and a page of the rounds."""
    names = sorted(codes().keys() | explain.rulebook_codes())
    families = {name: list(members) for name, members in groupby(names, _family)}
    about = {name: _FAMILIES.get(name) or _about(members) for name, members in families.items()}
    rows = [
        (f"[{name}](rules/{name}.md)", str(len(codes)), about[name])
        for name, codes in families.items()
    ]
    parts = [_INTRODUCTION, table(("Family", "Codes", "Subject"), rows)]
    yield "rules.md", page("Codes of findings", parts)
    yield "rounds.md", page("Rounds and benchmarks", _rounds())
    for name, members in families.items():
        parts = [part for member in members for part in _code(member)]
        yield f"rules/{name}.md", _OUTSIDE_MENU + page(f"{name}: {about[name]}", parts)


def _family(name: str) -> str:
    return name.rstrip("0123456789")


def _about(codes: Sequence[str]) -> str:
    """Name the benchmarks of the rules of a family."""
    histories = [history for name in codes for history in explain.histories(name)]
    if any(explain.EVERY_RUN in history.where for history in histories):
        return explain.EVERY_RUN.capitalize()
    return plain(
        ", ".join(dict.fromkeys(name for history in histories for name in history.benchmarks))
    )


def _code(name: str) -> Iterator[str]:
    yield f"({name.lower()})="
    if name in codes():
        entry = codes()[name]
        yield f"## {name}: {plain(entry.title)}"
        yield plain(entry.explanation)
        yield f"**How to fix it.** {plain(entry.fix)}"
        notes = [f"Basis {explain.basis_of(entry)}"]
        notes += [f"Severity: {explain.SEVERITY[entry.severity]}"]
        notes += [f"Unless: {plain(text)}" for text in exceptions(entry)]
        yield "\n".join(f"- {line}" for line in [*notes, f"Source: {plain(entry.source)}"])
    else:
        histories = explain.histories(name)
        rules = [span.rule for history in histories for span in reversed(history.spans)]
        yield f"## {name}: {', '.join(code(key) for key in dict.fromkeys(r.key for r in rules))}"
        for history in histories:
            yield from _history(history)
        yield f"**How to fix it.** {plain(explain.fix(histories))}"
        yield "\n".join(f"- {line}" for line in _notes(rules))
        yield from _example(explain.newest_first(histories)[0])


def _history(history: RuleHistory) -> Iterator[str]:
    everywhere = explain.EVERY_RUN in history.where
    places = explain.EVERY_RUN if everywhere else ", ".join(history.where)
    yield f"**{USAGES[history.usage]}, {plain(places)}**"
    rows = [(span.words, plain(explain.with_basis(span.rule))) for span in history.spans]
    yield table(("Rounds", "Requires"), rows)
    for name, round_, words in explain.targets(history):
        yield f"Target of {plain(name)} in {round_}: {plain(words)}."


def _notes(rules: Sequence[Rule]) -> Iterator[str]:
    for text in dict.fromkeys(rule.formula_text for rule in rules if rule.formula):
        yield f"Formula: {code(text)}"
    for basis in dict.fromkeys(rule.basis for rule in rules):
        yield f"Basis `{basis}`: {explain.BASIS[basis]}"
    for severity in dict.fromkeys(rule.severity for rule in rules):
        yield f"Severity: {explain.SEVERITY[severity]}"
    if any(rule.fatal for rule in rules):
        yield "The official checker crashes on a violation"
    for hint in dict.fromkeys(rule.hint for rule in rules if rule.hint):
        yield f"Hint: {plain(hint)}"
    yield f"Source: {plain('; '.join(dict.fromkeys(rule.source for rule in rules)))}"


def _example(history: RuleHistory) -> Iterator[str]:
    latest: RuleSpan = history.spans[-1]
    round_ = load_round(history.usage, latest.until)
    if lines := example(latest.rule, round_, explain.joined(history, latest)):
        yield f"A line that meets it in {latest.until}:"
        yield block(lines)


def _rounds() -> Iterator[str]:
    for usage in reversed(usages()):
        for name in reversed(rounds(usage)):
            round_ = load_round(usage, name)
            yield f"## {USAGES[usage]} {name}"
            yield f"Submission {round_.submission_date}, ruleset {round_.ruleset}."
            yield table(("Benchmark", "Runs", "Converges in", "Target"), _benchmarks(round_))


def _benchmarks(round_: Round) -> Iterator[tuple[str, ...]]:
    for name in round_.benchmarks:
        benchmark = explain.loaded(round_, name)
        yield (
            code(name),
            explain.runs(benchmark.runs),
            benchmark.unit,
            plain(explain.target(benchmark)),
        )
