"""The types of arguments and options, beyond those of click."""

from __future__ import annotations

from typing import Any

import click

from mlperf_pkg.infra.text import did_you_mean


class Choice(click.Choice):  # type: ignore[type-arg,unused-ignore] # generic only in newer versions
    """A ``click.Choice`` whose error message suggests the nearest choice."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return one of the choices, or fail with a usage error."""
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter as error:
            suggestion = did_you_mean(str(value), map(str, self.choices))
            self.fail(error.message.rstrip(".") + (suggestion or "."), param, ctx)


class LocalPath(click.Path):
    """A ``click.Path`` on this machine: a URL is a usage error."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the path, or fail with a usage error where it is a URL."""
        from mlperf_pkg.infra.stores import is_url  # noqa: PLC0415 - "--version" needs none

        if is_url(value):
            self.fail(f"{value} is a URL; expected a local path", param, ctx)
        return super().convert(value, param, ctx)
