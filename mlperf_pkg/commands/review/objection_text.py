"""Objections in words: the texts of issues, the folder that holds them, and their states."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import Any

from msgspec.structs import asdict, replace

from mlperf_pkg.checker.values import Options
from mlperf_pkg.commands.review import github
from mlperf_pkg.commands.review import objections as filed
from mlperf_pkg.commands.review.calendar import EVENTS, Calendar, by_date
from mlperf_pkg.commands.review.evidence import evidence_of
from mlperf_pkg.commands.review.examined import Examined, examine
from mlperf_pkg.commands.review.round import (
    FINDING_COLUMNS,
    ReviewedRound,
    ReviewSection,
    column,
    finding_rows,
    table_of_cells,
    with_rows,
    without_empty,
)
from mlperf_pkg.errors import UserError
from mlperf_pkg.findings import Basis, Finding, Occurrence, in_words
from mlperf_pkg.infra.files import refuse_within, write_together
from mlperf_pkg.infra.source import Source, numbered_lines, raw_lines
from mlperf_pkg.infra.text import escape_markdown, visible
from mlperf_pkg.render.findings import View
from mlperf_pkg.render.table import HEADING, PLAIN, by_key, document, json_text, table_of
from mlperf_pkg.render.terminal import Terminal
from mlperf_pkg.results import wording
from mlperf_pkg.results.rcp import reference_hyperparameters
from mlperf_pkg.results.report import ResultSetRow, name
from mlperf_pkg.results.wording import counted
from mlperf_pkg.rulebook.explain import all_layers, requirement
from mlperf_pkg.rulebook.load import codes, load_round

_DIFFER = "SET122"  # hyperparameters of the runs of a set
_SUBJECTS = 20
_FILES = 3  # of one finding
_LINES = 3  # of one file
_NAMED = 20  # files without an excerpt
_POINTS = 12
_CHARACTERS = 300
_FOUND = "Found by mlperf-pkg, code {code} (`mlperf-pkg rules show {code}` explains the code)."
_BASES = {
    Basis.BOTH: "the written rules and the official checker",
    Basis.OFFICIAL: "the official checker",
    Basis.RULES: "the written rules; the official checker does not test this",
    Basis.ADVICE: "neither a written rule nor the official checker",
}


def objection_text(objection: filed.Objection, examined: Examined, by: str | None) -> str:
    """Return the text of an objection ``by`` an organisation; None writes a placeholder."""
    title = escape_markdown(objection.title)
    by_label = _code(by or "<org>")
    against_label = _code(objection.against)
    return document(
        f"# {title}",
        f"Labels: `by {by_label}`, `against {against_label}`",
        _rule(objection.findings[0]),
        *_subjects(objection, examined),
        *_reference(objection, examined),
        _FOUND.format(code=objection.code),
        github.ID.format(id=objection.id),
    )


def _code(text: str) -> str:
    """Return text for use inside backticks, without backticks of its own."""
    return visible(text).replace("`", "'")


def _rule(finding: Finding) -> str:
    lines = [f"- **Rule:** {escape_markdown(finding.source or 'none')}"]
    code = codes().get(finding.code)
    if code:
        explanation = " ".join(code.explanation.split())
        lines.append(f"- **Requirement:** {escape_markdown(explanation)}")
    lines.append(f"- **Required by:** {_BASES[finding.basis]}")
    return "\n".join(lines)


# ---- lines --------------------------------------------------------------------------------


def _subjects(objection: filed.Objection, examined: Examined) -> Iterator[str]:
    for finding in objection.findings[:_SUBJECTS]:
        yield f"## {escape_markdown(finding.about)}"
        yield "\n".join(f"- {line}" for line in _facts(finding))
        places = list(_differing(finding, examined)) or finding.occurrences
        for place in places[:_FILES]:
            yield from _excerpt(place, examined.sources)
        more = places[_FILES:]
        if more:
            names = wording.shortened([_without_excerpt(place) for place in more], _NAMED)
            yield f"The same in {counted(len(more), 'more file')}: {names}."
    others = objection.findings[_SUBJECTS:]
    if others:
        names = escape_markdown(", ".join(finding.about for finding in others))
        yield f"And {counted(len(others), 'more finding')} like these, in {names}."


def _without_excerpt(place: Occurrence) -> str:
    """Return the name of a file, with its first line if it has one, in backticks."""
    text = _code(name(place.path))
    if place.lines:
        text += f":{place.lines[0]}"
    return f"`{text}`"


def _facts(finding: Finding) -> Iterator[str]:
    text = finding.text
    if finding.runs:
        text += f" ({finding.runs} of {counted(finding.of_runs or 0, 'run')})"
    yield escape_markdown(text)
    for label in ("found", "expected"):
        value = getattr(finding, label)
        if value is not None:
            form = ":,.9g" if isinstance(value, float | int) else ""
            words = replace(finding, message=f"{{{label}{form}}}").text
            yield f"{label}: {escape_markdown(words)}"
    if finding.cause and finding.hint:
        yield escape_markdown(finding.hint)


def _differing(finding: Finding, examined: Examined) -> Iterator[Occurrence]:
    """Yield the runs with rare values of hyperparameters that differ, and one with usual ones."""
    context = examined.contexts.get(finding.about)
    if finding.code != _DIFFER or context is None:
        return
    keys = [text.partition(" ")[0] for text in finding.found]
    values = {}
    for run in context.runs:
        if not run.killed:
            values[run.path] = tuple(map(run.hyperparameters.get, keys))
    for usual, number in Counter(values.values()).most_common(1):
        rare_first = sorted(values, key=lambda path: values[path] == usual)
        for path in rare_first[: len(values) - number + 1]:
            label = examined.named(path)
            lines = _first_lines(examined.sources.get(label), keys)
            yield Occurrence(label, tuple(lines))


def _first_lines(source: Source | None, keys: Sequence[str]) -> Iterator[int]:
    """Yield the number of the first line with each key of a log, if it can be read."""
    if source is None:
        return
    pattern = re.compile(rf'"key"\s*:\s*"({"|".join(map(re.escape, keys))})"'.encode())
    seen = set[bytes]()
    with suppress(OSError):
        for number, line in numbered_lines(source):
            match = pattern.search(line)
            if match and match[1] not in seen:
                seen.add(match[1])
                yield number
            if len(seen) == len(keys):
                return


def _excerpt(place: Occurrence, sources: Mapping[str, Source]) -> Iterator[str]:
    """Yield a file with its lines, and their text if it can be read."""
    numbers = place.lines[:_LINES]
    if not numbers:
        yield f"`{_code(place.path)}`"
        return
    source = sources.get(place.path)
    texts = dict[int, str]()
    if source is not None:
        with suppress(OSError):
            texts = raw_lines(source, numbers, _CHARACTERS)
    for number in numbers:
        yield f"`{_code(place.path)}:{number}`"
        if number in texts:
            yield f"    {visible(texts[number])}"


# ---- the reference ------------------------------------------------------------------------


def _reference(objection: filed.Objection, examined: Examined) -> Iterator[str]:
    """Yield the rules and the reference points for the key of the code, if it has one."""
    rows = examined.rows
    row = next((rows[path] for path in objection.about if path in rows), None)
    if row is None:
        return
    usage = examined.checked.report.usage
    lines = []
    keys = []
    for layer in all_layers(usage, row.round, row.benchmark):
        for rule in chain.from_iterable(layer.rules.values()):
            if rule.code == objection.code:
                keys.append(rule.key)
                words = escape_markdown(requirement(rule))
                lines.append(f"`{rule.key}`, {row.round}: {words}")
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
        sizes = ", ".join(f"{size:g}" for size in sorted(points))
        yield f"{file} has batch sizes {sizes}"
        nearest = min(points, key=lambda size: abs(size - batch_size))
        yield f"batch size {nearest:g}: {_values(points[nearest])}"
    for size, point in sorted(points.items())[:_POINTS]:
        named = {name: value for name, value in point.items() if _is_of(name, keys)}
        if named:
            yield f"{file}, batch size {size:g}: {_values(named)}"


def _is_of(spelling: str, keys: Iterable[str]) -> bool:
    """Return whether a name in reference points is one of the keys, or one without its prefix."""
    return any(f"_{key}".endswith(f"_{spelling}") for key in keys)


def _values(values: Mapping[str, Any]) -> str:
    texts = [f"{spelling} {in_words([value])}" for spelling, value in values.items()]
    return ", ".join(texts)


# ---- the states of objections -------------------------------------------------------------

FORMAT = "mlperf-pkg/objections/2"
_STANDS = filed.ObjectionStanding.STANDS  # the names of others follow a number as they are
_ERRORS = 10


def _state(entry: filed.ObjectionEntry) -> str:
    if entry.percent is None:
        return entry.state.words
    return f"{entry.state.words} ({entry.percent:g} %)"


def _facts_of(entry: filed.ObjectionEntry, outcome: filed.ObjectionOutcome) -> list[str]:
    """Return the state of an objection, and what it says."""
    due = _due(outcome.due(entry))
    objectors = ", ".join(entry.by) or "nobody"
    references = [f"reference: {line}" for line in entry.reference]
    title = ": ".join(filter(None, [entry.code, entry.title]))
    texts = [title, *entry.lines, *references, entry.issue, entry.note]
    heading = f"{entry.id} by {objectors} against {entry.against}: {_state(entry)}{due}"
    return [heading, *filter(None, texts)]


def _remarks(outcome: filed.ObjectionOutcome) -> Iterator[str]:
    """Yield why waivers do not hold, and which objections nobody has any more."""
    for item in outcome.objections:
        entry = item.entry
        if item.doubt:
            yield f"{entry.id} is not waived: {item.doubt}"
        if entry.is_open and not entry.by and entry.issue:
            yield f"{entry.id}: nobody objects; without a 'by <org>' it is closed"


def _standing(item: filed.Judged) -> str:
    """Return the standing of an objection, and why; of several subjects, of how many."""
    if item.standing is None:
        return wording.NOTHING
    if item.standing is filed.ObjectionStanding.SETTLED:
        return f"{item.standing} {item.why}"
    number = len(item.entry.about)
    left = len(item.left) + len(item.undecided)
    where = f" in {left} of {number} places" if left and number > 1 else ""
    if item.undecided and not item.left:
        return f"{item.why}{where}"
    return "; ".join(filter(None, [f"{item.standing}{where}", item.why]))


def text(outcome: filed.ObjectionOutcome, view: View) -> str:
    """Return the objections, each with its state, then the errors without an objection."""
    terminal = Terminal(view)
    for item in outcome.objections:
        heading, *facts = _facts_of(item.entry, outcome)
        if item.standing:
            heading += f"; {_standing(item)}"
        terminal.paragraph((heading, HEADING))
        for fact in facts:
            terminal.paragraph((f"  {fact}", PLAIN))
    if outcome.objections:
        terminal.line()
    _show_possible(terminal, outcome.new, view)
    for line in (*_remarks(outcome), _summary(outcome)):
        terminal.paragraph((line, PLAIN))
    return terminal.text()


def _show_possible(terminal: Terminal, new: Sequence[filed.Objection], view: View) -> None:
    """Add the errors that no objection names, of many the first."""
    shown = new if view.verbose else new[:_ERRORS]
    if shown:
        terminal.line(("Possible objections: errors that no objection names", PLAIN))
    for error in shown:
        terminal.paragraph((f"  {_possible(error)}", PLAIN))
    more = len(new) - len(shown)
    if more:
        terminal.line((f"  and {more} more; -v shows them", PLAIN))
    if shown:
        terminal.line()


def _possible(error: filed.Objection) -> str:
    """Return an objection that may be filed in words, with its first place."""
    others = len(error.findings) - 1
    more = f" and {counted(others, 'more place')}" if others else ""
    return f"{error.code} ({error.name.place}{more}): {error.findings[0].text}"


def _summary(outcome: filed.ObjectionOutcome) -> str:
    judged = outcome.objections
    has_tree = any(item.standing for item in judged)
    counts = Counter[str]()
    for item in judged:
        if not has_tree:
            counts[item.entry.state.words] += 1
        elif item.standing is _STANDS:
            counts["standing" if item.is_open else item.entry.state.words] += 1
        else:
            counts[item.standing or "not in TREE"] += 1
    counts["possible"] = len(outcome.new)
    numbers = [f"{count} {word}" for word, count in counts.items() if count]
    number = counted(len(judged), "objection")
    if numbers:
        return f"{number}: {', '.join(numbers)}"
    return number


def json(outcome: filed.ObjectionOutcome, _: View) -> str:
    """Return JSON; ``standing`` is null if there is no tree."""
    objections = []
    for item in outcome.objections:
        objections.append({**asdict(item), "due": outcome.due(item.entry)})
    new = []
    for error in outcome.new:
        message = error.findings[0].text
        fields = {"against": error.against, "code": error.code, "message": message}
        fields |= {"title": error.title, "place": error.name.place}
        new.append({**fields, "about": error.about})
    document = {"format": FORMAT, "settled": outcome.is_settled}
    return json_text({**document, "objections": objections, "new": new})


def agenda(entries: Sequence[filed.ObjectionEntry], calendar: Calendar | None) -> str:
    """Return the agenda of a meeting: what is open by submitter, then what was decided."""
    outcome = filed.ObjectionOutcome((), calendar=calendar)
    parts = ["# Agenda of the review"]
    if calendar:
        first = f"{calendar['first_decisions']:%A %Y-%m-%d}"
        second = f"{calendar['second_decisions']:%A %Y-%m-%d}"
        parts.append(f"The days of decision are {first} and {second}.")
    open_entries = [entry for entry in entries if entry.is_open]
    groups = sorted(by_key((entry.against, entry) for entry in open_entries).items())
    decided = [entry for entry in entries if not entry.is_open]
    if decided:
        groups.append(("Decided", decided))
    for title, members in groups:
        parts.append(f"## {escape_markdown(title)} ({len(members)})")
        lines = []
        for entry in members:
            box = "- [ ]" if entry.is_open else "-"
            lines.append(f"{box} {escape_markdown('. '.join(_facts_of(entry, outcome)))}")
        parts.append("\n".join(lines))
    if not open_entries:
        parts.append("Nothing is open.")
    return document(*parts)


def _due(due: str | None) -> str:
    if due:
        return f", due {due}"
    return ""


OBJECTION_FORMATS = {"text": text, "json": json, "gh": github.script}


# ---- objections in a review ---------------------------------------------------------------

_NO_ERRORS = "There is an objection for every error by the written rules."
_MAY_BE_FILED = (
    "An error by the written rules is a possible objection until somebody files an"
    " objection{until}. 'mlperf-pkg review objection CODES ROUND_FOLDER -o FOLDER' writes the"
    " texts of objections, one for each code and submitter."
)


def section(reviewed: ReviewedRound) -> ReviewSection:
    """Return the objections with their states and deadlines, then those that may be filed."""
    outcome = reviewed.outcome
    errors = chain.from_iterable(error.findings for error in outcome.new)
    rows = finding_rows(errors, reviewed.examined)
    states = table_of(
        (*_STATES, column("Due", lambda item: outcome.due(item.entry))),
        outcome.objections,
        title="Objections and their states",
    )
    tables = {
        "states": without_empty(states),
        "errors": table_of(FINDING_COLUMNS, rows, title="Possible objections"),
    }
    text = _NO_ERRORS
    if rows:
        dates = outcome.calendar
        until = f", not later than {dates['objections']:%Y-%m-%d}" if dates else ""
        text = _MAY_BE_FILED.format(until=until)
    summary = tuple(_summary_lines(outcome)) or ("no errors by the rules",)
    return ReviewSection("objections", "Objections", (text,), with_rows(tables), summary)


def _summary_lines(outcome: filed.ObjectionOutcome) -> Iterator[str]:
    for item in outcome.objections:
        entry = item.entry
        due = _due(outcome.due(entry))
        yield f"{entry.id} ({_state(entry)}, {_standing(item)}{due}): {entry.title}"
    yield from _remarks(outcome)
    for error in outcome.new:
        yield f"possible {_possible(error)}"


_STATES = (
    column("Objection", "entry.id"),
    column("Found", "entry.title"),
    column("Against", "entry.against"),
    column("By", lambda item: ", ".join(item.entry.by) or None),
    column("Code", lambda item: item.entry.code or None),
    column("State", lambda item: _state(item.entry)),
    column("In the tree", _standing),
    column("Measured %", "measured", numbers=True),
    column("Not waived", lambda item: item.doubt or None),
    column("Lines", lambda item: ", ".join(item.entry.lines) or None),
    column("Reference", lambda item: ", ".join(item.entry.reference) or None),
    column("Issue", lambda item: item.entry.issue or None),
)


def calendar_section(reviewed: ReviewedRound) -> ReviewSection:
    """Return the dates of the review."""
    rows = []
    for due, moment in by_date(reviewed.outcome.calendar or {}):
        event = EVENTS[due]
        cells = (
            f"{moment:%Y-%m-%d}",
            f"{moment:%A}",
            event.title,
            f"{moment:%H:%M}",
            event.command,
        )
        rows.append(cells)
    titles = ("Date", "Day", "What", "Pacific time", "Command")
    table = table_of_cells(titles, rows, title="Dates")
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
        needed = (
            f"expected at most {_PRINTED}, or -o FOLDER, which writes a file for each objection"
        )
        raise UserError(f"{counted(len(objections), 'objection')} cannot be printed; {needed}")
    parts = [objection_text(objection, examined, by) for objection in objections]
    return "\n---\n\n".join(parts)


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
    ids = _ids_in(folder)
    examined, objections = _objections(path, options, wanted)
    new = [item for item in objections if item.id not in ids]
    files = {}
    entries = []
    for item in new:
        entry = filed.entry_of(item, examined, by)
        entries.append(entry)
        files[f"{item.id}.md"] = objection_text(item, examined, by)
        files[filed.evidence_file(entry)] = evidence_of(item.about, (), examined)
    for file in files:
        if (folder / file).exists():
            raise UserError(
                f"{folder / file}: exists, but is not in {filed.NAME}; move the file away"
            )
    if new:
        files[filed.NAME] = filed.with_new(states, entries)
        write_together(folder, files, replace=True)
    for item in new:
        yield visible(f"{folder / item.id}.md: {item.code}: {item.title}")
    earlier = len(objections) - len(new)
    already = f"; {earlier} already in {states}" if earlier else ""
    yield f"{counted(len(new), 'objection')} written{already}"


def _ids_in(folder: Path) -> set[str]:
    """Return the ids of the objections in a folder, which may be empty or missing."""
    states = folder / filed.NAME
    if states.exists():
        return {entry.id for entry in filed.read_entries(states)}
    if folder.is_dir() and any(folder.iterdir()):
        raise UserError(f"{folder}: not empty, but without {filed.NAME}; choose another folder")
    return set()


def _objections(
    path: str, options: Options, wanted: Sequence[str]
) -> tuple[Examined, list[filed.Objection]]:
    examined = examine(path, options)
    objections = filed.find_objections(examined, wanted)
    if objections:
        return examined, objections
    codes = sorted({finding.code for _, finding in examined.findings})
    reason = f"nothing to object to with CODES {', '.join(wanted)}"
    if codes:
        reason += f"; the findings have the codes {', '.join(codes)}"
    raise UserError(f"{path}: {reason}")
