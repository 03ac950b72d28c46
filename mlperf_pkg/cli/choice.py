"""Options with a choice of words."""

from __future__ import annotations

from typing import Any

import click

from mlperf_pkg.infra.text import did_you_mean


class Choice(click.Choice):  # type: ignore[type-arg,unused-ignore] # generic only in newer versions
    """As ``click.Choice``, but a mistyped word is told the nearest one."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Take one of the words, or fail."""
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter as error:
            meant = did_you_mean(str(value), map(str, self.choices))
            self.fail(error.message.rstrip(".") + (meant or "."), param, ctx)
