"""List prices of systems, and which price is a system's, whatever it is called where."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from pathlib import Path

from mlperf_pkg.config import Price, read_prices
from mlperf_pkg.infra.resources import data_folder

PRICES_NAME = Path("systems") / "prices.yaml"

Prices = Mapping[str, Price]


def known_prices(given: Path | None, configured: Prices, workspace: Path) -> Prices:
    """All prices by system, the first of several that name one.

    They are those of the file ``given``, those that are ``configured``, and those of
    ``systems/prices.yaml`` of the workspace, else of this package.

    Raises:
        UserError: a file cannot be read or is no file of prices; the message names each line.
    """
    own = workspace / PRICES_NAME
    default = own if own.is_file() else data_folder("systems") / PRICES_NAME.name
    return {**read_prices(default), **configured, **(read_prices(given) if given else {})}


def price_of(prices: Prices, *names: str | None) -> Price | None:
    """The price of the system that goes by one of ``names``, in their order.

    Case and punctuation do not matter. The names that prices stand under go before ``also``.
    """
    asked = [each for name in names if name and (each := plain(name))]
    for listed in (_own(prices), list(_also(prices))):
        for name in asked:
            for pattern, price in listed:
                if fnmatchcase(name, pattern):
                    return price
    return None


def plain(name: str) -> str:
    """A name without case and punctuation: ``Bow Pod16``, ``bow-pod16`` and ``BOW_POD16`` agree."""
    return re.sub(r"[^\w*]|_", "", name.casefold())


def _own(prices: Prices) -> list[tuple[str, Price]]:
    return [(plain(system), price) for system, price in prices.items()]


def _also(prices: Prices) -> Iterator[tuple[str, Price]]:
    for price in prices.values():
        yield from ((plain(name), price) for name in price.also)
