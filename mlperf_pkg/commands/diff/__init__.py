"""What changed between two versions of a submission, of loose logs or of single result sets.

``reading`` reads the two sides, ``changes`` compares them, ``formats`` shows what changed.
"""
