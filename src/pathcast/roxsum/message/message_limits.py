"""Limits on a message: bounds on the memory and time that it may cost its receiver."""

from dataclasses import dataclass, fields

from pathcast.errors import LimitError, MessageError


@dataclass(frozen=True, slots=True)
class MessageLimits:
    """Bounds on one message.

    documents: the number of documents. bytes: of all documents together, decompressed; the memory for decoding is a
    small multiple of it (20 times at worst, usually twice), and is allocated only after the message's own counts were
    checked.
    """

    documents: int = 1 << 20
    bytes: int = 1 << 27

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                raise LimitError(f"MessageLimits({field.name}=…) must be an int of at least 1, got {value!r}")

    def check(self, limit: str, found: int) -> None:
        """Reject a message that exceeds a limit."""
        allowed = getattr(self, limit)
        if found > allowed:
            advice = f"raise the limit with MessageLimits({limit}=…)"
            raise MessageError(f"the message has {found:,} {limit}; at most {allowed:,} are allowed ({advice})")
