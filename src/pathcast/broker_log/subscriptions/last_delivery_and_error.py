"""What a subscription's deliveries did last: for its status. Not in the log; a restart forgets it.

Each is replaced as a whole, so any thread may write and read it without a lock.
"""

from msgspec import Struct


class LastDelivery(Struct, frozen=True, gc=False):
    """The document handed out last: on an event stream, by a pull, …; `time` in seconds since 1970."""

    sequence: int
    way: str
    time: float


class LastError(Struct, frozen=True, gc=False):
    """The last thing that went wrong with deliveries."""

    reason: str
    time: float
