"""The summary of a round as it is published.

``collect`` makes the rows and scores from a check, ``ids`` gives the rows their private ids,
``ranks`` rounds and ranks, ``tables`` arranges the tables, and ``files`` writes them.
"""
