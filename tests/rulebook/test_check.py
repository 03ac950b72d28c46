"""What a check of a rulebook refuses: each mistake in a folder of one's own, with file and line."""

import re
from collections.abc import Mapping
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlperf_pkg.errors import RulebookError
from mlperf_pkg.infra.resources import data_folder, rules_read_from
from mlperf_pkg.rulebook.check import check_rulebook
from mlperf_pkg.rulebook.compile import compile_rulebook, compiled
from mlperf_pkg.rulebook.documents import COMPILED, rounds, usages
from mlperf_pkg.rulebook.load import load_benchmark, load_round
from tests.helpers.examples import examples
from tests.helpers.own_rules import BENCHMARK, BENCHMARK_FILE, FILES, ROUND, ROUND_FILE, written


def refusal(folder: Path) -> list[str]:
    """The lines of the message, in which the folder is ``rules``."""
    with pytest.raises(RulebookError) as caught:
        check_rulebook(folder)
    return str(caught.value).replace(folder.as_posix(), "rules").splitlines()


def test_a_round_and_a_benchmark_that_are_right(tmp_path: Path) -> None:
    check_rulebook(written(tmp_path, FILES))
    with rules_read_from(tmp_path):
        assert rounds("training")[-1] == "99.0"
        assert load_round("training", "99.0").benchmarks == ("flux1", "ownb")
        ownb = load_benchmark("training", "99.0", "ownb")
    assert ownb
    rule = ownb.sections["closed"]["opt_learning_rate_warmup_steps"][0]
    assert rule.formula == "value >= (math.ceil(1000.0 / global_batch_size))"
    assert rule.written == "value >= step, where step = math.ceil(1000.0 / global_batch_size)"
    assert "99.0" not in rounds("training")


def test_the_rulebook_is_right() -> None:
    check_rulebook(data_folder("rules"))


# ---- one file -----------------------------------------------------------------------------

OPT_NAME = "{code: OWNB102, occurs: once, equals: adamw}"

