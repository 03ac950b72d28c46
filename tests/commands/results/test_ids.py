"""Private ids: permanent, unique, and those of the official summarizer."""

import json
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mlperf_logging.result_summarizer import result_summarizer

from mlperf_pkg.commands.results import systems
from mlperf_pkg.commands.results.systems import PrivateIds, read_ids
from mlperf_pkg.errors import UserError
from tests.helpers.examples import examples

DESCRIPTION = {name: name for name in systems._HASHED}
EMPTY = PrivateIds(Path("none"), {})


def system(key: str, description: Mapping[str, Any] = {}, own: str | None = None) -> Any:
    private_id = json.dumps({"private_id": own}) if own else None
    return SimpleNamespace(
        key=key,
        name=key.rpartition("/")[2],
        description=description,
        folder=SimpleNamespace(private_id=private_id),
    )


def ids_of(ids: PrivateIds) -> dict[str, str]:
    return {key: ids[key] for key in ids.entries}


def test_they_are_those_of_the_official_summarizer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(result_summarizer, "_hashed_strings", set())
    variants = {
        "ACME/dgx": DESCRIPTION,
        "ACME/dgx2": DESCRIPTION,  # the same text: the summarizer adds the name of the system
        "ACME/pod": {**DESCRIPTION, "number_of_nodes": "4"},
        "Müller/dgx": {**DESCRIPTION, "submitter": "Müller"},
    }
    official = {
        key: result_summarizer._get_id_from_sysinfo(description, key.rpartition("/")[2])
        for key, description in variants.items()
    }
    own = [system(key, value) for key, value in variants.items()]
    assert ids_of(EMPTY.extended(own)) == official
    assert ids_of(EMPTY.extended(reversed(own))) == official


ROWS = st.lists(
    st.builds(
        system,
        st.sampled_from([f"{submitter}/{system}" for submitter in "AB" for system in "abcd"]),
        st.sampled_from([{}, {"division": ""}, {"division": "one"}, {"division": "two"}]),
        st.sampled_from([None, None, "red-oak", "blue-elm"]),
    ),
    unique_by=lambda row: row.key,
)


@examples(60)
@given(st.lists(ROWS, max_size=6))
def test_whatever_is_added_or_withdrawn_ids_stay_and_differ(
    tmp_path_factory: pytest.TempPathFactory, rounds: list[list[Any]]
) -> None:
    file = tmp_path_factory.mktemp("ids") / "privateid.json"
    states: list[dict[str, str]] = [{}]
    for rows in rounds:
        read_ids(file).extended(rows).write()
        states.append(ids_of(read_ids(file)))
    keys = [{row.key for row in rows} for rows in rounds]
    assert all(new <= state.keys() for new, state in zip(keys, states[1:], strict=True))
    assert all(before.items() <= after.items() for before, after in pairwise(states))
    assert all(len({*state.values()}) == len(state) for state in states)


@given(ROWS, st.randoms())
def test_the_order_of_rows_does_not_matter(rows: list[Any], random: Any) -> None:
    ids = ids_of(EMPTY.extended(rows))
    random.shuffle(rows)
    assert ids_of(EMPTY.extended(rows)) == ids


def test_an_id_of_the_tree_is_taken_if_no_other_row_has_it() -> None:
    ids = EMPTY.extended([system("A/a", own="red-oak"), system("A/b", own="red-oak")])
    assert ids_of(ids) == {"A/a": "red-oak", **ids_of(EMPTY.extended([system("A/b")]))}
    alike = EMPTY.extended([system(f"{submitter}/a", DESCRIPTION) for submitter in "ABC"])
    assert len({*ids_of(alike).values()}) == 3


def test_the_file_has_the_form_of_the_official_one_and_keeps_other_fields(tmp_path: Path) -> None:
    file, old = tmp_path / "privateid.json", {"A/a": {"private_id": "x", "by": "chair"}}
    file.write_text(json.dumps(old), "utf-8")
    read_ids(file).extended([system("A/b", own="red-oak")]).write()
    assert json.loads(file.read_text("utf-8")) == {**old, "A/b": {"private_id": "red-oak"}}


def test_an_undecodable_name_is_kept(tmp_path: Path) -> None:
    ids = read_ids(tmp_path / "ids").extended([system("A/\udcff")])
    ids.write()
    assert ids_of(read_ids(ids.path)) == ids_of(ids)


X = '{"private_id": "x"}'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "ids:1: found the end of the text; expected a value"),
        ("[]", "ids:1: expected private ids by row"),
        ('{"A/a": "x"}', "ids:1: expected private ids by row"),
        ('{"A/a": {"private_id": 7}}', "ids:1: expected private ids by row"),
        ('{"A/a": {"private_id": " "}}', "ids:1: expected private ids by row"),
        ('{"A/a": {"private_id": "\\u001b[31m"}}', "ids:1: expected private ids by row"),
        (f'{{"A/a": {X},\n "A/b": {X}}}', "ids:2: A/b has the private id of A/a"),
        (
            f'{{"A/a": {X},\n "A/a": {X}}}',
            "ids:2: the key 'A/a' is repeated (it is already on line 1)",
        ),
    ],
)
def test_another_file_is_refused(text: str, message: str, tmp_path: Path) -> None:
    file = tmp_path / "ids"
    file.write_text(text, "utf-8")
    with pytest.raises(UserError) as raised:
        read_ids(file)
    assert message in str(raised.value)
    assert file.read_text("utf-8") == text


def test_a_file_that_cannot_be_used_is_left_alone(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="cannot be read"):
        read_ids(tmp_path)
    none = read_ids(tmp_path / "ids")
    with pytest.raises(UserError, match="bytes of private ids"):  # could not be read again
        none.extended([system("A/" + "a" * 2_000_000)]).write()
    assert not none.path.exists()
    none.path.write_text("{}", "utf-8")  # in the meantime
    with pytest.raises(UserError, match="exists already"):
        none.extended([system("A/a")]).write()
