"""The review of a round: the tables that reviewers, who are competitors, look up.

``reading`` checks a round once, each section is a function of ``Round`` in its own file,
``sections`` lists them, ``formats`` renders them, ``writing`` writes the folder.
"""
