"""The error that ends the command with one line."""


class UsageError(Exception):
    """The command was used incorrectly; the message says what to do."""
