"""Objections as issues of GitHub: what its client prints is read, and commands for it are written.

Nothing is sent from here.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from mlperf_pkg.commands.review import objections as filed
from mlperf_pkg.commands.review.objections import ObjectionEntry, ObjectionState
from mlperf_pkg.errors import UserError
from mlperf_pkg.infra.files import write_whole
from mlperf_pkg.infra.paths import read_file
from mlperf_pkg.infra.text import letters, unused, visible
from mlperf_pkg.render.findings import View

FIELDS = "number,title,body,state,stateReason,labels,author,url"
"""What the client is asked for."""

ID = "Objection `{id}` of mlperf-pkg."
"""The last line of the text of an objection, by which its issue is known again."""

_ID = re.compile(r"^Objection `([^`\n]+)` of mlperf-pkg\.", re.M)
_LABEL = 50  # characters of a label at GitHub
_LARGEST = 1 << 26  # bytes of all issues
_MOST = 20  # lines of one issue
_LABELS = {
    ObjectionState.SUPPORTED: "fix_required",
    ObjectionState.REJECTED: "rejected",
    ObjectionState.WITHDRAWN: "withdrawn",
    ObjectionState.WAIVED: "waived",
    ObjectionState.SETTLED: "settled",
}
_LINK = re.compile(
    r"github\.com/[\w.-]+/([\w.-]+)/blob/[\w.-]+/([^\s#?)>\]\"'`]+)#L(\d+)(?:C\d+)?(?:-L(\d+))?"
)
_LINES = re.compile(r"(?<![\w./-])((?:[\w.+@-]+/)+[\w.+@-]+):(\d+(?:-\d+)?)(?!\w)")
_RESULT = re.compile(r"(?<![\w./-])[\w.+@-]+/(?:results|systems)/[\w.+@-]+(?:/[\w.+@-]+)?")
_OF_SUBMISSIONS = ("training_results", "hpc_results")  # names of repositories


class _Label(Struct):
    name: str


class GithubIssue(Struct, rename="camel"):
    """An issue as GitHub's client prints it."""

    number: int
    title: str
    state: str
    url: str
    body: str = ""
    state_reason: str | None = None
    labels: tuple[_Label, ...] = ()

    def named(self, word: str) -> tuple[str, ...]:
        """Return the organisations of the labels that begin with a word: by, against."""
        names = []
        for label in self.labels:
            first, _, rest = label.name.strip().partition(" ")
            if first.lower() == word and rest.strip():
                names.append(rest.strip())
        return tuple(names)

    def entry_in(self, entries: Iterable[ObjectionEntry]) -> ObjectionEntry | None:
        """Return the objection that its text names or that has its URL, if any."""
        match = _ID.search(self.body)
        for entry in entries:
            if entry.issue == self.url or (match and entry.id == match[1]):
                return entry
        return None

    @property
    def decided(self) -> ObjectionState:
        """The state that its labels name, else by whether it is open."""
        names = {letters(label.name) for label in self.labels}
        is_open = self.state.upper() == "OPEN"
        for state, label in reversed(_LABELS.items()):
            if letters(label) in names and (state is not ObjectionState.SUPPORTED or is_open):
                return state
        if is_open:
            return ObjectionState.OPEN
        if (self.state_reason or "").upper() == "NOT_PLANNED":
            return ObjectionState.REJECTED
        return ObjectionState.SETTLED


def read_issues(path: Path) -> list[GithubIssue]:
    """Return the issues in a file.

    Raises:
        UserError: it cannot be read, or is not what the client prints.
    """
    try:
        return msgspec.json.decode(read_file(path, _LARGEST), type=list[GithubIssue])
    except (OSError, ValueError, RecursionError, msgspec.DecodeError) as error:
        needed = f"expected the output of 'gh issue list --state all --json {FIELDS}'"
        reason = getattr(error, "strerror", None) or error
        raise UserError(f"{path}: not a list of GitHub issues ({reason}); {needed}") from error


def take_issues(path: Path, file: Path) -> list[str]:
    """Write what the issues in a ``file`` say into the file of objections; return the changes.

    An issue is that of an objection if its text names it, or by its URL. The others are new
    objections, if a label says against whom.

    Raises:
        UserError: as ``read_issues``, ``changed_entries`` and ``with_new``, or it cannot be
            written.
    """
    entries = filed.read_entries(path) if path.exists() else ()
    changes: dict[str, filed.ChangedFields] = {}
    new: dict[str, ObjectionEntry] = {}
    lines = []
    for issue in sorted(read_issues(file), key=lambda issue: issue.number):
        entry = issue.entry_in(entries)
        if entry is not None:
            fields = _changes(entry, issue)
            if fields:
                changes[entry.id] = fields
                lines.append(f"{entry.id}: {_in_words(fields)}")
        elif issue.named("against"):
            ids = {entry.id for entry in entries} | new.keys()
            added = _entry(issue, ids)
            new[added.id] = added
            lines.append(f"{added.id}: new, against {added.against}: {added.title}")
        else:
            lines.append(
                f"issue #{issue.number} is left out, as it has no label 'against <org>':"
                f" {issue.title}"
            )
    text = filed.changed_entries(path, changes) if changes else ""
    if new or not path.exists():
        text = filed.with_new(path, new.values(), text)
    if text:
        write_whole(path, text, replace=True)
    return lines


