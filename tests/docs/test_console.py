"""Pages are read and compared as they are meant."""

from tests.helpers.console import prints, steps


def test_steps() -> None:
    text = "```console\n$ one \\\n>   more\na\nb\n$ two\n```\n```sh\n$ no\n```\n"
    assert list(steps(text)) == [("one \\\n  more", "a\nb\n"), ("two", "")]


def test_prints() -> None:
    assert prints("a 1.5 b\nx\ny\nb\n", "a ... b\n...\nb\n")
    assert [
        (output, pattern)
        for output, pattern in (("a\nxb\n", "a\n...\nb\n"), ("a\nb\n", "a...b\n"), ("a\n", ""))
        if prints(output, pattern)
    ] == []
