"""``mlperf-pkg review``: a round for its reviewers."""

from __future__ import annotations

from typing import Any

import click

from mlperf_pkg.cli.group import LazyGroup
from mlperf_pkg.cli.review_round import command as review_round

COMMANDS: dict[str, str] = {
    "previews": "mlperf_pkg.cli.review_previews",
    "resubmitted": "mlperf_pkg.cli.review_resubmitted",
}


class _ReviewGroup(LazyGroup):
    """A group whose first argument, if it is not the name of a command, is a round to review."""

    default: click.Command = review_round

    def make_context(
        self,
        info_name: str | None,
        args: list[str],
        parent: click.Context | None = None,
        **extra: Any,
    ) -> click.Context:
        """Return the context of the round's command unless a command is named."""
        if args and args[0] in COMMANDS:
            return super().make_context(info_name, args, parent, **extra)
        return self.default.make_context(info_name, args, parent, **extra)


@click.group(name="review", cls=_ReviewGroup, modules=COMMANDS, help=review_round.help)
def command() -> None:
    """Review a round, or do what else a review requires."""
