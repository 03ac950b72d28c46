"""Leave result sets that are not valid out of an archive, without changing the tree."""

from __future__ import annotations

import shutil
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from tempfile import gettempdir

from msgspec.structs import replace

from mlperf_pkg.checker.values import Options
from mlperf_pkg.commands.archive.hashed_tree import HashedFile, HashedTree
from mlperf_pkg.commands.archive.verification import report_on
from mlperf_pkg.commands.builder.contents import remarks, tables
from mlperf_pkg.commands.builder.judge import failures
from mlperf_pkg.commands.builder.manifest import (
    MANIFEST,
    ManifestEntry,
    manifest_text,
    read_manifest,
)
from mlperf_pkg.errors import UserError
from mlperf_pkg.findings import Finding, Verdict
from mlperf_pkg.infra.files import scratch_folder
from mlperf_pkg.render.findings import location, sentence
from mlperf_pkg.results.report import Report, ResultSetRow, description_path, name


def reasons(report: Report) -> dict[str, str]:
    """Return why ``build`` would leave out result sets of a tree, by their ids."""
    return {
        row.id: "\n".join([f"{_name(row)} is not valid:", *map(_line, failed)])
        for row in report.result_sets
        if (failed := list(_failures(row, report)))
    }


def without_sets(
    tree: HashedTree, report: Report, ids: Collection[str], options: Options
) -> tuple[HashedTree, Report]:
    """Return a tree without some of its result sets, and the report on the rest.

    Descriptions and code that only these sets need are left out, too. The manifest and the tables
    that ``build`` wrote list the rest.

    Raises:
        UserError: a file cannot be copied to be checked.
    """
    dropped = [row for row in report.result_sets if row.id in ids]
    rows = [row for row in report.result_sets if row.id not in ids]
    tops = tuple(f"{path}/" for path in _needed_only_by(dropped, rows))
    left = replace(tree, files=tuple(f for f in tree.files if not f"{f.path}/".startswith(tops)))
    checked = _checked(left, replace(options, usage=report.usage, round=report.round))
    return replace(left, files=_listing(left, checked, options)), checked


def _failures(row: ResultSetRow, report: Report) -> Iterator[Finding]:
    """Yield the findings that fail a set, or the description of its system."""
    description = description_path(row)
    of_system = [finding for finding in report.findings if finding.subject == description]
    of_set = [finding for finding in report.findings if finding.set == row.id]
    yield from failures(of_system, rejected=True)
    yield from failures(of_set, rejected=row.verdict.official is Verdict.FAIL)


def _name(row: ResultSetRow) -> str:
    return row.path.removeprefix("results/")


def _line(finding: Finding) -> str:
    return f"  {location(finding)}: {finding.code}: {sentence(finding)}"


def _needed_only_by(
    dropped: Collection[ResultSetRow], others: Collection[ResultSetRow]
) -> Iterator[str]:
    """Yield the files and folders that only the ``dropped`` sets need."""
    systems, benchmarks = {row.system for row in others}, {name(row.path) for row in others}
    for row in dropped:
        yield row.path
        if row.system not in systems:
            yield from (f"results/{row.system}", description_path(row))
        if name(row.path) not in benchmarks:
            yield f"benchmarks/{name(row.path)}"


def _checked(tree: HashedTree, options: Options) -> Report:
    """Check a copy of the files in a tree of the same name."""
    with scratch_folder(Path(gettempdir())) as work:
        root = work / tree.root.resolve().name
        for file in tree.files:
            target = root / file.path
            try:
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(tree.root / file.path, target, follow_symlinks=False)
            except OSError as error:
                raise UserError(
                    f"{tree.root / file.path}: cannot be copied: {error.strerror}"
                ) from error
        return report_on(root, str(tree.root), options)


def _listing(tree: HashedTree, report: Report, options: Options) -> tuple[HashedFile, ...]:
    """Return the files with new tables and a new manifest, if the tree has a manifest."""
    files = {file.path: file for file in tree.files}
    if MANIFEST not in files:
        return tree.files
    entries = read_manifest((tree.root / MANIFEST).read_bytes())
    for path, text in _tables(report, options).items():
        if path in files and entries[path].origin is None:
            files[path] = HashedFile.of(path, text.encode())
    del files[MANIFEST]
    text = manifest_text(
        ManifestEntry(file.path, file.size, file.sha256, entries[file.path].origin)
        for file in files.values()
    )
    files[MANIFEST] = HashedFile.of(MANIFEST, text.encode())
    return tuple(files[path] for path in sorted(files))


def _tables(report: Report, options: Options) -> Mapping[str, str]:
    names = [_name(row) for row in report.result_sets]
    systems = {row.system or "" for row in report.result_sets}
    return tables(report, remarks(options.config, names, systems))
