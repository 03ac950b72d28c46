"""Templates in the user's cache folder."""

import base64
import zlib
from pathlib import Path

import pytest
from jinja2.bccache import bc_magic

from mlperf_pkg.commands.page.template import filled, packed


def text_of_macros() -> str:
    return "".join(filled("macros.html", {}, title="", style=""))


@pytest.mark.parametrize(
    "damaged",
    [
        pytest.param(packed([b"x" * 100])[:20], id="cut off"),
        pytest.param("\N{BULLET}", id="not Base64"),
        pytest.param(packed([b"x"]), id="no template"),
    ],
)
def test_a_damaged_template_is_replaced(
    damaged: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    text = text_of_macros()
    [template] = (tmp_path / "mlperf-pkg").iterdir()  # without charts, nothing else is kept
    template.write_text(damaged, "utf-8")
    assert text_of_macros() == text
    assert zlib.decompress(base64.b64decode(template.read_text()), 31).startswith(bc_magic)
