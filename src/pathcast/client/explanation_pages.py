"""An explanation of a document, page by page: `next` gives a call, whose answer fills `found`."""

from typing import Final

from msgspec import Struct

from pathcast.documents import Readable

from .calls import Answer, Call
from .document_publishing import encoded
from .results import Explained

_PAGE: Final = 1_000


class _Page(Struct):
    subscriptions: list[Explained]
    next: str | None = None


class Explanation:
    """A broker's answer about one document."""

    def __init__(self, document: Readable | int, feed: str | None, subscription: str | None) -> None:
        if isinstance(document, int) == (feed is not None):
            raise ValueError(
                f"explain() takes either a sequence, or a document and its feed, got {type(document).__name__} and "
                f"feed={feed!r}"
            )
        self.found: list[Explained] = []
        self._body = b"" if isinstance(document, int) else encoded(document)
        self._query = {"limit": str(_PAGE)}
        if isinstance(document, int):
            self._query["sequence"] = str(document)
        else:
            self._query["feed"] = str(feed)
        if subscription is not None:
            self._query["subscription"] = subscription
        self._after: str | None = ""

    def next(self) -> Call[None] | None:
        """The call for the next page; None after the last."""
        if self._after is None:
            return None
        query = {**self._query, "after": self._after} if self._after else self._query
        return Call("POST", "/v1/explain", self._read, self._body, {"content-type": "application/xml"}, query)

    def _read(self, answer: Answer) -> None:
        page = answer.decoded(_Page)
        self.found += page.subscriptions
        self._after = page.next
