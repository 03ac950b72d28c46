"""The results of a check: scores, the summary of a round, and the official tables.

``systems`` collects what all tables start from, ``official`` has the tables of the official
summarizer. ``publication`` gives a round its rows, scores and ranks, ``ids`` their private ids;
``tables`` arranges and writes the tables. ``score`` shows how each score is computed.
"""
