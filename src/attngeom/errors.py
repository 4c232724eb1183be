"""The errors that attngeom raises on purpose: each message says what was given, what is required, what to do."""


class AttnGeomError(Exception):
    """Base of every error that a user can cause; the command line prints it as one line and exits with 2."""


class InputError(AttnGeomError, ValueError):
    """A value, shape or option that does not describe a valid problem."""


class RangeError(InputError, ArithmeticError):
    """Numbers that are not finite, or that leave the range of floats on the way to the answer."""


class FormatError(AttnGeomError, ValueError):
    """A file that cannot be read: truncated, hostile, of another format or of another version."""


class SizeError(AttnGeomError, ValueError):
    """A problem whose memory or time would be absurd; refused before anything is allocated."""


class DomainError(AttnGeomError, TypeError):
    """An operation that the coefficient domain does not have, such as an exponential over GF(p)."""


class SingularError(AttnGeomError, ArithmeticError):
    """A matrix that had to be invertible and is not."""


def check_positive(name: str, value: object) -> None:
    """InputError unless a value is a positive integer."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise InputError(f"{name} = {str(value)[:40]} given; a positive integer is required")
