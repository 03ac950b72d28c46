"""Failures to work, as opposed to findings about a submission."""

from __future__ import annotations


class UserError(Exception):
    """The command could not do its work: bad usage, unreadable input, an impossible plan.

    The message is complete for a reader without a traceback: what is wrong, where, and what
    would mend it. A defect of a submission is never a UserError; it is a ``Finding``.
    """


class RulebookError(UserError):
    """A rule file says something that the rulebook's language does not have."""
