"""Write the owner of the repository, which ``setup.py`` has, into the files that users copy.

``python -m tests.tools.owner`` does so; a test holds that they agree.
"""

import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
FILES = ("ci-templates/gitlab-ci.yml", "ci-templates/mlperf.yml", "docs/ci.md")
_REFERENCE = re.compile(r"(uses: |github\.com/)[\w.-]+(/mlperf-pkg\b)")


def owner() -> str:
    """Return the owner."""
    match = re.search(r'^OWNER = "(.+)"$', (ROOT / "setup.py").read_text("utf-8"), re.MULTILINE)
    assert match is not None
    return match[1]


def copied_files(name: str) -> Iterator[tuple[Path, str]]:
    """Yield the files with their texts as they are for an owner."""
    for path in map(ROOT.joinpath, FILES):
        yield path, _REFERENCE.sub(rf"\g<1>{name}\2", path.read_text("utf-8"))


if __name__ == "__main__":
    for file, text in copied_files(owner()):
        file.write_text(text, "utf-8")
