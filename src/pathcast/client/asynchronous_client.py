"""The client for programs with asyncio: the methods of `Client`, awaited."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, Literal, TypeVar, overload

from pathcast.documents import Readable
from pathcast.errors import PathcastError
from pathcast.extras import extra

with extra("client"):
    import httpx

from . import batch_upload_and_commit, calls, dead_letters, delivery_calls, subscription_calls
from .broker_addresses import Addresses
from .broker_errors import UnreachableError
from .calls import Answer, Call
from .document_publishing import Publication
from .event_reader import EventReader
from .explanation_pages import Explanation
from .results import (
    Committed,
    DeadLetter,
    Delivery,
    Explained,
    Gap,
    NewDocument,
    Published,
    Pulled,
    Revived,
    Status,
    Subscription,
)
from .retries import OnRetry

T = TypeVar("T")

TIMEOUT: Final = httpx.Timeout(60.0, connect=10.0)
# The broker sends a heartbeat every 15 seconds: a stream that is silent for longer is dead.
SILENCE: Final = httpx.Timeout(60.0, connect=10.0, read=45.0)


def connect_async(
    url: str | Iterable[str], token: str | None = None, *, patience: float = 60.0, on_retry: OnRetry | None = None
) -> "AsyncClient":
    """An asynchronous client of the broker at `url`, such as `http://127.0.0.1:8080`. No connection is made yet.

    `url` may be several addresses, in a list or separated by commas: those of a broker and its standbys. A call that
    fails at one of them is made at the next.

    A call that gets no answer, or 429 or 503, is made again, for up to `patience` seconds; before each wait,
    `on_retry(error, seconds)` is called.
    """
    return AsyncClient(url, token, patience=patience, on_retry=on_retry)


class AsyncClient:
    """A client of a broker, for one event loop; close it, or use it in an `async with` statement."""

    def __init__(
        self,
        url: str | Iterable[str],
        token: str | None = None,
        *,
        patience: float = 60.0,
        on_retry: OnRetry | None = None,
    ) -> None:
        self._addresses = Addresses(url)
        self._patience = patience
        self._on_retry = on_retry
        self._http = httpx.AsyncClient(headers=calls.headers_of(token), timeout=TIMEOUT)

    @property
    def url(self) -> str:
        """The address that the client uses now."""
        return self._addresses.current

    async def close(self) -> None:
        """Close all connections."""
        await self._http.aclose()

    async def __aenter__(self) -> "AsyncClient":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    @overload
    async def publish(  # type: ignore[overload-overlap]  # a str is a document
        self,
        feed: str,
        documents: Readable,
        id: str | None = None,
        *,
        keep_invalid: bool = False,
        schema: str | None = None,
    ) -> Published: ...
    @overload
    async def publish(
        self,
        feed: str,
        documents: Iterable[Readable],
        id: Sequence[str] | None = None,
        *,
        keep_invalid: bool = False,
        schema: str | None = None,
        errors: Literal["raise"] = "raise",
    ) -> list[Published]: ...
    @overload
    async def publish(
        self,
        feed: str,
        documents: Iterable[Readable],
        id: Sequence[str] | None = None,
        *,
        keep_invalid: bool = False,
        schema: str | None = None,
        errors: Literal["return"],
    ) -> list[Published | PathcastError]: ...
    async def publish(
        self,
        feed: str,
        documents: Readable | Iterable[Readable],
        id: str | Sequence[str] | None = None,
        *,
        keep_invalid: bool = False,
        schema: str | None = None,
        errors: Literal["raise", "return"] = "raise",
    ) -> Any:
        """Publish a document (bytes, text or a path) or several; they are durable when this returns.

        Documents without ids get new ones. Of several documents, those that can be read are published; then the first
        error is raised, or `errors="return"` puts each error in the document's place. `keep_invalid` stores unreadable
        documents as dead letters. `schema` names the documents' schema, one that the feed's mediator maps.
        """
        publication = Publication(feed, documents, id, keep_invalid=keep_invalid, schema=schema)
        calls = publication.calls()
        while (call := await asyncio.to_thread(next, calls, None)) is not None:  # reads files
            await self._answer(call)
        return publication.results if errors == "return" else publication.result()

    async def upload(self, documents: Iterable[NewDocument]) -> str:
        """Upload documents that a batch will have; returns the id of the upload. Nobody sees them before `commit`."""
        return await self._answer(batch_upload_and_commit.upload(documents))

    async def commit(
        self, uploads: Sequence[str], batch: str, source: str = "", *, keep_invalid: bool = False
    ) -> Committed:
        """Publish uploads as a batch: all of their documents, or none if one of them cannot be read.

        A batch is published once per token, `source` and `batch`: a commit that is made again publishes nothing.
        `keep_invalid` stores unreadable documents as dead letters.
        """
        return await self._answer(batch_upload_and_commit.commit(uploads, batch, source, keep_invalid=keep_invalid))

    async def discard(self, upload: str) -> None:
        """Delete an upload that no batch will have; otherwise it expires."""
        await self._answer(batch_upload_and_commit.discard(upload))

    async def subscribe(
        self,
        id: str,
        xpath: str,
        feeds: Iterable[str] | str = (),
        *,
        namespaces: Mapping[str, str] | None = None,
        start: int | str | datetime = "now",
        subscriber: str | None = None,
        in_flight: int | None = None,
        ack_wait: float | None = None,
        max_deliver: int | None = None,
        sink: str | None = None,
    ) -> Subscription:
        """Create or change a subscription to some feeds, or to all; `start` is `"now"`, a sequence or a time.

        With a `sink`, a URL, the broker sends deliveries there by POST, signed with `secret(id)`; without, it stops.
        """
        config = {"in_flight": in_flight, "ack_wait": ack_wait, "max_deliver": max_deliver}
        return await self._answer(
            subscription_calls.subscribe(id, xpath, feeds, namespaces, start, subscriber, sink, config)
        )

    async def unsubscribe(self, id: str) -> None:
        """End a subscription."""
        await self._answer(subscription_calls.unsubscribe(id))

    async def subscription(self, id: str) -> Subscription:
        """One subscription."""
        return await self._answer(subscription_calls.subscription(id))

    async def subscriptions(self, subscriber: str | None = None) -> AsyncIterator[Subscription]:
        """All subscriptions, or those of a subscriber, by id."""
        after: str | None = ""
        while after is not None:
            page, after = await self._answer(subscription_calls.subscriptions(after, subscriber))
            for each in page:
                yield each

    async def secret(self, id: str) -> str:
        """The secret that signs the webhooks of a subscription with a sink."""
        return await self._answer(subscription_calls.secret(id))

    async def check(self, xpath: str, namespaces: Mapping[str, str] | None = None) -> str:
        """The normal form of an expression; `BrokerError` if it is not supported."""
        return await self._answer(subscription_calls.check(xpath, namespaces))

    async def explain(
        self, document: Readable | int, feed: str | None = None, *, subscription: str | None = None
    ) -> list[Explained]:
        """Which subscriptions get a document, and why the others do not; of all, or of one in every detail.

        The document is a sequence of the broker's log, or bytes, text or a path as if they were published to `feed`.
        """
        explanation = await asyncio.to_thread(Explanation, document, feed, subscription)  # reads files
        while (call := explanation.next()) is not None:
            await self._answer(call)
        return explanation.found

    def events(self, id: str, after: int | None = None, *, bodies: bool = True) -> "AsyncEvents":
        """Deliveries and gaps after a sequence, without end; without `after`, what is published from the
        `async with` statement, or else the first step, on.

        The iterator reconnects and continues right after the last event. It does not move the subscription's cursor.
        """
        return AsyncEvents(self, id, EventReader(id, after, bodies=bodies))

    async def pull(self, id: str, limit: int = 100, wait: float = 0.0) -> Pulled:
        """Up to `limit` deliveries, each on a lease; waits up to `wait` whole seconds for the first."""
        return await self._answer(delivery_calls.pull(id, limit, wait))

    async def acknowledge(self, id: str, deliveries: Iterable[Delivery | int]) -> None:
        """Acknowledge deliveries, or their sequences, so that the broker does not repeat them."""
        await self._answer(delivery_calls.acknowledge(id, deliveries))

    async def give_back(self, id: str, deliveries: Iterable[Delivery | int], delay: float = 0.0) -> None:
        """End the leases of deliveries: the broker repeats them after `delay` seconds."""
        await self._answer(delivery_calls.give_back(id, deliveries, delay))

    async def replay(self, id: str, start: int | str | datetime) -> Status:
        """Move the cursor, so that the broker repeats deliveries from `start` on: a sequence, a time, or `"now"`."""
        return await self._answer(delivery_calls.replay(id, start))

    async def dead_letters(self, id: str) -> AsyncIterator[DeadLetter]:
        """Deliveries that were given up, by sequence."""
        after: int | None = 0
        while after is not None:
            page, after = await self._answer(dead_letters.dead_letters(id, after))
            for each in page:
                yield each

    async def revive(self, id: str) -> Revived:
        """Make the dead letters due again, with attempts from 1.

        If the connection breaks and the call is repeated, it does not count what the first attempt made due again.
        """
        return await self._answer(dead_letters.revive(id))

    async def status(self, id: str) -> Status:
        """Cursor, head and lag of a subscription."""
        return await self._answer(delivery_calls.status(id))

    async def document(self, sequence: int) -> bytes:
        """The document at a sequence, as it was published."""
        return await self._answer(delivery_calls.document(sequence))

    async def _answer(self, call: Call[T]) -> T:
        retries = self._addresses.retries(self._patience, self._on_retry)
        timeout = httpx.Timeout(60.0, connect=10.0, read=self._addresses.patience + call.wait)
        while True:
            at_least, address = 0.0, self.url
            try:
                response = await self._http.request(
                    call.method,
                    address + call.path,
                    params=dict(call.query) or None,
                    content=call.content,
                    headers=call.headers,
                    timeout=timeout,
                )
            except httpx.TransportError as error:
                failure: PathcastError = calls.unreachable(address, error)
            else:
                answer = Answer(response.status_code, response.headers, response.content, retries.failures + 1)
                if not answer.is_temporary:
                    return call.read(answer)
                failure, at_least = answer.error(), answer.retry_after
            await asyncio.sleep(self._addresses.seconds(retries, address, failure, at_least))

    def _stream(self, reader: EventReader, address: str) -> Any:
        """One connection of an event stream, as httpx opens it."""
        headers = reader.headers()
        return self._http.stream(
            "GET", address + reader.path, params=reader.query or None, headers=headers, timeout=SILENCE
        )


class AsyncEvents:
    """The events of a subscription: an iterator over `Delivery` and `Gap` that reconnects.

    It ends when the subscription does. `position` is the sequence to continue after, in another process too.
    """

    def __init__(self, client: AsyncClient, id: str, reader: EventReader) -> None:
        self._client = client
        self._id = id
        self._reader = reader
        self._events = self._all()

    @property
    def position(self) -> int:
        """Everything up to this sequence was returned."""
        return self._reader.position or 0

    def __aiter__(self) -> "AsyncEvents":
        return self

    async def __anext__(self) -> Delivery | Gap:
        return await anext(self._events)

    async def close(self) -> None:
        """Close the connection."""
        await self._events.aclose()

    async def __aenter__(self) -> "AsyncEvents":
        await self._begin()
        return self

    async def _begin(self) -> None:
        if self._reader.position is None:
            self._reader.position = (await self._client.status(self._id)).head

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def _all(self) -> AsyncGenerator[Delivery | Gap, None]:
        await self._begin()
        reader, retries = self._reader, self._client._addresses.retries(self._client._patience, self._client._on_retry)
        while not reader.ended:
            address = self._client.url
            failure: PathcastError = UnreachableError(f"the broker at {address} closed the stream; connect again")
            at_least = 0.0
            try:
                async with self._client._stream(reader, address) as response:
                    if response.status_code != 200:
                        answer = Answer(response.status_code, response.headers, await response.aread())
                        reader.rejected(answer)
                        failure, at_least = answer.error(), answer.retry_after
                    else:
                        async for chunk in response.aiter_bytes():
                            for event in reader.read(chunk):
                                yield event
                            retries.succeeded()
                            if reader.ended:
                                return
            except (httpx.TransportError, httpx.StreamError) as error:
                failure = calls.unreachable(address, error)
            if not reader.ended:
                await asyncio.sleep(self._client._addresses.seconds(retries, address, failure, at_least))
