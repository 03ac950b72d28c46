"""Failures of a command, as opposed to findings about a submission."""

EMPTY_PATH = "a path is empty; perhaps a shell variable is not set"


class UserError(Exception):
    """The command could not do its work: bad usage, unreadable input, an impossible plan.

    The message is complete without a traceback: what is wrong, where, and how to fix it. A defect
    of a submission is never a UserError; it is a ``Finding``.
    """


def reason_of(error: Exception) -> str:
    """Return the reason of an error for messages, without the number of a system error."""
    reason = getattr(error, "strerror", None) or str(error)
    if isinstance(error, FileNotFoundError):
        reason = "no such file or folder"
    file = getattr(error, "filename", None)
    if not file:
        return reason
    return f"{file}: {reason}"


class ArchiveError(Exception):
    """An archive that cannot, or must not, be read; the message is the reason."""


class RulebookError(UserError):
    """A rule file is not valid in the language of the rulebook."""
