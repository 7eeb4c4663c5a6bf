"""Subscriptions from a schema: many random paths, distinct or not, optionally with a match rate.

Distinct: by text. Duplicates are drawn again; `PATIENCE` in a row raise a `LimitError` with the number found.
Match rate: see target_match_rate.py.
"""

from collections.abc import Callable, Iterable, Iterator
from random import Random

from pathcast.documents.schema import Schema
from pathcast.errors import LimitError
from pathcast.workloads.document_generator import generate_documents
from pathcast.workloads.generation_options import SubscriptionOptions
from pathcast.workloads.plain_path_walks import plain_paths
from pathcast.workloads.schema_walks import Walker
from pathcast.workloads.value_pools import TextStyle, Values

PATIENCE = 100_000
SAMPLE_SIZE = 200
REPORT_EVERY = 1_000

Progress = Callable[[int], object]
_DEFAULTS = SubscriptionOptions()


def generate_subscriptions(
    schema: Schema,
    count: int,
    options: SubscriptionOptions = _DEFAULTS,
    *,
    seed: int = 0,
    documents: Iterable[bytes] | None = None,
    largest: int = 20,
    text: TextStyle = "integers",
    values: Values | None = None,
    progress: Progress | None = None,
) -> list[str]:
    """`count` XPath subscriptions.

    documents: the documents to measure the match rate, by default 200 generated ones.
    largest, text: values come from the domains of documents with the same schema, seed, `largest` and `text`, or from
        `values`.
    progress: called periodically with the number done.

    >>> from pathcast.workloads import SubscriptionOptions, generate_subscriptions, news_schema
    >>> len(generate_subscriptions(news_schema(), 10, SubscriptionOptions(predicates=1, distinct=True)))
    10
    """
    if count < 0:
        raise ValueError(f"count must be at least 0, got {count}")
    domains = values if values is not None else Values(schema, seed=seed, largest=largest, text=text)
    walker = Walker(schema, domains, options, seed=seed)
    if options.match_rate is None:
        return _draw(walker, count, options.distinct, progress)
    from pathcast.workloads.target_match_rate import draw_at_rate

    if documents is None:
        documents = generate_documents(schema, SAMPLE_SIZE, seed=seed, values=domains)
    return draw_at_rate(walker, count, options.distinct, options.match_rate, documents, progress)


def assign_subscribers(count: int, *, readers: int = 100, seed: int = 0) -> list[str]:
    """A subscriber for each of `count` subscriptions, drawn from `readers` names such as `reader-017`."""
    if readers < 1:
        raise ValueError(f"readers must be at least 1, got {readers}")
    width = max(3, len(str(readers)))
    random = Random(f"pathcast/subscribers/{seed}").random
    return [f"reader-{1 + int(random() * readers):0{width}}" for _ in range(count)]


def _draw(walker: Walker, count: int, distinct: bool, progress: Progress | None) -> list[str]:
    found: list[str] = []
    known: set[str] = set()
    repeated = 0
    expressions = _printed_paths(walker) if walker.conditional else plain_paths(walker)
    while len(found) < count:
        expression = next(expressions)
        if distinct:
            if expression in known:
                repeated += 1
                if repeated > PATIENCE:
                    raise LimitError(
                        f"found only {len(found):,} of {count:,} distinct subscriptions before {PATIENCE:,} repeats "
                        "in a row; "
                        "request fewer, increase max_depth, or use more wildcards, descendants or predicates"
                    )
                continue
            known.add(expression)
            repeated = 0
        found.append(expression)
        if progress is not None and len(found) % REPORT_EVERY == 0:
            progress(len(found))
    if progress is not None:
        progress(count)
    return found


def _printed_paths(walker: Walker) -> Iterator[str]:
    while True:
        yield str(walker.path())
