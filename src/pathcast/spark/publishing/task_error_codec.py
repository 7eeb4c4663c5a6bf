"""Task errors: an error that a task raises on purpose, as bytes that the driver reads and raises again.

    bytes     the kind's name, the reason, the other fields by name

Invariant: an error of `pathcast.errors` equals the one that was written; an error class of another package
is read back as its base class in `pathcast.errors`.
"""

from inspect import isclass

from pathcast import errors
from pathcast.errors import PathcastError
from pathcast.store import MessagePack

_Field = str | int | None
_KINDS = {name: kind for name, kind in vars(errors).items() if isclass(kind) and issubclass(kind, PathcastError)}
_FAILURE: MessagePack[tuple[str, str, list[tuple[str, _Field]]]] = MessagePack(
    tuple[str, str, list[tuple[str, _Field]]],
    "the failure of a task",
    "install the same version of Pathcast on all workers",
)


def write_failure(error: PathcastError) -> bytes:
    """An error as bytes."""
    kind = next(kind for kind in type(error).__mro__ if _KINDS.get(kind.__name__) is kind)
    fields = [
        (name, _written(vars(error)[name])) for name in vars(kind("")) if name in vars(error) and name != "reason"
    ]
    return _FAILURE.write((kind.__name__, str(_written(error.reason)), fields))


def read_failure(data: bytes) -> PathcastError:
    """The error that `write_failure` was given; `SnapshotError` for other bytes."""
    name, reason, fields = _FAILURE.read(data)
    if name not in _KINDS:
        raise _FAILURE.damaged(f"unknown error {name!r:.60}")
    error = _KINDS[name](reason)
    unknown = sorted({field for field, _ in fields} - vars(error).keys())
    if unknown:
        raise _FAILURE.damaged(f"{name} has no field {unknown[0]!r:.60}")
    vars(error).update(fields)
    return error


def _written(value: object) -> _Field:
    """A field as UTF-8 and 64 bits can hold it."""
    if value is None or (type(value) is int and -(1 << 63) <= value < 1 << 63):
        return value
    return str(value).encode(errors="backslashreplace").decode()
