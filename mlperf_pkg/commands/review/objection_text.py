"""Objections in words: the texts of issues, the folder that holds them, and their states."""

import re
import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain
from operator import attrgetter, itemgetter
from pathlib import Path
from typing import Any

from msgspec.structs import asdict, replace

from mlperf_pkg.checker.values import Options
from mlperf_pkg.commands.review import objections as filed
from mlperf_pkg.commands.review.calendar import Calendar, by_date
from mlperf_pkg.commands.review.round import (
    ReviewedRound,
    ReviewSection,
    column,
    table_of_cells,
    with_rows,
)
from mlperf_pkg.errors import UserError
from mlperf_pkg.findings import Basis, Finding, Occurrence, in_words
from mlperf_pkg.infra.files import refuse_within, write_together
from mlperf_pkg.infra.source import Source, numbered_lines, raw_lines
from mlperf_pkg.infra.text import escape_markdown, visible
from mlperf_pkg.render.findings import View
from mlperf_pkg.render.table import PLAIN, Column, by_key, document, json_text, table_of
from mlperf_pkg.render.terminal import Terminal
from mlperf_pkg.results import wording
from mlperf_pkg.results.rcp import reference_hyperparameters
from mlperf_pkg.results.report import ResultSetRow, name
from mlperf_pkg.results.wording import counted
from mlperf_pkg.rulebook.explain import all_layers, requirement
from mlperf_pkg.rulebook.load import codes, load_round

_DIFFER = "SET122"  # hyperparameters of the runs of a set
_SUBJECTS = 20
_FILES, _LINES = 3, 3  # of one finding
_NAMED = 20  # files without an excerpt
_POINTS = 12
_CHARACTERS = 300
_FOUND = "Found by mlperf-pkg, code {code} (`mlperf-pkg rules show {code}` explains it)."
_BASES = {
    Basis.BOTH: "the written rules and the official checker",
    Basis.OFFICIAL: "the official checker",
    Basis.RULES: "the written rules; the official checker does not test it",
    Basis.ADVICE: "neither a written rule nor the official checker",
}


def objection_text(objection: filed.Objection, examined: filed.Examined, by: str | None) -> str:
    """Return the text of an objection ``by`` an organisation; None writes a placeholder."""
    return document(
        f"# {escape_markdown(f'{objection.against}: {objection.title}')}",
        f"Labels: `by {_code(by or '<org>')}`, `against {_code(objection.against)}`",
        _rule(objection.findings[0]),
        *_subjects(objection, examined),
        *_reference(objection, examined),
        _FOUND.format(code=objection.code),
    )


def _code(text: str) -> str:
    """Return text for use inside backticks, without backticks of its own."""
    return visible(text).replace("`", "'")


def _rule(finding: Finding) -> str:
    lines = [f"- **Rule:** {escape_markdown(finding.source or 'none')}"]
    code = codes().get(finding.code)
    if code:
        lines.append(f"- **Requirement:** {escape_markdown(' '.join(code.explanation.split()))}")
    return "\n".join([*lines, f"- **Basis:** {_BASES[finding.basis]}"])


# ---- lines --------------------------------------------------------------------------------


def _subjects(objection: filed.Objection, examined: filed.Examined) -> Iterator[str]:
    for finding in objection.findings[:_SUBJECTS]:
        yield f"## {escape_markdown(finding.about)}"
        yield "\n".join(f"- {line}" for line in _facts(finding))
        places = list(_differing(finding, examined)) or finding.occurrences
        for place in places[:_FILES]:
            yield from _excerpt(place, examined.sources)
        more = places[_FILES:]
        if more:
            lines = (":".join([_code(name(p.path)), *map(str, p.lines[:1])]) for p in more)
            names = wording.shortened([f"`{line}`" for line in lines], _NAMED)
            yield f"The same in {counted(len(more), 'more file')}: {names}."
    others = objection.findings[_SUBJECTS:]
    if others:
        names = escape_markdown(", ".join(finding.about for finding in others))
        yield f"And {counted(len(others), 'more finding')} like these, in {names}."


