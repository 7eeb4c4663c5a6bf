"""Bodies of lines, read in groups: a body of any length takes the memory of one group.

Invariant: how the body was cut into chunks does not matter, and every line has its number, also one that is too long.
Cost: one copy per byte.
"""

from collections.abc import AsyncIterator, Callable
from typing import Final, NamedTuple

from starlette.requests import ClientDisconnect, Request

from .problems import ProblemError
from .request_bodies import check_declared_size, too_large

# A group ends at as many lines or bytes. Other requests wait while one is carried out: some 20 ms.
GROUP_LINES: Final = 1_024
GROUP_BYTES: Final = 1 << 20


class Line(NamedTuple):
    """A line of a body, counted from 1; None in place of one that is too long."""

    number: int
    content: bytes | None


async def line_groups(request: Request, limit: int, longest: int) -> AsyncIterator[list[Line]]:
    """The lines of a body of at most `limit` bytes; a line may have at most `longest`."""
    check_declared_size(request, limit)
    released: Callable[[int], None] = request.scope.get("pathcast.released", int)
    group: list[Line] = []
    line, number, too_long = bytearray(), 1, False
    total = held = 0
    try:
        async for chunk in request.stream():
            total, held = total + len(chunk), held + len(chunk)
            if total > limit:
                raise too_large(limit)
            pieces = chunk.split(b"\n")
            for place, piece in enumerate(pieces):
                if place:
                    group.append(Line(number, None if too_long else bytes(line)))
                    line, number, too_long = bytearray(), number + 1, False
                too_long = too_long or len(line) + len(piece) > longest
                if too_long:
                    line.clear()
                else:
                    line += piece
            if len(group) >= GROUP_LINES or held - len(line) >= GROUP_BYTES:
                yield group
                released(held - len(line))
                group, held = [], len(line)
    except ClientDisconnect:
        raise ProblemError(408, "the client disconnected before the end of its body; send the request again") from None
    if line or too_long:
        group.append(Line(number, None if too_long else bytes(line)))
    yield group
