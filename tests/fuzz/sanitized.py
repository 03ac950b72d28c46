"""The scanner in C, compiled with the sanitizers of the compiler."""

import importlib.machinery
import importlib.util
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

ROOT = Path(__file__).parents[2]
LIBRARY = ROOT / "build" / "fuzz" / "_scan.so"
MODULE = "mlperf_pkg.log._scan"
VARIABLE = "MLPERF_PKG_FUZZ_SCAN"
_FLAGS = (
    *("-O1", "-g", "-fPIC", "-shared", "-fno-omit-frame-pointer", "-DPy_LIMITED_API=0x030B0000"),
    *("-fsanitize=address,undefined", "-fno-sanitize-recover=all"),
)


def environment() -> dict[str, str] | None:
    """Compile the scanner, and return the environment of a process that uses it; None if not."""
    compiler = shutil.which(os.environ.get("CC", "gcc"))
    if compiler is None or sys.platform != "linux":
        return None
    LIBRARY.parent.mkdir(parents=True, exist_ok=True)
    include = f"-I{sysconfig.get_path('include')}"
    source = str(ROOT / "mlperf_pkg" / "log" / "_scan.c")
    try:
        subprocess.run(
            [compiler, *_FLAGS, include, source, "-o", str(LIBRARY)],
            check=True,
            capture_output=True,
        )
        # C++ comes first to the interceptors too: extensions of others raise its exceptions.
        runtimes = [_path_of(compiler, name) for name in ("libasan.so", "libstdc++.so")]
    except subprocess.CalledProcessError:
        return None
    if not all(runtime.is_absolute() for runtime in runtimes):
        return None
    return {
        **os.environ,
        VARIABLE: str(LIBRARY),
        "LD_PRELOAD": " ".join(map(str, runtimes)),
        "ASAN_OPTIONS": "detect_leaks=0:abort_on_error=1:allocator_may_return_null=1",
        "PYTHONMALLOC": "malloc",  # each object has bounds of its own
    }


def _path_of(compiler: str, library: str) -> Path:
    """Return where the compiler has a library; a relative path if it has none."""
    command = [compiler, f"-print-file-name={library}"]
    return Path(subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip())


def install() -> None:
    """Use the sanitized scanner in this process, if the environment says so."""
    library = os.environ.get(VARIABLE)
    if library is None:
        return
    loader = importlib.machinery.ExtensionFileLoader(MODULE, library)
    spec = importlib.util.spec_from_loader(MODULE, loader)
    assert spec
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    sys.modules[MODULE] = module
