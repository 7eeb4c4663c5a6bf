"""Items of a JSON list, one at a time: a list of millions of items takes the memory of its text, and of one item.

A list that is too long is noticed at the first item beyond the limit. Items are returned as text, for a decoder that
checks them; here, only where they begin and end matters.

Cost: ten times that of decoding the whole list at once, so it is for lists that cannot be.
"""

import re
from collections.abc import Iterator
from json import JSONDecoder
from typing import Final

# Values do not matter: numbers stay text, which may be too long for Python's, and objects become nothing.
_DECODER: Final = JSONDecoder(object_pairs_hook=len, parse_int=len, parse_float=len, parse_constant=len)
_SPACE: Final = re.compile(r"[ \t\n\r]*")


def items(text: bytes) -> Iterator[bytes]:
    """The items of a list; `ValueError` (or `RecursionError`) once the text is found to be no JSON list in UTF-8."""
    found = text.decode()
    place = _after(found, _SPACE.match(found).end(), "[")  # type: ignore[union-attr]
    if found[place : place + 1] == "]":
        place += 1
    else:
        while True:
            _, end = _DECODER.raw_decode(found, place)
            yield found[place:end].encode()
            end = _SPACE.match(found, end).end()  # type: ignore[union-attr]
            if found[end : end + 1] == "]":
                place = end + 1
                break
            place = _after(found, end, ",")
    if _SPACE.match(found, place).end() != len(found):  # type: ignore[union-attr]
        raise ValueError(f"unexpected text after the list, at character {place}")


def _after(text: str, place: int, mark: str) -> int:
    """The place of what follows a mark, without space."""
    if text[place : place + 1] != mark:
        raise ValueError(f"{mark!r} expected at character {place}")
    return _SPACE.match(text, place + 1).end()  # type: ignore[union-attr]
