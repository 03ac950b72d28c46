"""What is packed into a page."""

import base64
import json
import re
import zlib
from typing import Any


def unpacked(page: str, element: str) -> Any:
    """The compressed JSON in an element of a page."""
    match = re.search(f'id="{element}">([^<]*)<', page)
    assert match
    return json.loads(zlib.decompress(base64.b64decode(match[1]), 31))
