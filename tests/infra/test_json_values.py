"""Which JSON values are numbers, as Python reads them and for figures."""

import json
import math
import pickle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlperf_pkg.infra.json_values import (
    MAX_DEPTH,
    JsonSyntaxError,
    digits,
    is_number,
    read_json,
    to_finite,
    to_float,
)
from mlperf_pkg.infra.text import FROM_UTF_16

NESTED = b"""{
\t"a": 1,

\t"b": {"c": [
\t\ttrue,
\t\t{"d": ""}
\t], "e":
\t\tnull}
}
"""


@pytest.mark.parametrize("line_break", [b"\n", b"\r\n"])
@pytest.mark.parametrize(
    ("path", "line"),
    [
        ((), 1),
        (("b", "c", 0), 5),
        (("b", "c", 1, "d"), 6),
        (("b", "e"), 7),
        (("b", "x", "y"), 4),
        (("a", "of", "nothing"), 2),
    ],
)
def test_lines(line_break: bytes, path: tuple[str | int, ...], line: int) -> None:
    assert read_json(NESTED.replace(b"\n", line_break)).line(path) == line


@pytest.mark.parametrize(
    ("data", "line"),
    [
        (b'{"x": "a",\n"a": 1}', 2),
        (b'{"x":\n{"a": 1}}', 1),
        (b'{"x": "a",\n"a" : 1}', 2),
        (b'["x",\n"a"]', 1),
    ],
)
def test_a_field_has_the_line_of_its_own_key(data: bytes, line: int) -> None:
    assert read_json(data).line(("a",)) == line


PROBLEMS = [  # bytes, value, (line, kind) of each problem
    (b'\xef\xbb\xbf{"a": 1}', {"a": 1}, [(1, "bom")]),
    (b'{"a": 1,\n"b": 2,\n"a": 3}', {"a": 3, "b": 2}, [(3, "duplicate_key")]),
    (b'{"a": 1,\n"\\u0061": 2}', {"a": 2}, [(2, "duplicate_key")]),
    (b'{"a":\n"Z\xfcrich"}', {"a": "Zürich"}, [(2, "encoding")]),
    (b'[1,\n-Infinity,\n"NaN"]', [1, -math.inf, "NaN"], [(2, "not_finite")]),
    (b'{"}": "{", "\\"": ["]"]}', {"}": "{", '"': ["]"]}, []),
]


@pytest.mark.parametrize(("data", "value", "problems"), PROBLEMS)
def test_problems(data: bytes, value: Any, problems: list[tuple[int, str]]) -> None:
    document = read_json(data)
    assert document.value == value
    assert [(problem.line, problem.kind) for problem in document.problems] == problems


def test_a_duplicate_names_its_first_line_and_the_last_one_counts() -> None:
    document = read_json(b'{"a":\n{"b": 1},\n"a": {\n"c": 2}}')
    assert document.value == {"a": {"c": 2}}
    assert document.problems[0].message == "the key 'a' is repeated (it is already on line 1)"
    assert [document.line(path) for path in [("a",), ("a", "c"), ("a", "b")]] == [3, 4, 3]


ERRORS = [  # bytes, line, message
    (b"", 1, "found the end of the text; expected a value"),
    (b'{"a": 1,\n\n}', 1, "found a comma before '}'; expected none"),
    (b'{"a": 1\n"b": 2}', 2, "found '\"b\"'; expected ',' or the closing bracket"),
    (b'{"a"\n1}', 2, "found '1'; expected ':' between a field name and its value"),
    (b"{'a': 1}", 1, "found \"'a'\"; expected a field name in double quotes"),
    (b'{"a": True}', 1, "found 'True'; expected a value"),
    (b"{} // end", 1, "found '//'; expected nothing after the end of the document"),
    (b'{"a": "b}', 1, "found '\"b}'; expected a closing double quote"),
    (b'{"a": "b\n"}', 1, "found '\\n'; expected an escape (\\n, \\t) within a string"),
    (b'"\\x"', 1, "found '\\\\x'; expected one of the escapes of JSON"),
    (b"\xef\xbb\xbf\xef\xbb\xbf{}", 1, "found '\\ufeff'; expected JSON"),
    ("{}".encode("utf-16"), 1, f"the file is UTF-16 text; expected UTF-8 text: {FROM_UTF_16}"),
    (b"[1,\n" + b"1" * 5000 + b"]", 2, "found an integer of thousands of digits"),
    (b"[\n" * 300, MAX_DEPTH + 1, "values are nested too deeply; expected at most 200 levels"),
    (
        b"[" * 300 + b'"' + b'\\"' * 100_000,
        1,
        "values are nested too deeply; expected at most 200 levels",
    ),
]