def _in_words(fields: filed.ChangedFields) -> str:
    words = []
    for name, content in fields.items():
        text = content if isinstance(content, str) else ", ".join(content) or "nobody"
        words.append(f"{name} {text}")
    return ", ".join(words)


def _changes(entry: ObjectionEntry, issue: GithubIssue) -> dict[str, str | tuple[str, ...]]:
    """Return the fields of which an issue says something else; a waiver has to be measured."""
    fields: dict[str, str | tuple[str, ...]] = {}
    state = issue.decided
    if state is ObjectionState.WAIVED and entry.percent is None:
        state = entry.state
        fields["note"] = (
            "the issue is labelled waived, but the change of the scores was not measured; give TREE"
            " and --state waived to measure the change"
        )
    for name, content in (("state", state), ("issue", issue.url), ("by", issue.named("by"))):
        fields[name] = content
    return {name: content for name, content in fields.items() if content != getattr(entry, name)}


def _entry(issue: GithubIssue, taken: Collection[str]) -> ObjectionEntry:
    """Return the objection of people in an issue."""
    state = issue.decided
    if state is ObjectionState.WAIVED:
        state = ObjectionState.OPEN
    lines = dict[str, None]()
    reference = dict[str, None]()
    for repository, path, first, last in _LINK.findall(issue.body):
        place = f"{path}:{first}-{last}" if last else f"{path}:{first}"
        of_submissions = repository.startswith(_OF_SUBMISSIONS)
        (lines if of_submissions else reference)[place] = None
    for path, numbers in _LINES.findall(_LINK.sub("", issue.body)):
        lines[f"{path}:{numbers}"] = None
    return ObjectionEntry(
        unused(f"issue-{issue.number}", taken),
        issue.named("against")[0],
        state,
        by=issue.named("by"),
        title=issue.title,
        issue=issue.url,
        about=tuple(dict.fromkeys(_RESULT.findall(issue.body)))[:_MOST],
        lines=tuple(lines)[:_MOST],
        reference=tuple(reference)[:_MOST],
    )


# ---- commands -----------------------------------------------------------------------------

_SCRIPT = """\
#!/bin/sh
# Files and labels the objections with GitHub's client, gh, and records the issues in {file}.
# Read this script. Then run it in a clone of the repository that has the issues, or with
# GH_REPO=owner/name.
set -eu
"""


def script(outcome: filed.ObjectionOutcome, _: View) -> str:
    """Return a shell script that files drafts, and labels and closes what was decided."""
    file = outcome.file.absolute()
    labels = dict[str, None]()
    lines: list[str] = []
    for item in outcome.objections:
        entry = item.entry
        label = _LABELS.get(entry.state)
        if entry.state is ObjectionState.DRAFTED:
            own_labels = _labels(entry)
            labels |= dict.fromkeys(own_labels)
            lines += _filing(entry, file, own_labels)
        elif label and entry.issue:
            labels[label] = None
            add = f"--add-label={label}"
            lines.append(shlex.join(["gh", "issue", "edit", add, "--", entry.issue]))
            if not entry.is_open:
                lines.append(shlex.join(["gh", "issue", "close", "--", entry.issue]))
    text = _SCRIPT.format(file=visible(str(file)))
    for label in labels:
        text += shlex.join(["gh", "label", "create", "--force", "--", label]) + "\n"
    for line in lines:
        text += f"{line}\n"
    return text


def _labels(entry: ObjectionEntry) -> list[str]:
    labels = [f"by {name}" for name in entry.by]
    labels.append(f"against {entry.against}")
    return [visible(label)[:_LABEL] for label in labels]


def _filing(entry: ObjectionEntry, file: Path, labels: Sequence[str]) -> Iterator[str]:
    """Yield the commands that file an objection, and record its issue in the ``file``."""
    issue = ["gh", "issue", "create", f"--title={visible(entry.title or entry.id)}"]
    issue.append(f"--body-file={file.parent / entry.id}.md")
    issue += [f"--label={_quoted(label)}" for label in labels]
    record = ["mlperf-pkg", "review", "objections", str(file), f"--id={entry.id}"]
    yield f"url=$({shlex.join(issue)})"
    yield f'{shlex.join(record)} --state=open --issue="$url"'


def _quoted(label: str) -> str:
    """Return a label as an item of a list of labels, which gh splits at commas as in CSV."""
    if "," not in label and '"' not in label:
        return label
    escaped = label.replace('"', '""')
    return f'"{escaped}"'
