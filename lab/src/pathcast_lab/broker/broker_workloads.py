"""The broker's workloads: documents, subscriptions that match a wanted number of them, and their creation."""

import json
from collections.abc import Iterator, Sequence
from itertools import count, islice, product
from random import Random
from typing import TYPE_CHECKING, Any

from pathcast_lab.harness import Run, nitf_documents

from .http_requests import BATCH, Connection, batch_body, request

if TYPE_CHECKING:
    from pathcast.documents.schema import Schema

# Subscriptions per bulk request: some 20 MB.
_BULK = 100_000
_numbers = count()


def news(run: Run, count: int) -> tuple["Schema", list[bytes]]:
    """A schema, and different documents of some 4 KB."""
    from pathcast.workloads import generate_documents, news_schema, schema_from_dtd

    documents = nitf_documents(run.data)[:count]
    dtd = run.data / "nitf" / "nitf-2-5.dtd" if run.data else None
    if documents and dtd is not None and dtd.is_file():
        return schema_from_dtd(dtd, root="nitf"), documents
    run.note("The NITF documents are not on this machine: generated news stand in for them.")
    return news_schema(), list(generate_documents(news_schema(), count, seed=run.seed))


def selective_paths(
    schema: "Schema", documents: Sequence[bytes], size: int, matches: float, seed: int
) -> tuple[list[str], float]:
    """Distinct paths, of which `matches` match a document in the mean, or as many as there are; the mean.

    Paths that match nothing are real paths of the schema: they cost what a subscription costs that rarely matches.
    """
    import pathcast
    from pathcast.workloads import SubscriptionOptions, generate_subscriptions

    drawn = list(
        dict.fromkeys(
            generate_subscriptions(schema, 2 * size, SubscriptionOptions(max_depth=10, distinct=True), seed=seed)
        )
    )
    Random(seed).shuffle(drawn)
    subscriptions = pathcast.Subscriptions()
    subscriptions.add_many(drawn)
    hits = [0] * len(drawn)
    for found in subscriptions.compile().match_many(list(documents)):
        for id in found.ids.tolist():
            hits[id - 1] += 1
    silent = [path for path, hit in zip(drawn, hits, strict=True) if hit == 0]
    chosen, total, wanted = list[str](), 0, matches * len(documents)
    for path, hit in zip(drawn, hits, strict=True):
        # Those that match every document would be the same few hits everywhere.
        if 0 < hit <= len(documents) // 2 and total + hit <= wanted:
            chosen.append(path)
            total += hit
    chosen += silent[: size - len(chosen)]
    Random(seed + 1).shuffle(chosen)
    return chosen[:size], total / len(documents)


def chain(depth: int, size: int = 4_000) -> bytes:
    """A document with one path of `depth` elements, and text up to `size` bytes."""
    names = [f"e{level}" for level in range(depth)]
    opened, closed = "".join(f"<{name}>" for name in names), "".join(f"</{name}>" for name in reversed(names))
    return f"{opened}{'text ' * max(0, (size - 2 * len(opened)) // 5)}{closed}".encode()


def chain_paths(depth: int, size: int, prefix: str = "e") -> list[str]:
    """Distinct paths that all match `chain(depth)`, if they have its prefix: `/` or `//` before each name."""
    steps = product(("/", "//"), repeat=depth)
    return ["".join(f"{step}{prefix}{level}" for level, step in enumerate(each)) for each in islice(steps, size)]


def bulk_requests(xpaths: Sequence[str], feed: str, prefix: str = "s", subscriber: str = "lab") -> Iterator[bytes]:
    """Requests that create a subscription per path on a feed, as NDJSON."""
    for begin in range(0, len(xpaths), _BULK):
        items: list[dict[str, Any]] = [
            {"id": f"{prefix}{number}", "subscriber": subscriber, "feeds": [feed], "xpath": xpath}
            for number, xpath in enumerate(xpaths[begin : begin + _BULK], begin)
        ]
        yield request("POST", "/v1/subscriptions", b"\n".join(json.dumps(item).encode() for item in items))


def create(run: Run, port: int, xpaths: Sequence[str], feed: str, prefix: str = "s", subscriber: str = "lab") -> None:
    """Create a subscription per path."""
    with Connection(port) as connection:
        for data in bulk_requests(xpaths, feed, prefix, subscriber):
            status, answer = connection.ask(data)
            found = json.loads(answer)
            run.check("all subscriptions are accepted", status == 200 and found["rejected"] == 0, str(found)[:300])


class Publications:
    """Requests for a feed, each document under an id of its own, so that none is a duplicate."""

    def __init__(self, path: str, documents: Sequence[bytes]) -> None:
        self._path = path
        self._documents = documents
        self._source = f"{path}#{next(_numbers)}"
        self._made = 0

    def batches(self, documents: int, size: int = 64) -> list[bytes]:
        """Requests with this many documents in batches."""
        found = []
        for begin in range(0, documents, size):
            places = range(begin, min(begin + size, documents))
            some = [self._documents[place % len(self._documents)] for place in places]
            found.append(request("POST", self._path, batch_body(some, self._source, self._made), content_type=BATCH))
            self._made += 1
        return found

    def single(self, documents: int) -> list[bytes]:
        """Requests with one document each."""
        return [
            request("POST", self._path, self._documents[place % len(self._documents)], content_type="application/xml")
            for place in range(documents)
        ]
