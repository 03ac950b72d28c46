"""Each package keeps to its budget of lines of code, in pyproject.toml: a feature raises it in its own commit."""

import tomllib
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parent.parent
BUDGET = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["mlperf-pkg"]["lines"]
QUOTES = ('"' * 3, "'" * 3)


def lines_of_code(source: str) -> int:
    """The number of lines with a token of code: no blanks, comments or docstrings.

    A tokenizer takes seconds; in code as it is formatted here, it is enough to look at each line.
    """
    number, before, is_open, is_docstring = 0, ":", False, False
    for line in map(str.strip, source.split("\n")):
        if not is_open:
            is_docstring = before.endswith(":") and line.removeprefix("r").startswith(QUOTES)
        is_code = is_open or line[:1] not in {"", "#"}
        number += is_code and not is_docstring
        is_open ^= sum(map(line.count, QUOTES)) % 2 == 1
        before = line.partition("  # ")[0] if is_code else before
    return number


def test_each_package_keeps_to_its_budget() -> None:
    lines: Counter[str] = Counter()
    for top in ("mlperf_pkg", "tests"):
        for path in (ROOT / top).rglob("*.py"):
            number = lines_of_code(path.read_text("utf-8"))
            parts = path.relative_to(ROOT).parts
            lines[top] += number
            if top == "mlperf_pkg":
                lines[parts[1] if len(parts) > 2 else "modules"] += number
    assert set(lines) == set(BUDGET)
    assert {name: number for name, number in lines.items() if number > BUDGET[name]} == {}
