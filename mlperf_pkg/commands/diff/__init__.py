"""What changed between two versions of a submission, of raw logs or of single result sets.

``reading`` reads the two sides, ``changes`` compares them, ``runs`` their logs, ``entries`` judges
the changes by the rules of the review, ``formats`` shows what changed.
"""
