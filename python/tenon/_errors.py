"""Errors: each is a tenon.Error and also the built-in exception that people expect."""

from __future__ import annotations

from . import _core


class Error(Exception):
    """What went wrong (str), what to do about it (hint), and where in an expression (place: line, column, length)."""

    code = "unknown"
    hint = ""
    place: tuple[int, int, int] | None = None

    @property
    def message(self) -> str:
        return str(self.args[0]) if self.args else ""

    def __str__(self) -> str:
        return f"{self.message}\nhint: {self.hint}" if self.hint else self.message


class InvalidArgument(Error, ValueError):
    code = "invalid_argument"


class OutOfRange(Error, IndexError):
    code = "out_of_range"


class NotFound(Error, LookupError):
    code = "not_found"


class AlreadyExists(Error, ValueError):
    code = "already_exists"


class DeadlineExceeded(Error, TimeoutError):
    code = "deadline_exceeded"


class ResourceExhausted(Error, MemoryError):
    code = "resource_exhausted"


class PermissionDenied(Error, PermissionError):
    code = "permission_denied"


class FailedPrecondition(Error, RuntimeError):
    code = "failed_precondition"


class Unimplemented(Error, NotImplementedError):
    code = "unimplemented"


class Unavailable(Error, OSError):
    code = "unavailable"


class DataLoss(Error, OSError):
    code = "data_loss"


class Cancelled(Error, RuntimeError):
    code = "cancelled"


class Aborted(Error, RuntimeError):
    code = "aborted"


class Internal(Error, RuntimeError):
    code = "internal"


class Unknown(Error, RuntimeError):
    code = "unknown"


class ExchangeRefused(InvalidArgument, BufferError):
    """An array cannot be exchanged by DLPack in the way that was asked for."""


_core._set_errors({kind.code: kind for kind in Error.__subclasses__()})
