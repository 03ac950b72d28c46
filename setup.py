"""What pyproject.toml cannot say: links to the repository, the part in C, the compiled rulebook,
manual pages.
"""

import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from setuptools import Extension, find_packages, setup
from setuptools.command.build_py import build_py

# The address of the repository, for the page of an index; the release workflow knows it. Without
# it, there are no links to it, and those of the README are relative.
REPOSITORY = os.environ.get("MLPERF_PKG_REPOSITORY", "")
HERE = Path(__file__).parent
IMAGE = re.compile(r"(!\[[^\]]*\])\((?!https?:)([^)]+)\)")
LINK = re.compile(r"\]\((?!https?:|#)([^)]+)\)")

# "no": without the part in C; "required": not without it; by default with it where it compiles.
SCAN = os.environ.get("MLPERF_PKG_SCAN", "")
PART_IN_C = Extension(
    "mlperf_pkg.log._scan",
    ["mlperf_pkg/log/_scan.c"],
    define_macros=[("Py_LIMITED_API", "0x030B0000")],
    py_limited_api=True,
    optional=SCAN != "required",
)


class BuildPy(build_py):
    """Copies modules and data; compiles the rulebook; writes the manual pages."""

    def run(self) -> None:
        """Build all that goes into the wheel."""
        super().run()
        if not self.editable_mode:
            sys.path[:0] = [str(HERE), str(HERE / "docs")]
            from mlperf_pkg.rulebook.compile import compiled  # noqa: PLC0415
            from mlperf_pkg.rulebook.documents import COMPILED  # noqa: PLC0415

            package = Path(self.build_lib) / "mlperf_pkg"
            (package / "data" / "rules" / COMPILED).write_bytes(compiled(HERE / "rules"))
            self.distribution.data_files = [("share/man/man1", [*self.manual_pages()])]

    def manual_pages(self) -> Iterator[str]:
        """Write the manual pages beside the modules; yield their paths."""
        from click import Context  # noqa: PLC0415
        from man_page import pages  # noqa: PLC0415

        from mlperf_pkg.cli.main import cli  # noqa: PLC0415

        folder = Path(self.build_lib).with_name("man1")
        folder.mkdir(exist_ok=True)
        context = Context(cli, info_name="mlperf-pkg", **cli.context_settings)
        for name, text in pages(context, self.distribution.get_version()):
            (folder / name).write_text(text, "utf-8")
            yield (folder / name).as_posix()


def readme() -> str:
    """Return README.md, with links that work outside of the repository if its address is known."""
    text = (HERE / "README.md").read_text("utf-8")
    if not REPOSITORY:
        return text
    with_images = IMAGE.sub(rf"\1({REPOSITORY}/raw/HEAD/\2)", text)
    return LINK.sub(rf"]({REPOSITORY}/blob/HEAD/\1)", with_images)


def links() -> dict[str, str]:
    """Return the links of the project by their names; none if the address is not known."""
    if not REPOSITORY:
        return {}
    return {
        "Documentation": f"{REPOSITORY}/tree/HEAD/docs",
        "Changelog": f"{REPOSITORY}/blob/HEAD/CHANGELOG.md",
        "Issues": f"{REPOSITORY}/issues",
        "Source": REPOSITORY,
    }


setup(
    project_urls=links(),
    long_description=readme(),
    long_description_content_type="text/markdown",
    packages=[
        *find_packages(include=["mlperf_pkg", "mlperf_pkg.*"]),
        "mlperf_pkg.data.rules",
        "mlperf_pkg.data.systems",
    ],
    cmdclass={"build_py": BuildPy},
    ext_modules=[] if SCAN == "no" else [PART_IN_C],
)
