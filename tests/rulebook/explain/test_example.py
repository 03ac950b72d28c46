"""Example lines: each is read, and passes the rule it is an example of."""

from io import BytesIO

from mlperf_pkg.findings import Finding
from mlperf_pkg.log.reader import LogReader
from mlperf_pkg.rulebook.explain import example, histories, joined, rulebook_codes
from mlperf_pkg.rulebook.load import load_round


def test_examples_are_records_and_only_rules_about_several_have_none() -> None:
    findings: list[Finding] = []
    for code, history in ((c, item) for c in rulebook_codes() for item in histories(c)):
        for rule, until in ((span.rule, span.until) for span in history.spans):
            if line := example(rule, load_round(history.usage, until)):
                (record,) = LogReader(BytesIO(line.encode()), code, findings.append)
                assert record, code
                assert record.key == rule.key, code
            else:
                relates = "formula" in (rule.reaches or {}) or "same_as" in rule.constraints
                assert rule.formula or relates, code
    assert findings == []


def test_examples() -> None:
    for code, part in [
        ("RUN103", '"value": "closed"'),
        ("RUN109", '"metadata": {"status": "success"}'),
        ("MRCNN110", '"value": {"BBOX": 0.377, "SEGM": 0.339}'),
        ("RNNT101", '"metadata": {"tensor": "dec_rnn"}'),
        ("CAM107", '"value": [1, 1]'),
        ("RUN124", '"value": "bert"'),
        ("RUN106", '"event_type": "INTERVAL_START", "key": "init_start", "value": null'),
    ]:
        history = histories(code)[0]
        line = example(history.spans[-1].rule, load_round(history.usage, history.spans[-1].until))
        assert line
        assert line.startswith(":::MLLOG {")
        assert part in line


def test_an_example_of_what_is_joined_is_the_records_that_runs_log() -> None:
    """Whether or not the rule names what they are joined by."""
    for code in ["SD109", "SD202"]:
        (history,) = histories(code)
        span = history.spans[-1]
        lines = example(span.rule, load_round("training", span.until), joined(history, span))
        assert lines
        logged = [line.partition('"key": ')[2] for line in lines.splitlines()]
        for record, metric in zip(logged, ("FID", "CLIP"), strict=True):
            assert record.startswith('"eval_accuracy", "value": ')
            assert record.endswith(f'"metadata": {{"metric": "{metric}", "samples_count": 1}}}}')
