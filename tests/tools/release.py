"""Check that the checkout has one version, and that nothing is called released without a tag.

``make release-check`` builds both distributions and runs ``python -m tests.tools.release dist``.
It prints the version, or what contradicts it, with exit status 1.
"""

import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from mlperf_pkg import __version__

ROOT = Path(__file__).parents[2]
LINES = 120  # two pages of 60 lines
WIDTH = 120
UNRELEASED = "Unreleased"
_HEADING = re.compile(r"^## \[(.+?)\](?: - \d{4}-\d{2}-\d{2})?$", re.MULTILINE)
_NAMED = re.compile(r"mlperf[-_]pkg(?:\[\w+\])?(?:==|:|@v|-| v?)(\d+\.\d+[\w.]*)")
_OF_A_FILE = re.compile(r"mlperf_pkg-(.+?)(?:-cp|-py|\.tar)")


def problems_of_change_log(text: str, tags: Sequence[str]) -> Iterator[str]:
    """Yield what is wrong with the text of the change log, in a repository with these tags."""
    versions = _HEADING.findall(text)
    if versions[:1] != [UNRELEASED]:
        yield f"CHANGELOG.md: its first heading is not [{UNRELEASED}]"
    for version in versions:
        if version != UNRELEASED and f"v{version}" not in tags:
            yield f"CHANGELOG.md: {version} is called released, but there is no tag v{version}"
    for version, section in zip(versions, _HEADING.split(text)[2::2], strict=True):
        headings = re.findall(r"^#{3,} .*$", section, re.MULTILINE)
        repeated = {heading for heading in headings if headings.count(heading) > 1}
        for heading in sorted(repeated):
            yield f"CHANGELOG.md: {version} has {heading!r} more than once"
        lines = section.strip().splitlines()
        if version == UNRELEASED and len(lines) > LINES:
            yield f"CHANGELOG.md: {UNRELEASED} has {len(lines)} lines; expected at most {LINES}"
        if any(len(line) > WIDTH for line in lines):
            yield f"CHANGELOG.md: {version} has lines of more than {WIDTH} characters"


def problems_of_version(version: str, tag: str, change_log: str) -> Iterator[str]:
    """Yield what is wrong with the version of a checkout, which has ``tag``, or none if empty."""
    is_development = ".dev" in version
    if not tag and not is_development:
        yield f"the version is {version}, but the commit has no tag v{version}"
    if tag and tag != f"v{version}":
        yield f"the tag is {tag}, but the version is {version}"
    if tag and version not in _HEADING.findall(change_log):
        yield f"CHANGELOG.md: no heading for {version}, which has a tag"


def problems_of_documents(folder: Path, version: str) -> Iterator[str]:
    """Yield each place where a document or a file to copy names another version of ours."""
    paths = [*folder.glob("*.md"), *folder.glob("*.yml"), *folder.glob("docs/**/*.md")]
    paths += [*folder.glob("ci-templates/*"), *folder.glob(".github/**/*.yml")]
    for path in sorted(paths):
        for named in _NAMED.findall(path.read_text("utf-8")):
            if named != version:
                yield f"{path.relative_to(folder)}: names version {named}, not {version}"


def problems_of_distributions(folder: Path, version: str) -> Iterator[str]:
    """Yield what is wrong with the wheel and the source distribution in a folder."""
    files = sorted(folder.glob("mlperf_pkg-*"))
    if {file.suffix for file in files} != {".whl", ".gz"}:
        yield f"{folder}: no wheel and source distribution"
    for file in files:
        if _OF_A_FILE.findall(file.name) != [version]:
            yield f"{file.name}: not of version {version}"


def problems_of_program(version: str) -> Iterator[str]:
    """Yield that ``mlperf-pkg --version`` prints another version."""
    command = [sys.executable, "-m", "mlperf_pkg", "--version"]
    printed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    if printed != f"mlperf-pkg {version}\n":
        yield f"--version prints {printed!r}, not {version}"


def tags_of(*arguments: str) -> list[str]:
    """Return the tags that git lists; none outside of a repository."""
    command = ["git", "tag", *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.split()


def problems(distributions: Path) -> Iterator[str]:
    """Yield everything that contradicts the version of this checkout."""
    change_log = (ROOT / "CHANGELOG.md").read_text("utf-8")
    tag = next(iter(tags_of("--points-at", "HEAD")), "")
    yield from problems_of_change_log(change_log, tags_of())
    yield from problems_of_version(__version__, tag, change_log)
    yield from problems_of_documents(ROOT, __version__)
    yield from problems_of_distributions(distributions, __version__)
    yield from problems_of_program(__version__)


if __name__ == "__main__":
    contradictions = list(problems(Path(sys.argv[1])))
    agreement = f"{__version__}: checkout, distributions, --version and documents agree"
    sys.stdout.write("\n".join(contradictions or [agreement]) + "\n")
    sys.exit(bool(contradictions))
