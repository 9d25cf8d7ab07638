"""The one exception for input that a user can put right."""


class InputError(ValueError):
    """Something a user gave cannot be used: the message says what it was, what is allowed and what to do.

    The command lines print the message alone and exit with status 2; every other exception is a defect of the
    package and keeps its traceback.
    """
