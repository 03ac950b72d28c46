"""Paths that are of this machine."""

from __future__ import annotations

from typing import Any

import click

from mlperf_pkg.infra.stores import is_url


class LocalPath(click.Path):
    """As ``click.Path``; a URL is no file or folder to be made here."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The path; a usage error for a URL."""
        if is_url(value):
            self.fail(f"{value} is a URL, and here a path of this machine is needed", param, ctx)
        return super().convert(value, param, ctx)