IN_THE_BENCHMARK = [
    # An unknown name.
    (
        "equals: adamw",
        "equal: adamw",
        "11: unknown constraint 'equal' of OWNB102; did you mean 'equals'?",
    ),
    ("target:", "targets:", "3: unknown field 'targets' of the file; did you mean 'target'?"),
    ("equals: adamw", "occurs: {at_mots: 1}", "11: 'occurs' is given twice, first on line 11"),
    (
        "  opt_name:",
        "  Opt_Name:",
        "11: 'Opt_Name' is not a valid name: expected lower-case letters, digits and underscores",
    ),
    # A source that does not exist.
    (
        "Hyperparameters",
        "Hyperparameter",
        (
            "5: the file cites 'training_rules, Hyperparameter': 'Hyperparameter' is not a"
            " heading of training_rules; did you mean 'Hyperparameters'?"
        ),
    ),
    (
        "occurs: once, equals: adamw",
        'source: "training_rules, run results"',
        (
            "11: OWNB102 cites 'training_rules, run results': 'run results' is not a heading"
            " of training_rules; did you mean 'Run Results'?"
        ),
    ),
    (
        "define:",
        'sources: {"mlperf-logging, ruleset 99": [seed]}\ndefine:',
        (
            "6: sources cites 'mlperf-logging, ruleset 99': 'ruleset 99' is not a heading of"
            " mlperf-logging"
        ),
    ),
    # A field that lacks.
    ("{code: OWNB102, occurs", "{occurs", "11: opt_name has no code"),
    ("{required: 10, drop: 1}", "{required: 10}", "2: runs has no drop"),
    ('source: "training_rules, Hyperparameters"\n', "", "9: OWNB101 has no source"),
    ("target: {at_least: 0.75}\n", "", "1: ownb of round 99.0 has no target"),
    # A wrong value.
    ("required: 10", "required: ten", '2: runs.required is "ten"; expected a whole number'),
    (
        "OWNB102",
        "ownb102",
        (
            '11: code of ownb102 is "ownb102"; expected capital letters and a number from 101'
            " on, such as BERT101"
        ),
    ),
    (
        "equals: adamw",
        "basis: rule",
        (
            '11: basis of OWNB102 is "rule"; expected one of both, official, rules, advice;'
            " did you mean 'rules'?"
        ),
    ),
    (
        "occurs: once, equals: adamw",
        "occurs: {at_least: 1, at_most: 2}",
        '11: occurs of OWNB102 is {"at_least": 1, "at_most": 2}; expected at most 1 entry',
    ),
    (OPT_NAME, "once", '11: opt_name is "once"; expected a rule, a list of rules, or null'),
    (
        "metadata: [samples_count], reaches",
        "metadata: samples_count, reaches",
        '14: metadata of OWNB104 is "samples_count"; expected a list',
    ),
    (
        "equals: adamw",
        "one_of: []",
        "11: one_of of OWNB102 is []; expected something that is not empty",
    ),
    ("equals: adamw", "first: false", "11: first of OWNB102 is false; expected the value true"),
    ("equals: adamw", "tensors: ownb", "11: tensors.yaml has no tensors of 'ownb'"),
    # YAML.
    (
        OPT_NAME,
        OPT_NAME + "\n  opt_name: {code: OWNB109}",
        "12: 'opt_name' is given twice, first on line 11",
    ),
    (OPT_NAME, "{code: OWNB102", "12: not valid YAML: did not find expected ',' or '}'"),
    (BENCHMARK, "- a list\n", "1: not a mapping"),
    # A formula.
    (
        "value >= step",
        "value >=",
        "12: formula of OWNB103 is not valid: it cannot be read (invalid syntax)",
    ),
    (
        "value >= step",
        "value >= 2 * step",
        "12: formula of OWNB103 is not valid: 2 is a whole number; write 2.0",
    ),
    (
        "value >= step",
        "step > 5.0 ? value > 1.0 : value > 2.0",
        "12: formula of OWNB103 cannot be put into words; add the field needed, which says what"
        " the rule expects",
    ),
    (
        "value >= step",
        "value >= step * global_batchsize",
        (
            "12: formula of OWNB103 uses 'global_batchsize', which is not a key of ownb; did"
            " you mean 'global_batch_size'?"
        ),
    ),
    (
        "equals: adamw",
        "same_as: opt_nam",
        (
            "11: same_as of OWNB102 uses 'opt_nam', which is not a key of ownb; did you mean"
            " 'opt_name'?"
        ),
    ),
    (
        "occurs: once, equals: adamw",
        "occurs: {or: opt_nam}",
        "11: occurs of OWNB102 uses 'opt_nam', which is not a key of ownb",
    ),
    (
        "{at_least: 0.75}",
        '{formula: "value > opt_nam"}',
        "14: reaches of OWNB104 uses 'opt_nam', which is not a key of ownb",
    ),
    # A definition.
    ("step:", "stop:", "7: no formula of this file uses 'stop'"),
    ("step: ", "value: ", "7: define must not use the name 'value', which formulas already know"),
    (
        "define:",
        'define:\n  pair: "2.0 * step"',
        "7: 'pair' uses 'step', which is not defined before it",
    ),
    ("step: ", "seeds: ", "7: define must not use the name 'seeds', which is a key"),
    # A code.
    (
        "OWNB102",
        "OWNB101",
        (
            "11: code OWNB101 of opt_name of Closed ownb is already used by global_batch_size of"
            " Closed ownb (rules/training/99.0/ownb.yaml:10)"
        ),
    ),
    ("OWNB105", "OWNB104", "15: code OWNB104 is already used by another rule of eval_accuracy"),
    (
        "\nopen:",
        "\nvariants:\n  opt_name: {adamw: {epsilon: {code: OWNB101, occurs: once}}}\nopen:",
        (
            "18: code OWNB101 of epsilon of Closed ownb is already used by global_batch_size of"
            " Closed ownb (rules/training/99.0/ownb.yaml:10)"
        ),
    ),
    (
        "OWNB201",
        "OWNB104",
        (
            "18: code OWNB104 of eval_accuracy of Open ownb is already used by eval_accuracy of"
            " Closed ownb (rules/training/99.0/ownb.yaml:14)"
        ),
    ),
    (
        "OWNB102",
        "LLAMAS103",
        (
            "11: code LLAMAS103 of opt_name of Closed ownb is already used by opt_name of Closed"
            " llama31_8b (rules/training/5.1/llama31_8b.yaml:"
        ),
    ),
    (
        "OWNB102",
        "RUN110",
        (
            "11: code RUN110 of opt_name of Closed ownb is already used by block_start of every"
            " run (rules/training/0.7/round.yaml:"
        ),
    ),
    ("OWNB102", "SET101", "11: code SET101 is in findings.yaml; expected an unused code"),
    # Another benchmark.
    (
        "runs:",
        "like: flux\nruns:",
        "2: ownb is like flux, which has no rules; did you mean 'flux1'?",
    ),
]


