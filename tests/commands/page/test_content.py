"""What a page says: the columns of its table, its findings and their lines."""

from pathlib import Path

from msgspec.structs import replace

from mlperf_pkg.checker.check import check
from mlperf_pkg.checker.values import Options, Rank, Standing
from mlperf_pkg.commands.page.content import choices, columns, excerpts
from mlperf_pkg.config import Price
from mlperf_pkg.findings import Finding
from mlperf_pkg.infra.source import Source, raw_lines
from mlperf_pkg.render.table import Table
from tests.commands.page.test_entries import entry
from tests.helpers.logs import line_of
from tests.helpers.trees import simulated, write_set

STANDING = Standing("2.0", 8, Rank(3, 12), "X1", Rank(1, 2))


def test_a_column_without_values_is_left_out() -> None:
    titles = [column.heading for column in columns([entry(5.0, 8)])]
    rare = {"Round", "Nodes", "Batch size", "Energy (kJ)", "Price (USD)", "Published rank"}
    assert not rare & set(titles)
    assert titles[:3] == ["Benchmark", "Accelerators", "Minutes"]


def test_values() -> None:
    full = entry(5.0, 8, energy_joules=1_234_567.0, submitter=None)
    full = replace(full, price=Price(149000, "a list"), standing=STANDING)
    full = replace(full, settings={"global_batch_size": "3072"})
    shown = columns([full, entry(6.0, 16)])
    cells = zip(shown, Table(shown).spans(full), strict=True)
    row = {column.heading: text for column, (text, _) in cells}
    assert (
        row.items()
        >= {
            "Energy (kJ)": "1,235",
            "Price (USD)": "149,000",
            "Published rank": "3 of 12",
            "Batch size": "3072",
            "Availability": "onprem",
            "Minutes": "5.000",
            "Submitter": "-",
        }.items()
    )


def test_numbers_to_filter_by_are_in_their_order() -> None:
    entries = [entry(5.0, size) for size in (1024, 8, 16)]
    assert choices(columns(entries), entries) == {"Accelerators": ["8", "16", "1,024"]}


def test_excerpts_are_the_lines_of_findings(tmp_path: Path) -> None:
    logs = simulated()
    checked = check([str(write_set(tmp_path, logs))], Options(round="2.0"))
    line = line_of(logs[0], "run_start")
    lines = [("result_0.txt", line), ("result_0.txt", None), ("no such file", 1)]
    findings = [Finding(code="X101", message="", path=p, line=n) for p, n in lines]
    ((location, text),) = excerpts(checked, findings).items()
    assert location == ("result_0.txt", line)
    assert text.startswith(':::MLLOG {"namespace"')
    assert '"run_start"' in text


def lines_of(data: bytes, *numbers: int) -> dict[int, str]:
    return raw_lines(Source("log", data), numbers, 10)


def test_raw_lines() -> None:
    data = b"one\r\n\xff\n" + b"x" * (3 << 20) + b"\n  four \nfive"
    assert lines_of(data, 1, 2, 3, 4, 5, 6) == {
        1: "one",
        2: "\ufffd",
        3: "xxxxxxx...",
        4: "four",
        5: "five",
    }
    assert lines_of(data) == {}
