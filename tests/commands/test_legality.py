"""Whether hyperparameters are legal: ``mlperf-pkg rules show BENCHMARK --set KEY=VALUE``."""

import json

import pytest
from click.testing import Result

from tests.helpers import program

END = "opt_learning_rate_decay_steps"
WARMUP = "opt_learning_rate_warmup_steps"


def asked(benchmark: str, *settings: str, **more: str) -> Result:
    """The answer for hyperparameters in one round."""
    options = [f"--set={setting}" for setting in settings]
    options += [f"--{name}={value}" for name, value in more.items()]
    return program.call("rules", "show", benchmark, *options)


YES = {
    "free": ("llama31_8b", "5.1", "closed", ("global_batch_size=48",)),
    "the only value": ("llama31_8b", "5.1", "closed", ("max_steps=1200000",)),
    "text": ("llama31_8b", "5.1", "closed", ("opt_name=adamw",)),
    "text in quotation marks": ("llama31_8b", "5.1", "closed", ('opt_name="adamw"',)),
    "a list": ("minigo", "0.7", "closed", ("lr_rates=[0.1, 0.01]", "lr_boundaries=[1]")),
    "a formula": ("llama31_8b", "5.1", "closed", (f"{END}=1199000", f"{WARMUP}=1000")),
    "in any order": ("llama31_8b", "5.1", "closed", (f"{WARMUP}=1000", f"{END}=1199000")),
    "a rule of an optimizer": ("resnet", "4.0", "closed", ("opt_name=lars", "lars_epsilon=0")),
    "only a warning": ("llama31_8b", "5.1", "closed", ("dropout=0.1",)),
    "freed in Open": ("llama31_8b", "5.1", "open", ("max_steps=5",)),
    "no points in Open": ("llama31_8b", "5.1", "open", ("global_batch_size=50000",)),
}


@pytest.mark.parametrize(("benchmark", "round_", "division", "settings"), YES.values(), ids=YES)
def test_yes(benchmark: str, round_: str, division: str, settings: tuple[str, ...]) -> None:
    answer = asked(benchmark, *settings, round=round_, division=division)
    assert (answer.exit_code, answer.stdout.count("\nLegal: yes\n")) == (0, 1), answer.output


OF_RULES = "no by the written rules, yes by the official checker"
OF_CHECKER = "yes by the written rules, no by the official checker"
NO = {
    "the only value": ("llama31_8b", ("max_steps=5",), "no", "LLAMAS117 max_steps is 5; expected"),
    "a type": (
        "llama31_8b",
        ("max_sequence_length=long",),
        "no",
        'is "long"; expected the number 8,192',
    ),
    "a formula": (
        "llama31_8b",
        (f"{END}=1199000", f"{WARMUP}=999"),
        "no",
        "expected 1,199,001 = 1,200,000 - 999",
    ),
    "no batch size": ("llama31_8b", ("global_batch_size=4.5",), OF_RULES, "RUN166"),
    "of the checker": (
        "flux1",
        ("global_batch_size=1000", "evaluation_frequency=263000"),
        OF_CHECKER,
        "FLUX102",
    ),
    "above all points": (
        "llama31_8b",
        ("global_batch_size=50000",),
        "no",
        "RCP101 global_batch_size is 50,000, larger than in all reference points; new",
    ),
    "a value that is missing": (
        "llama31_8b",
        (f"{END}=1199000",),
        "not decided",
        f"depends on {WARMUP}: add --set {WARMUP}=VALUE",
    ),
}


@pytest.mark.parametrize(("benchmark", "settings", "answer", "reason"), NO.values(), ids=NO)
def test_no_and_why(benchmark: str, settings: tuple[str, ...], answer: str, reason: str) -> None:
    result = asked(benchmark, *settings, round="5.1")
    assert (result.exit_code, result.stdout.count(f"\nLegal: {answer}\n")) == (1, 1), result.output
    assert reason in " ".join(result.stdout.split())


REFUSED = {
    "a typo": ("global_batchsize=4", "no hyperparameter 'global_batchsize'; did you mean global_"),
    "an event": ("run_start=4", "has no hyperparameter 'run_start'"),
    "no value": ("global_batch_size", "expected KEY=VALUE, such as global_batch_size=48"),
}


@pytest.mark.parametrize(("setting", "message"), REFUSED.values(), ids=REFUSED)
def test_refused(setting: str, message: str) -> None:
    result = asked("llama31_8b", setting, round="5.1")
    assert (result.exit_code, result.stdout) == (2, "")
    assert message in result.stderr


def test_a_key_of_an_optimizer_that_is_not_given() -> None:
    result = asked("resnet", "lars_epsilon=0")
    assert "without --set opt_name has no hyperparameter 'lars_epsilon'" in result.stderr


def test_a_smaller_batch_size_than_those_of_all_points() -> None:
    result = asked("llama31_8b", "global_batch_size=8", round="5.1")
    assert result.exit_code == 0
    assert "uses the point for the smallest, 16" in " ".join(result.stdout.split())
    assert "hint: mlperf-pkg rcp show llama31_8b --round 5.1 lists" in result.stdout


def test_json() -> None:
    result = asked("llama31_8b", "max_steps=5", "opt_adamw_beta_1=0.9", round="5.1", format="json")
    answer = json.loads(result.stdout)
    (finding,) = answer.pop("findings")
    assert answer == {
        "format": "mlperf-pkg/rules-settings/1",
        "round": "5.1",
        "benchmark": "llama31_8b",
        "division": "closed",
        "settings": {"max_steps": 5, "opt_adamw_beta_1": 0.9},
        "verdicts": {"official": "fail", "rules": "fail"},
    }
    assert (finding["code"], finding["line"], finding["found"]) == ("LLAMAS117", None, 5)
