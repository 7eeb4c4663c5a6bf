"""The cases that `perf-compare` times, for the revision of Pathcast on the path.

Prints a line of JSON: the seconds that each case took. Each case makes its own input, the same for every revision, from
plain random numbers and public names of Pathcast, so that one file works for old and new revisions. A case runs a few
times and its fastest run counts: other load on the machine only makes a run slower.
"""

import json
import random
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

Run = Callable[[], object]
_RUNS = 7
_NAMES = [f"n{number}" for number in range(40)]


def _element(rng: random.Random, depth: int) -> str:
    name = rng.choice(_NAMES)
    children = "".join(_element(rng, depth - 1) for _ in range(rng.randint(1, 4))) if depth else ""
    attributes = "".join(f" a{k}='{rng.randint(1, 20)}'" for k in range(rng.randint(0, 3)))
    return f"<{name}{attributes}>{rng.choice(['', 'some text ', str(rng.randint(1, 99))])}{children}</{name}>"


def _documents(count: int) -> list[bytes]:
    rng = random.Random(1)
    return [f"<news>{_element(rng, 3)}{_element(rng, 3)}</news>".encode() for _ in range(count)]


def _paths(count: int) -> list[str]:
    rng = random.Random(2)
    steps = [*_NAMES, "*"]
    return [
        "/news" + "".join(rng.choice(["/", "/", "//"]) + rng.choice(steps) for _ in range(rng.randint(1, 4)))
        for _ in range(count)
    ]


def _with_values(count: int) -> list[str]:
    rng = random.Random(3)
    return [f"{path}[@a{rng.randint(0, 2)} = {rng.randint(1, 20)}]" for path in _paths(count)]


def _alternatives(count: int) -> list[str]:
    rng = random.Random(4)
    return [f"//{rng.choice(_NAMES)}[. = '{rng.randint(1, 99)}' or @a1 = {rng.randint(1, 20)}]" for _ in range(count)]


def _matching(xpaths: list[str]) -> Run:
    import pathcast
    from pathcast.documents import read_batch

    subscriptions = pathcast.Subscriptions()
    subscriptions.add_many(xpaths)
    matcher = subscriptions.compile()
    batch = read_batch(_documents(200))
    for _ in range(3):  # builds states, and patterns select their access predicates
        matcher.match_batch(batch)
    return lambda: matcher.match_batch(batch)


def _reading() -> Run:
    from pathcast.documents import read_batch

    documents = _documents(400)
    return lambda: read_batch(documents)


def _single() -> Run:
    import pathcast

    subscriptions = pathcast.Subscriptions()
    subscriptions.add_many(_paths(5_000))
    matcher = subscriptions.compile()
    documents = _documents(200)
    return lambda: [matcher.match(document) for document in documents]


def _changed() -> Run:
    """Documents matched one at a time after patterns were added: most are indexed, some are still pending."""
    import pathcast

    subscriptions = pathcast.Subscriptions()
    paths, trees = _paths(12_000), _with_values(6_000)
    subscriptions.add_many([*paths[:10_000], *trees[:4_000]])
    matcher = subscriptions.compile()
    documents = _documents(100)
    for begin in range(0, 2_000, 100):
        subscriptions.add_many([*paths[10_000 + begin : 10_100 + begin], *trees[4_000 + begin : 4_100 + begin]])
        for document in documents[:10]:
            matcher.match(document)
        time.sleep(0.05)  # a background thread indexes them
    for document in documents:
        matcher.match(document)
    time.sleep(1)
    return lambda: [matcher.match(document) for document in documents]


def _joins() -> Run:
    from pathcast.joins import JoinServer, Schema

    schema = Schema({"R": "b int, a int", "S": "b int, c int"}, joins=["R.b = S.b"])
    rng = random.Random(5)
    server = JoinServer(schema)
    for _ in range(500):
        server.insert("S", {"b": rng.randint(1, 20), "c": rng.randint(1, 1_000)})
    for _ in range(1_000):
        low, high = rng.randint(1, 900), rng.randint(1, 900)
        ranges = f"a between {low} and {low + 50} and c between {high} and {high + 50}"
        server.subscribe(f"select * from R natural join S where {ranges}")  # noqa: S608 - numbers of our own
    rows = [{"b": rng.randint(1, 20), "a": rng.randint(1, 1_000)} for _ in range(200)]

    def run() -> None:
        for row in rows:
            server.insert("R", row)
        for row in rows:
            server.delete("R", row)

    return run


def _roxsum() -> Run:
    from pathcast.roxsum import RoXSum

    documents = [document.decode() for document in _documents(200)]
    return lambda: RoXSum.decode(RoXSum.build(documents).encode()).documents()


def _routing() -> Run:
    import pathcast

    overlay = pathcast.routing.Overlay.tree(levels=3, fanout=2, bandwidth="10MB/s", latency="0ms")
    for number, xpath in enumerate(_paths(400)):
        overlay.subscribe(router=f"r{4 + number % 4}", xpath=xpath, subscriber=f"s{number}")
    overlay.advertise(keep=0.5)
    documents = [document.decode() for document in _documents(20)]
    return lambda: [overlay.publish(document, policy="L+s-sd") for document in documents]


def _spark() -> Iterator[tuple[str, Run]]:
    """Matching on Spark and `mapInArrow` that changes nothing, over the same documents; their ratio is the result."""
    import tempfile

    import pathcast
    from pathcast import spark as on_spark

    session = on_spark.session("perf", {"spark.master": "local[2]"})
    folder = tempfile.mkdtemp(prefix="perf-")
    subscriptions = pathcast.Subscriptions()
    subscriptions.add_many(_paths(5_000))
    subscriptions.compile().save(f"{folder}/index")
    rows = [(number, bytes(document)) for number, document in enumerate(_documents(500) * 20)]
    session.createDataFrame(rows, "number long, xml binary").write.parquet(f"{folder}/documents")
    documents = session.read.parquet(f"{folder}/documents")
    identity = documents.mapInArrow(lambda batches: batches, documents.schema)
    matched = on_spark.match_documents(documents, f"{folder}/index")
    yield "spark identity", lambda: identity.write.format("noop").mode("overwrite").save()
    yield "spark matching", lambda: matched.write.format("noop").mode("overwrite").save()


CASES: dict[str, Callable[[], Run]] = {
    "reading": _reading,
    "matching": lambda: _matching(_paths(20_000)),
    "values": lambda: _matching(_with_values(20_000)),
    "alternatives": lambda: _matching(_alternatives(2_000)),
    "single documents": _single,
    "after changes": _changed,
    "joins": _joins,
    "roxsum": _roxsum,
    "routing": _routing,
}
SPARK = "spark"
"""The case that needs Spark: the time of matching, as a multiple of that of `mapInArrow` with the same rows."""


def _quickest(run: Run) -> float:
    run()
    times = []
    for _ in range(_RUNS):
        began = time.perf_counter()
        run()
        times.append(time.perf_counter() - began)
    return min(times)


def main(names: list[str]) -> None:
    """Time the cases with these names."""
    found: dict[str, Any] = {name: _quickest(CASES[name]()) for name in names if name != SPARK}
    if SPARK in names:
        identity, matching = (_quickest(run) for _, run in _spark())
        found[SPARK] = matching / identity
    print(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1:])
