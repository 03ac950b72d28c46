"""Pages are read and compared as they are meant."""

from tests.helpers.console import prints, steps


def test_steps() -> None:
    text = "```console\n$ one \\\n>   more\na\nb\n$ two\n```\n```sh\n$ no\n```\n"
    assert list(steps(text)) == [("one \\\n  more", "a\nb\n"), ("two", "")]


def test_prints() -> None:
    same = {
        "a 1.5 b\n": ("a 1.5 b\n", "a ... b\n"),
        "a\nx\ny\nb\n": ("a\n...\nb\n", "a\n...\n"),
        "a\nb\n": ("a\n...\nb\n",),
        "": ("",),
    }
    assert [(o, p) for o, patterns in same.items() for p in patterns if not prints(o, p)] == []
    for output, pattern in (("a\nxb\n", "a\n...\nb\n"), ("a\nb\n", "a...b\n"), ("a\n", "")):
        assert not prints(output, pattern)
