"""A key that is logged under another name is named together with the one that is missing."""

import pytest

from mlperf_pkg.findings import Finding
from mlperf_pkg.infra.source import Source
from mlperf_pkg.run.counts import key_instead_of
from mlperf_pkg.run.model import LogFile
from mlperf_pkg.run.reading import read_run
from tests.helpers.logs import good_log, without

BERT = good_log("bert", round_="2.1")
MISSING = "opt_lamb_epsilon"
RENAMED = BERT.replace(b'"opt_lamb_epsilon"', b'"opt_epsilon"')


def missing(log: bytes) -> list[Finding]:
    run = read_run(LogFile(Source("log.txt", log), round="2.1"))
    return [finding for finding in run.findings if finding.message.startswith(MISSING)]


@pytest.mark.parametrize(
    ("log", "message", "instead"),
    [
        pytest.param(BERT, None, None, id="logged"),
        pytest.param(
            without(BERT, MISSING), f"{MISSING} is not logged; expected once", None, id="not logged"
        ),
        pytest.param(
            RENAMED,
            f"{MISSING} is not logged, but opt_epsilon is; expected {MISSING} once",
            "opt_epsilon",
            id="under another name",
        ),
    ],
)
def test_the_key_in_its_place(log: bytes, message: str | None, instead: str | None) -> None:
    findings = missing(log)
    assert [(finding.text, finding.found) for finding in findings] == (
        [(message, instead)] if message else []
    )


def test_the_hint_names_both_keys() -> None:
    (finding,) = missing(RENAMED)
    hint = "if opt_epsilon means the same, log its value under the key opt_lamb_epsilon"
    assert finding.hint == hint


@pytest.mark.parametrize(
    ("expected", "logged", "instead"),
    [
        pytest.param("opt_lamb_epsilon", ["opt_epsilon"], "opt_epsilon", id="a word less"),
        pytest.param("opt_epsilon", ["opt_adam_epsilon"], "opt_adam_epsilon", id="a word more"),
        pytest.param("opt_adamw_beta_1", ["opt_adam_beta_1"], "opt_adam_beta_1", id="near"),
        pytest.param("opt_lamb_beta_1", ["opt_beta_2", "opt_beta_1"], "opt_beta_1", id="number"),
        pytest.param("opt_base_learning_rate", ["opt_base_lr"], "opt_base_lr", id="lr"),
        pytest.param("eval_samples", ["EVAL_SAMPLES"], "EVAL_SAMPLES", id="capitals"),
        pytest.param("seed", ["speed", "random"], None, id="other words"),
        pytest.param("train_samples", ["samples"], None, id="one word"),
        pytest.param("opt_lamb_beta_1", ["opt_lamb_beta_2"], None, id="another number"),
        pytest.param(
            "opt_learning_rate_decay_steps", ["opt_learning_rate_decay_power"], None, id="noun"
        ),
        pytest.param("opt_epsilon", ["opt_{x}_epsilon"], None, id="not a name"),
        pytest.param("opt_epsilon", [f"opt_{'x' * 80}_epsilon"], None, id="a long text"),
    ],
)
def test_which_key_is_alike(expected: str, logged: list[str], instead: str | None) -> None:
    assert key_instead_of(expected, logged) == instead