def _facts(finding: Finding) -> Iterator[str]:
    runs = f" ({finding.runs} of {counted(finding.of_runs or 0, 'run')})" if finding.runs else ""
    yield escape_markdown(finding.text + runs)
    for label in ("found", "expected"):
        value = getattr(finding, label)
        if value is not None:
            form = ":,.9g" if isinstance(value, float | int) else ""
            yield f"{label}: {escape_markdown(replace(finding, message=f'{{{label}{form}}}').text)}"


def _differing(finding: Finding, examined: filed.Examined) -> Iterator[Occurrence]:
    """Yield the runs with rare values of hyperparameters that differ, and one with usual ones."""
    keys = [text.partition(" ")[0] for text in finding.found] if finding.code == _DIFFER else []
    contexts = (c for c in examined.checked.contexts if examined.named(c.path) == finding.about)
    runs = [run for context in contexts for run in context.runs if not run.killed]
    rare = list[tuple[str, str]]()
    usual = list[tuple[str, str]]()
    for key in keys:
        values = {run.path: run.hyperparameters[key] for run in runs if key in run.hyperparameters}
        for common, _ in Counter(values.values()).most_common(1):
            rare += [(path, key) for path, value in values.items() if value != common]
            usual.append((next(path for path, value in values.items() if value == common), key))
    for path, of_run in (*by_key(rare).items(), *by_key(usual).items()):
        label = examined.named(path)
        yield Occurrence(label, tuple(_first_lines(examined.sources.get(label), of_run)))


def _first_lines(source: Source | None, keys: Iterable[str]) -> Iterator[int]:
    """Yield the number of the first line with each key of a log, if it can be read."""
    left = {key: re.compile(rf'"key"\s*:\s*"{re.escape(key)}"'.encode()) for key in keys}
    with suppress(OSError):
        for number, line in numbered_lines(source) if source else ():
            for key in [key for key, pattern in left.items() if pattern.search(line)]:
                del left[key]
                yield number
            if not left:
                return


def _excerpt(place: Occurrence, sources: Mapping[str, Source]) -> Iterator[str]:
    """Yield a file with its lines, and their text if it can be read."""
    numbers = place.lines[:_LINES]
    if not numbers:
        yield f"`{_code(place.path)}`"
        return
    source = sources.get(place.path)
    texts = dict[int, str]()
    with suppress(OSError):
        texts = raw_lines(source, numbers, _CHARACTERS) if source else {}
    for number in numbers:
        yield f"`{_code(place.path)}:{number}`"
        if number in texts:
            yield f"    {visible(texts[number])}"


# ---- the reference ------------------------------------------------------------------------


def _reference(objection: filed.Objection, examined: filed.Examined) -> Iterator[str]:
    """Yield the rules and the reference points for the key of the code, if it has one."""
    row = next((examined.rows[path] for path in objection.about if path in examined.rows), None)
    if row is None:
        return
    usage = examined.checked.report.usage
    layers = all_layers(usage, row.round, row.benchmark)
    every = chain.from_iterable(of_key for layer in layers for of_key in layer.rules.values())
    rules = [rule for rule in every if rule.code == objection.code]
    lines = [f"`{r.key}`, {row.round}: {escape_markdown(requirement(r))}" for r in rules]
    keys = [rule.key for rule in rules]
    lines += map(escape_markdown, _points(objection.code, keys, usage, row))
    if lines:
        yield "## Reference"
        yield "\n".join(f"- {line}" for line in lines)


def _points(code: str, keys: Sequence[str], usage: str, row: ResultSetRow) -> Iterator[str]:
    """Yield the reference points: the one nearest to a tested set, or those with a rule's key."""
    ruleset = load_round(usage, row.round).ruleset
    points = reference_hyperparameters(usage, ruleset, row.benchmark) if ruleset else {}
    file = f"rcp_checker/{usage}_{ruleset}/rcps_{row.benchmark}.json of mlperf-logging"
    if code.startswith("RCP") and points and row.rcp:
        batch_size = row.rcp.batch_size
        yield f"{file} has batch sizes {', '.join(f'{size:g}' for size in sorted(points))}"
        nearest = min(points, key=lambda size: abs(size - batch_size))
        yield f"batch size {nearest:g}: {_values(points[nearest])}"
    for size, values in sorted(points.items())[:_POINTS]:
        names = {name for name in values for key in keys if f"_{key}".endswith(f"_{name}")}
        if names:
            of_keys = {name: value for name, value in values.items() if name in names}
            yield f"{file}, batch size {size:g}: {_values(of_keys)}"


