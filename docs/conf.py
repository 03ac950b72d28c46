"""The documentation as a site: ``make docs``.

Nothing is fetched to build it or to read it: the theme brings its scripts and uses the fonts of the
system, and the search reads an index that is a script, which browsers load from files too.
"""

from __future__ import annotations

import sys
from pathlib import Path

from sphinx.application import Sphinx

sys.path.insert(0, str(Path(__file__).parent))

import references

from mlperf_pkg import __version__

project = "mlperf-pkg"
release = __version__
extensions = ["myst_parser"]
nitpicky = True
smartquotes = False  # a -- is an option, and quotes are those of logs

myst_heading_anchors = 3

html_theme = "furo"
html_title = f"{project} {release}"
html_copy_source = False
html_show_sourcelink = False
html_show_copyright = False


def setup(app: Sphinx) -> None:
    """Write the references before the pages are read."""
    app.connect("builder-inited", lambda app: references.write(Path(app.srcdir) / "reference"))
