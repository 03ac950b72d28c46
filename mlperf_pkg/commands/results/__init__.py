"""The summary of a round for publication.

``collect`` returns the rows and scores of a check, ``ids`` gives the rows their private ids,
``ranks`` rounds and ranks, ``tables`` arranges the tables, and ``files`` writes them.
"""

from __future__ import annotations