@pytest.mark.parametrize(("old", "new", "problem"), IN_THE_BENCHMARK)
def test_a_mistake_in_a_benchmark(old: str, new: str, problem: str, tmp_path: Path) -> None:
    assert old in BENCHMARK
    changed = BENCHMARK.replace(old, new, 1)
    if old == "step: ":  # wherever it is used
        changed = re.sub(r"\bstep\b", new.removesuffix(": "), BENCHMARK)
    assert_refused(tmp_path, BENCHMARK_FILE, changed, problem)


def assert_refused(folder: Path, file: str, text: str, problem: str) -> None:
    messages = refusal(written(folder, {**FILES, file: text}))
    assert any(m.startswith(f"rules/{file}:{problem}") for m in messages), messages


IN_THE_ROUND = [
    ('"99.0"', "99.0", '1: round is 99.0; expected a round in quotation marks, such as "6.1"'),
    ('"99.0"', '"6.1"', "1: round is 6.1; expected 99.0, as in the name of the folder"),
    ('extends: "6.1"', 'extends: "6.9"', "2: round 99.0 extends 6.9, which does not exist"),
    ('extends: "6.1"', 'extends: "99.0"', "2: round 99.0 extends 99.0; expected an earlier round"),
    ('extends: "6.1"\n', "", "1: round of round 99.0 has no normalised"),
    ("99.0.0", "6.1.0", "3: ruleset is 6.1.0; expected a ruleset such as 99.0.0"),
    (
        "2099-05-14",
        "14.5.2027",
        '4: submission_date is "14.5.2027"; expected a date such as 2026-10-09',
    ),
    (
        "[flux1, ownb]",
        "[flux1, ownb, ownb]",
        '5: benchmarks is ["flux1", "ownb", "ownb"]; expected no entry twice',
    ),
    (
        "[flux1, ownb]",
        "[flux1, ownb, gpt2]",
        "5: benchmark gpt2 has no rules; expected a file gpt2.yaml",
    ),
    (
        "benchmarks:",
        "benchmark:",
        "5: unknown field 'benchmark' of the file; did you mean 'benchmarks'?",
    ),
    (
        "seeds: {code: RUN901",
        'seeds: {code: RUN901, formula: "value > seed"',
        "7: formula of RUN901 uses 'seed', which is not a key of round 99.0",
    ),
    (
        "RUN901",
        "RUN110",
        (
            "7: code RUN110 of seeds of every run is already used by block_start of every run"
            " (rules/training/0.7/round.yaml:"
        ),
    ),
]


@pytest.mark.parametrize(("old", "new", "problem"), IN_THE_ROUND)
def test_a_mistake_in_a_round(old: str, new: str, problem: str, tmp_path: Path) -> None:
    assert old in ROUND
    assert_refused(tmp_path, ROUND_FILE, ROUND.replace(old, new, 1), problem)


# ---- names of files -----------------------------------------------------------------------

MISNAMED = [
    (
        BENCHMARK_FILE,
        "training/99.0/ownbb.yaml",
        (
            "training/99.0/ownbb.yaml:1: the file is misnamed, as ownbb is not a benchmark of"
            " round 99.0; did you mean 'ownb'?"
        ),
    ),
    (
        BENCHMARK_FILE,
        "training/99.0/ownbb.yaml",
        (
            "training/99.0/round.yaml:5: benchmark ownb has no rules; expected a file ownb.yaml;"
            " did you mean 'ownbb'?"
        ),
    ),
    (
        BENCHMARK_FILE,
        "training/99.0/ownb.yml",
        "training/99.0/ownb.yml:1: the file is misnamed; expected the name ownb.yaml",
    ),
    (
        BENCHMARK_FILE,
        "training/ownb.yaml",
        "training/ownb.yaml:1: the file is misplaced; expected at <usage>/<round>/<benchmark>.yaml",
    ),
    (
        BENCHMARK_FILE,
        "tensor.yaml",
        "tensor.yaml:1: the file is misnamed, as rules have no file of this name; did you mean"
        " 'tensors.yaml'?",
    ),
    (
        ROUND_FILE,
        "training/99.0/rounds.yaml",
        "training/99.0/ownb.yaml:1: round 99.0 has no round.yaml; is rounds.yaml misnamed?",
    ),
    (
        BENCHMARK_FILE,
        "traning/99.0/ownb.yaml",
        "traning/99.0/ownb.yaml:1: the file is misplaced, as there is no usage 'traning'; did you"
        " mean 'training'?",
    ),
    (
        BENCHMARK_FILE,
        "training/v99.0/ownb.yaml",
        (
            "training/v99.0/ownb.yaml:1: the file is in the folder training/v99.0; expected a"
            " folder such as training/7.0"
        ),
    ),
]


