"""What ends the command with one line."""


class UsageError(Exception):
    """A wrong use of the command; its text says what to do."""
