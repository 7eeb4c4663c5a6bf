"""The trace that a publisher's request belongs to, as an attribute of its documents (CloudEvents' distributed tracing).

It is kept whether or not this broker records traces: a subscriber may.
"""

import re
from typing import Final

from ..requests import Publication

NAME: Final = "traceparent"
# https://www.w3.org/TR/trace-context/: version 00, trace, span and flags.
_VALID: Final = re.compile(r"00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}")


def with_trace(documents: list[Publication], header: str | None) -> list[Publication]:
    """Documents with the trace of their request; a document's own trace stays. A malformed header is ignored."""
    if header is None or _VALID.fullmatch(header) is None:
        return documents
    return [each._replace(attributes={NAME: header, **(each.attributes or {})}) for each in documents]
