"""The review of a round: what the reviewers, who are competitors, look up in all submissions.

``reading`` checks a round once, each section is a function of ``Round`` in its own file,
``sections`` lists them, ``formats`` shows them, ``writing`` writes the folder.
"""
