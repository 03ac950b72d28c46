"""The review of a round: the tables that reviewers, who are competitors, look up.

``round`` checks a round once; a section has paragraphs and tables; each is a function of
``ReviewedRound`` in the file of its subject, listed in ``files``, which renders and writes them
all. The objections of a review are in ``objections``, and in words in ``objection_text``.
"""
