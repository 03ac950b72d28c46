"""The results of a check: scores, the summary of a round, and the official tables.

``systems`` collects what all tables start from, with private ids; ``official`` has the tables of
the official summarizer. ``publication`` gives a round its rows, scores and ranks, ``tables``
arranges and writes the tables. ``score`` shows how each score is computed.
"""
