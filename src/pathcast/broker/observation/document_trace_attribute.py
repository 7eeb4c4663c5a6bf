"""The trace that a publisher's request belongs to, as an attribute of its documents (CloudEvents' distributed tracing).

It is kept whether or not this broker records traces: a subscriber may.
"""

import re
from typing import Final

from pathcast.broker_log import DocumentRecord

from ..sequencing.sequencer_requests import Publication

NAME: Final = "traceparent"
# https://www.w3.org/TR/trace-context/: version 00, trace, span and flags.
_VALID: Final = re.compile(r"00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}")


def trace_of(document: DocumentRecord) -> str | None:
    """The trace that a document names, if it is well-formed: the value may come from a CloudEvent's attribute."""
    found = document.attributes.get(NAME)
    return found if isinstance(found, str) and _VALID.fullmatch(found) else None


def with_trace(documents: list[Publication], header: str | None) -> list[Publication]:
    """Documents with the trace of their request; a document's own trace stays. A malformed header is ignored."""
    if header is None or _VALID.fullmatch(header) is None:
        return documents
    return [each._replace(attributes={NAME: header, **(each.attributes or {})}) for each in documents]
