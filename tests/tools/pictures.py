"""The pictures of the README, from simulated runs: ``make pictures``.

``docs/check.svg`` is what ``check`` prints on a terminal of 100 columns; a test holds that it is so
still. ``docs/page.png`` is the first screen of the page of a round, and needs Chromium.
"""

import io
import re
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console
from rich.text import Text

from mlperf_pkg.checker.check import check
from mlperf_pkg.checker.values import Options
from mlperf_pkg.render import FORMATS, View
from tests.helpers.console import DOCS
from tests.helpers.program import call

COLUMNS = 100
ROUND = "training_results_v5.0"
_COMMAND = f"mlperf-pkg check {ROUND}"
_SIMULATE = (
    *("simulate", "--round", "5.0", "--submitters", "4", "--system-count", "8"),
    *("--failure", "missing_key", "--failure", "wrong_value", "--division", "closed"),
)
_SIZE = "1280,800"
# Fonts from the network, which the documentation does not load.
_FONTS = re.compile(r"@font-face \{\{.*?\}\}\s*", re.DOTALL)


def simulated(folder: Path) -> Path:
    """Simulate the round of the pictures in a folder."""
    done = call(*_SIMULATE, folder / ROUND)
    assert done.exit_code == 0, done.output
    return folder / ROUND


def picture(round_: Path) -> str:
    """Return what a terminal shows of a check, as SVG."""
    report = check([str(round_)], Options(jobs=1)).report
    text = FORMATS["text"](report, View(COLUMNS, color=True, wraps=True))
    console = Console(
        record=True, width=COLUMNS, file=io.StringIO(), color_system="standard", highlight=False
    )
    console.print(Text(f"$ {_COMMAND}"), Text.from_ansi(text), sep="\n")
    return console.export_svg(
        title="mlperf-pkg", code_format=_FONTS.sub("", CONSOLE_SVG_FORMAT), unique_id="check"
    )


def page(round_: Path, target: Path) -> None:
    """Write the first screen of the page of a round, as PNG."""
    html = round_.parent / "report.html"
    assert call("report", round_, "-o", html).exit_code < 2
    options = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking")
    size = ("--hide-scrollbars", f"--window-size={_SIZE}", "--virtual-time-budget=5000")
    command = ["chromium", *options, *size, f"--screenshot={target}", html.as_uri()]
    subprocess.run(command, check=True, capture_output=True)


if __name__ == "__main__":
    with TemporaryDirectory() as temporary:
        made = simulated(Path(temporary))
        (DOCS / "check.svg").write_text(picture(made), "utf-8")
        if "--page" in sys.argv:
            page(made, DOCS / "page.png")