@pytest.mark.parametrize(("data", "line", "message"), ERRORS)
def test_syntax_errors(data: bytes, line: int, message: str) -> None:
    with pytest.raises(JsonSyntaxError) as caught:
        read_json(data)
    assert (caught.value.line, caught.value.message) == (line, message)
    assert pickle.loads(pickle.dumps(caught.value)).args == (line, message)


def test_brackets_side_by_side_are_not_nesting() -> None:
    assert read_json(b"[" + b"[]," * 1000 + b"[[]]]").value == [*[[]] * 1000, [[]]]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=30,
)
INDENTS = st.sampled_from([None, 0, 1, 4, "\t"])


@given(JSON, INDENTS, st.booleans())
def test_value_is_that_of_json(value: Any, indent: int | str | None, escaped: bool) -> None:
    data = json.dumps(value, indent=indent, ensure_ascii=escaped).encode()
    assert read_json(data).value == json.loads(data)


def renamed(value: Any, path: tuple[str | int, ...], keys: dict[str, tuple[Any, ...]]) -> Any:
    """The value with keys that occur once in the whole document; ``keys`` gets their paths."""
    if isinstance(value, list):
        return [renamed(inner, (*path, index), keys) for index, inner in enumerate(value)]
    if not isinstance(value, dict):
        return value
    unique = {f"<key {len(keys)}.{number}>": inner for number, inner in enumerate(value.values())}
    keys.update({key: (*path, key) for key in unique})
    return {key: renamed(inner, (*path, key), keys) for key, inner in unique.items()}


@given(JSON, INDENTS)
def test_lines_are_where_the_keys_are(value: Any, indent: int | str | None) -> None:
    keys: dict[str, tuple[Any, ...]] = {}
    text = json.dumps(renamed(value, (), keys), indent=indent)
    document = read_json(text.encode())
    assert [
        (key, path)
        for key, path in keys.items()
        if document.line(path) != text.count("\n", 0, text.index(f'"{key}"')) + 1
    ] == []
    assert document.problems == () or "NaN" in text or "Infinity" in text


@given(st.binary())
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    try:
        read_json(data)
    except JsonSyntaxError as error:
        assert error.line in range(1, data.count(b"\n") + 2)  # noqa: PT017 - few are errors


def test_numbers() -> None:
    rows: list[tuple[Any, float | None, float | None]] = [
        (1, 1.0, 1.0),
        (True, 1.0, None),
        (-math.inf, -math.inf, None),
        (10**400, math.inf, None),
        (-(10**400), -math.inf, None),
        ("1", None, None),
    ]
    assert [(to_float(value), to_finite(value)) for value, as_python, finite in rows] == [
        (as_python, finite) for value, as_python, finite in rows
    ]
    assert [
        (value, as_python, finite)
        for value, as_python, finite in rows
        if is_number(value) is not (as_python is not None)
    ] == []
    assert (is_number(math.nan), to_float(math.nan) is None, to_finite(math.nan)) == (1, 0, None)


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (1199984.0, "1199984"),
        (-3.0, "-3"),
        (1e15, "1e+15"),
        (0.00123456789, "0.00123457"),
        (2.5, "2.5"),
        (1e-05, "1e-05"),
    ],
)
def test_digits(number: float, text: str) -> None:
    assert digits(number) == text
