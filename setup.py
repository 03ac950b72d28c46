"""What setup.cfg cannot say: the optional part in C, and the compiled rulebook of the wheel."""

import sys
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_py import build_py

HERE = Path(__file__).parent


class BuildPy(build_py):
    """Copies modules and data; compiles the rulebook, which a checkout does by ``make``."""

    def run(self) -> None:
        """Build all that goes into the wheel."""
        super().run()
        if not self.editable_mode:
            sys.path.insert(0, str(HERE))
            from mlperf_pkg.rulebook.compile import compiled  # noqa: PLC0415
            from mlperf_pkg.rulebook.files import COMPILED  # noqa: PLC0415

            folder = Path(self.build_lib) / "mlperf_pkg" / "data" / "rules"
            (folder / COMPILED).write_bytes(compiled(HERE / "rules"))


setup(
    cmdclass={"build_py": BuildPy},
    ext_modules=[
        Extension(
            "mlperf_pkg.log._scan",
            ["mlperf_pkg/log/_scan.c"],
            define_macros=[("Py_LIMITED_API", "0x030B0000")],
            py_limited_api=True,
            optional=True,
        )
    ],
)
