"""List prices of systems, looked up by any of a system's names."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from pathlib import Path

from mlperf_pkg.config import Price, read_prices
from mlperf_pkg.infra.resources import data_folder

PRICES_NAME = Path("systems") / "prices.yaml"

Prices = Mapping[str, Price]


def all_prices(file: Path | None, configured: Prices, workspace: Path) -> Prices:
    """Return all prices by system; the first source that has a price for a system counts.

    The sources are ``file``, ``configured``, and ``systems/prices.yaml`` of the workspace, or of
    this package if the workspace has none.

    Raises:
        UserError: a file cannot be read or is not a file of prices; the message names each line.
    """
    own = workspace / PRICES_NAME
    default = own if own.is_file() else data_folder("systems") / PRICES_NAME.name
    return {**read_prices(default), **configured, **(read_prices(file) if file else {})}


def price_of(prices: Prices, *names: str | None) -> Price | None:
    """Return the price of the system with one of ``names``, which are tried in their order.

    Case and punctuation do not matter. The name of an entry comes before those under ``also``.
    """
    searched = [plain(name) for name in names if name and plain(name)]
    for patterns in (_own(prices), list(_also(prices))):
        for name in searched:
            for pattern, price in patterns:
                if fnmatchcase(name, pattern):
                    return price
    return None


def plain(name: str) -> str:
    """Return a name without case and punctuation: ``Bow Pod16`` and ``BOW_POD16`` agree."""
    return re.sub(r"[^\w*]|_", "", name.casefold())


def _own(prices: Prices) -> list[tuple[str, Price]]:
    return [(plain(system), price) for system, price in prices.items()]


def _also(prices: Prices) -> Iterator[tuple[str, Price]]:
    for price in prices.values():
        yield from ((plain(name), price) for name in price.also)
