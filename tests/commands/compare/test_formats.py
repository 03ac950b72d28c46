"""A comparison as text and Markdown."""

from textwrap import dedent

from msgspec.structs import replace

from mlperf_pkg.commands.compare.formats import COMPARE_FORMATS
from mlperf_pkg.commands.compare.ratios import Result, compare
from mlperf_pkg.config import Price
from mlperf_pkg.findings import Verdict
from mlperf_pkg.render import View
from tests.helpers.published import result

A = result(samples_per_second=2_345_678.0, unit="samples", availability="Available on-premise")
LONG = "dgxa100_n8_ngc22.04_merlin_hugectr_of_a_long_name"
B = replace(A, submitter="Other", path="x", minutes=10.0, accelerators=64, availability="space")
C = replace(A, system=LONG, path="y", minutes=800.0, rules=Verdict.FAIL, availability=None)
PRICES = {"dgx": Price(300_000.0, "list"), LONG: Price(300_000.0, "list")}


def text(*results: Result, prices: dict[str, Price] | None = None, format_: str = "text") -> str:
    rows = compare(results, prices or {}, lambda result: result.argument == 0)
    return COMPARE_FORMATS[format_](rows, View(80))


def test_text() -> None:
    assert text(A, B, C, prices=PRICES) == dedent(
        """\
        Time to train                   Submitter  Avail.  Accelerators  Minutes   Speed
        bert (closed, since 1.0)
          dgx                           Other      space             64   10.000   2.00x
          dgx *                         ACME       onprem             8   20.000   1.00x
          dgxa100_n8_ngc22.04_merlin_hugectr_of_a_long_name
                                        ACME       -                  8  800.000  0.025x
          dgxa100_n8_ngc22.04_merlin_hugectr_of_a_long_name: not valid by the written
          rules; 'mlperf-pkg check' shows why

        Speed per                                            accelerator    node  dollar
        bert (closed, since 1.0)
          Other/dgx                                                0.25x   2.00x   2.00x
          ACME/dgx *                                               1.00x   1.00x   1.00x
          dgxa100_n8_ngc22.04_merlin_hugectr_of_a_long_name       0.025x  0.025x  0.025x

        Throughput                                       Per second  /accelerator  /node
        bert (closed, since 1.0)
          Other/dgx                                            2.3M        36,651   2.3M
          ACME/dgx *                                           2.3M       293,210   2.3M
          dgxa100_n8_ngc22.04_merlin_hugectr_of_a_long_name
                                                               2.3M       293,210   2.3M
          samples per second

        dgx, dgxa100_n8_ngc22.04_merlin_hugectr_of_a_long_name: $300,000 (list)
        Speed is the minutes of the baseline (*) divided by the minutes of the system.
        Speed per accelerator, speed per node, speed per dollar and runs per joule are
        also relative to the baseline.
        """
    )


def test_a_price_is_given_once_and_only_with_a_ratio_per_dollar() -> None:
    others = (replace(one, benchmark="resnet", path="z") for one in (A, B))
    shown = text(A, B, C, *others, prices=PRICES)
    assert shown.count("$300,000") == 1
    assert "$300,000" not in text(A, prices=PRICES)


def test_small_ratios_keep_a_digit() -> None:
    shown = text(A, *(replace(A, path=str(m), minutes=m) for m in (300.0, 3000.0, 1e6)))
    ratios = [word for word in shown.split() if word.endswith("x") and word[0].isdigit()]
    assert ratios[:4] == ["1.00x", "0.067x", "0.007x", "2e-05x"]


def test_markdown() -> None:
    lines = text(A, B, format_="markdown").splitlines()
    assert lines[4] == (
        "| System | Submitter | Avail. | Accelerators | Minutes | Speed | Speed per accelerator |"
        " Speed per node | Per second | Per second /accelerator | Per second /node |"
    )
    assert lines[6] == (
        "| dgx | Other | space | 64 | 10.000 (unverified) | 2.00x | 0.25x | 2.00x | 2.3M |"
        " 36,651 | 2.3M |"
    )