def _values(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {in_words([value])}" for name, value in values.items())


# ---- the states of objections -------------------------------------------------------------

FORMAT = "mlperf-pkg/objections/1"
_STANDS = filed.Standing.STANDS  # the names of others follow a number as they are
_ERRORS = 10
_LABEL = 50  # characters of a label at GitHub


def _state(item: filed.Judged) -> str:
    percent = item.entry.percent
    share = "" if percent is None else f" ({percent:g} %)"
    return f"{item.entry.state.value.replace('_', ' ')}{share}"


def _doubts(outcome: filed.ObjectionOutcome) -> list[str]:
    """Return why waivers do not hold, a line for each."""
    doubtful = (item for item in outcome.objections if item.doubt)
    return [f"{item.entry.id} is not waived: {item.doubt}" for item in doubtful]


def _standing(item: filed.Judged) -> str:
    number = len(item.entry.about)
    left = f" in {len(item.left)} of {number}" if item.left and number > 1 else ""
    return f"{item.standing or wording.NOTHING}{left}"


def text(outcome: filed.ObjectionOutcome, view: View) -> str:
    """Return a table of the objections, then the errors without an objection."""
    terminal = Terminal(view)
    if outcome.objections:
        due = Column("Due", 10, of=lambda item: outcome.due(item.entry))
        columns = (
            Column("Objection", 60, of=attrgetter("entry.id")),
            Column("State", 14, of=_state),
            *([due] if outcome.calendar else []),
            Column("In the tree", 30, of=_standing),
        )
        terminal.table(table_of(columns, outcome.objections))
    shown = outcome.new if view.verbose else outcome.new[:_ERRORS]
    if shown:
        terminal.line(("Errors without an objection", PLAIN))
        for error in shown:
            where = f"{counted(len(error.about), 'place')}, first {error.about[0]}"
            words = f"  {error.against}: {error.code} in {where}: {error.findings[0].text}"
            terminal.paragraph((words, PLAIN))
        more = len(outcome.new) - len(shown)
        if more:
            terminal.line((f"  and {more} more; -v shows them", PLAIN))
        terminal.line()
    for line in (*_doubts(outcome), _summary(outcome)):
        terminal.paragraph((line, PLAIN))
    return terminal.text()


def _summary(outcome: filed.ObjectionOutcome) -> str:
    number = counted(len(outcome.objections), "objection")
    standing = [item.standing for item in outcome.objections if item.standing]
    if outcome.objections and not standing:
        counts = Counter(item.entry.state.value.replace("_", " ") for item in outcome.objections)
    else:
        counts = Counter("standing" if one is _STANDS else one.value for one in standing)
        counts["not in the tree"] = len(outcome.objections) - len(standing)
        counts["new"] = len(outcome.new)
    words = ", ".join(f"{count} {word}" for word, count in counts.items() if count)
    return f"{number}: {words}" if words else number


def json(outcome: filed.ObjectionOutcome, _: View) -> str:
    """Return JSON; ``standing`` is null if there is no tree."""
    objections = [{**asdict(item), "due": outcome.due(item.entry)} for item in outcome.objections]
    new = [
        {"against": o.against, "code": o.code, "message": o.findings[0].text, "about": o.about}
        for o in outcome.new
    ]
    settled = {"format": FORMAT, "settled": outcome.is_settled}
    return json_text({**settled, "objections": objections, "new": new})


_SCRIPT = """\
#!/bin/sh
# Files and labels the objections with GitHub's client, gh, and records the issues in {file}.
# Read it, then run it in a clone of the repository of the issues, or with GH_REPO=owner/name.
set -eu
"""


def github(outcome: filed.ObjectionOutcome, _: View) -> str:
    """Return a shell script that files drafted objections, and labels those to be fixed."""
    file = outcome.file.absolute()
    lines = []
    labels = dict[str, None]()
    for entry in (item.entry for item in outcome.objections):
        own = {"by": entry.by, "against": entry.against}
        names = [visible(f"{word} {name}")[:_LABEL] for word, name in own.items() if name]
        if entry.state is filed.ObjectionState.DRAFTED:
            labels |= dict.fromkeys(names)
            issue = ["gh", "issue", "create", f"--title={visible(entry.title or entry.id)}"]
            issue += [f"--body-file={file.parent / entry.id}.md"]
            issue += [f"--label={_quoted(name)}" for name in names]
            record = ["mlperf-pkg", "review", "objections", str(file), f"--id={entry.id}"]
            lines.append(f"url=$({shlex.join(issue)})")
            lines.append(f'{shlex.join(record)} --state=filed --issue="$url"')
        elif entry.state is filed.ObjectionState.FIX_REQUIRED and entry.issue:
            labels[filed.ObjectionState.FIX_REQUIRED] = None
            label = f"--add-label={filed.ObjectionState.FIX_REQUIRED}"
            lines.append(shlex.join(["gh", "issue", "edit", label, "--", entry.issue]))
    made = [shlex.join(["gh", "label", "create", "--force", "--", name]) for name in labels]
    return _SCRIPT.format(file=visible(str(file))) + "".join(f"{line}\n" for line in made + lines)


def _quoted(label: str) -> str:
    """Return a label as an item of a list of labels, which gh splits at commas as in CSV."""
    return '"{}"'.format(label.replace('"', '""')) if {*label} & {*',"'} else label


def agenda(entries: Sequence[filed.ObjectionEntry], calendar: Calendar | None) -> str:
    """Return the agenda of a meeting: what is open by submitter, then what was decided."""
    outcome = filed.ObjectionOutcome((), calendar=calendar)
    days = [calendar[name] for name in ("first_decisions", "second_decisions")] if calendar else []
    dates = wording.enumerated([f"{day:%A %Y-%m-%d}" for day in days])
    groups = by_key(((not e.is_open, e.against if e.is_open else "Decided"), e) for e in entries)
    parts = ["# Agenda of the review", f"The committee decides on {dates}." if dates else ""]
    for (_, title), members in sorted(groups.items(), key=itemgetter(0)):
        parts.append(f"## {escape_markdown(title)} ({len(members)})")
        parts.append("\n".join(_item(entry, outcome.due(entry)) for entry in members))
    is_open = any(entry.is_open for entry in entries)
    return document(*parts, "" if is_open else "Nothing is open.")


def _due(due: str | None) -> str:
    return f", due {due}" if due else ""


def _item(entry: filed.ObjectionEntry, due: str | None) -> str:
    state = f"{_state(filed.Judged(entry))}{_due(due)}"
    title = ": ".join(filter(None, [entry.code, entry.title]))
    title = title if entry.is_open else f"{entry.against}, {title}"
    text = ". ".join(filter(None, [title, entry.issue, entry.note]))
    box = "- [ ]" if entry.is_open else "-"
    return f"{box} {escape_markdown(f'{entry.id} ({state}): {text}')}"


OBJECTION_FORMATS = {"text": text, "json": json, "gh": github}


# ---- objections in a review ---------------------------------------------------------------

_NO_ERRORS = "There are no errors by the written rules."
_MAY_BE_FILED = (
    "Errors by the written rules may be filed as objections{until}, one for each code and"
    " submitter. 'mlperf-pkg review objection CODES ROUND_FOLDER -o FOLDER' writes the texts."
)


def section(reviewed: ReviewedRound) -> ReviewSection:
    """Return the objections with their states and deadlines, then those that may be filed."""
    outcome = reviewed.outcome
    judged = outcome.objections
    new = outcome.new
    states = (
        column("objection", attrgetter("entry.id")),
        column("against", attrgetter("entry.against")),
        column("by", lambda item: item.entry.by or None),
        column("code", attrgetter("entry.code")),
        column("state", _state),
        column("due", lambda item: outcome.due(item.entry)),
        column("in the tree", _standing),
        column("measured %", attrgetter("measured"), numbers=True),
        column("not waived", lambda item: item.doubt or None),
        column("found", attrgetter("entry.title")),
    )
    cells = [(o.against, o.code, len(o.about), o.title, o.findings[0].source) for o in new]
    errors = ("against", "code", "places", "found", "rule")
    tables = {
        "states": table_of(states, judged, title="Objections and their states"),
        "errors": table_of_cells(errors, cells, title="Errors without an objection"),
    }
    lines = [
        f"{item.entry.id}: {_state(item)}, {_standing(item)}{_due(outcome.due(item.entry))}"
        for item in judged
    ]
    lines += [*_doubts(outcome), *(f"{item.against}: {item.code}: {item.title}" for item in new)]
    until = f", until {outcome.calendar['objections']}" if outcome.calendar else ""
    text = _MAY_BE_FILED.format(until=until) if lines else _NO_ERRORS
    summary = tuple(lines) or ("no errors by the rules",)
    return ReviewSection("objections", "Objections", (text,), with_rows(tables), summary)


def calendar_section(reviewed: ReviewedRound) -> ReviewSection:
    """Return the dates of the review."""
    dates = by_date(reviewed.outcome.calendar or {})
    rows = [(f"{day}", f"{day:%A}", what) for _, day, what in dates]
    table = table_of_cells(("Date", "Day", "What"), rows, title="Dates")
    return ReviewSection("calendar", "Calendar", (), with_rows({"dates": table}))


# ---- objections of a check ----------------------------------------------------------------

_PRINTED = 5  # objections


def texts(path: str, options: Options, wanted: Sequence[str], by: str | None) -> str:
    """Return the text of the objections in a path, separated by lines.

    Raises:
        UserError: there are no objections, or too many to be shown.
    """
    examined, objections = _objections(path, options, wanted)
    if len(objections) > _PRINTED:
        needed = f"expected at most {_PRINTED}, or -o FOLDER, which writes a file for each"
        raise UserError(f"{counted(len(objections), 'objection')}; {needed}")
    return "\n---\n\n".join(objection_text(item, examined, by) for item in objections)


def write(
    folder: Path, path: str, options: Options, wanted: Sequence[str], by: str | None
) -> Iterator[str]:
    """Write the objections that ``objections.yaml`` does not list; yield the lines to print.

    Raises:
        UserError: there are no objections, or a file cannot be written. Before the check: the
            folder is in the input or is another one, or its ``objections.yaml`` is not valid.
    """
    refuse_within(folder, [path])
    states = folder / filed.NAME
    ids = set[str]()
    if states.exists():
        ids = {entry.id for entry in filed.read_entries(states)}
    elif folder.is_dir() and any(folder.iterdir()):
        raise UserError(f"{folder}: not empty, but without {filed.NAME}; choose another folder")
    examined, objections = _objections(path, options, wanted)
    new = [item for item in objections if item.id not in ids]
    files = {f"{item.id}.md": objection_text(item, examined, by) for item in new}
    taken = next((name for name in files if (folder / name).exists()), None)
    if taken:
        raise UserError(f"{folder / taken}: exists, but is not in {filed.NAME}; move it away")
    if new:
        texts = {**files, filed.NAME: filed.with_new(states, new, examined, by)}
        write_together(folder, texts, replace=True)
    for item in new:
        yield visible(f"{folder / item.id}.md: {item.against}, {item.code}: {item.title}")
    earlier = len(objections) - len(new)
    rest = f"; {earlier} already in {states}" if earlier else ""
    yield f"{counted(len(new), 'objection')} written{rest}"


def _objections(
    path: str, options: Options, wanted: Sequence[str]
) -> tuple[filed.Examined, list[filed.Objection]]:
    examined = filed.examine(path, options)
    objections = filed.find_objections(examined, wanted)
    if objections:
        return examined, objections
    codes = sorted({finding.code for _, finding in examined.findings})
    others = f"; its findings have {', '.join(codes)}" if codes else ""
    raise UserError(f"{path}: nothing to object to for {', '.join(wanted)}{others}")