@pytest.mark.parametrize(("right", "wrong", "problem"), MISNAMED)
def test_a_misnamed_file(tmp_path: Path, right: str, wrong: str, problem: str) -> None:
    written(tmp_path, FILES)
    (tmp_path / wrong).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / right).rename(tmp_path / wrong)
    assert f"rules/{problem}" in refusal(tmp_path)


def test_all_mistakes_of_a_kind_are_reported(tmp_path: Path) -> None:
    changed = BENCHMARK.replace("equals", "equal").replace("above", "over")
    round_ = ROUND.replace("occurs", "occur")
    written(tmp_path, {**FILES, BENCHMARK_FILE: changed, ROUND_FILE: round_})
    places = [message.partition(": ")[0] for message in refusal(tmp_path)]
    assert places == [
        f"rules/training/99.0/{n}" for n in ("ownb.yaml:10", "ownb.yaml:11", "round.yaml:7")
    ]


def test_benchmarks_that_are_like_each_other(tmp_path: Path) -> None:
    other = {"training/99.0/flux1.yaml": "like: ownb"}
    messages = refusal(written(tmp_path, {**FILES, BENCHMARK_FILE: "like: flux1", **other}))
    assert "rules/training/99.0/ownb.yaml:1: ownb is like flux1, which is like ownb" in messages


def test_the_same_code_in_a_benchmark_that_is_like_another(tmp_path: Path) -> None:
    renamed = "like: flux1\nclosed:\n  global_batch_size: {code: FLUX101, above: 0}"
    check_rulebook(written(tmp_path, {**FILES, BENCHMARK_FILE: renamed}))


def test_a_rulebook_is_compiled_again(tmp_path: Path) -> None:
    folder = written(tmp_path, FILES)
    (folder / COMPILED).write_bytes(b"of another day")
    compile_rulebook(folder)
    assert (folder / COMPILED).read_bytes() == compiled(folder)


@pytest.mark.parametrize("files", [{}, {"99.0/round.yaml": ROUND}, {"notes.txt": "-"}])
def test_what_is_not_a_rulebook(tmp_path: Path, files: Mapping[str, str]) -> None:
    (message,) = refusal(written(tmp_path, files))
    assert message == "rules: not a rulebook, which has files such as training/7.0/round.yaml"


# ---- any edit -----------------------------------------------------------------------------

WORDS = sorted({*re.findall(r"\w+|[{}\[\]:,]", BENCHMARK + ROUND), "null", "0.5", "- ", "&a", "*a"})
PROBLEM = re.compile(r"rules/\S+?\.yaml(:\d+)?: .+")


@st.composite
def edited(draw: st.DrawFn) -> dict[str, str]:
    """The files with some words replaced by others of theirs."""
    files = dict(FILES)
    for _ in range(draw(st.integers(1, 3))):
        name = draw(st.sampled_from(sorted(files)))
        parts = re.split(r"(\w+|[{}\[\]:,])", files[name])
        index = draw(st.integers(0, len(parts) - 1))
        parts[index] = draw(st.sampled_from(["", *WORDS]))
        files[name] = "".join(parts)
    return files


@examples(100)
@given(files=edited())
def test_any_edit_passes_or_is_reported_with_its_file(files: dict[str, str]) -> None:
    with TemporaryDirectory() as name:
        folder = written(Path(name), files)
        try:
            check_rulebook(folder)
        except RulebookError as error:
            lines = str(error).replace(folder.as_posix(), "rules").splitlines()
            assert [line for line in lines if not PROBLEM.fullmatch(line)] == []
        else:
            with rules_read_from(folder):
                for usage, benchmark in product(usages(), ("flux1", "ownb")):
                    for round_name in rounds(usage)[-1:]:
                        load_benchmark(usage, round_name, benchmark)
