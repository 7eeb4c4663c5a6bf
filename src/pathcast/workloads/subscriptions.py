"""Subscriptions from a schema: many random paths, distinct or not, with a match rate if wanted.

Distinct: as text. Duplicates are drawn again; `PATIENCE` of them in a row end in a `LimitError` with the number found.
Match rate: see match_rate.py.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from random import Random

from pathcast.documents.schema import Schema
from pathcast.errors import LimitError
from pathcast.workloads.documents import generate_documents
from pathcast.workloads.plain_paths import plain_paths
from pathcast.workloads.schema_walks import PredicateSteps, Walker
from pathcast.workloads.value_pools import TextStyle, Values

PATIENCE = 100_000
SAMPLE_SIZE = 200
REPORT_EVERY = 1_000

Progress = Callable[[int], object]


def generate_subscriptions(
    schema: Schema,
    count: int,
    *,
    seed: int = 0,
    max_depth: int = 6,
    min_depth: int | None = None,
    wildcard: float = 0.2,
    descendant: float = 0.2,
    skew: float = 0.0,
    predicates: int = 0,
    predicate_probability: float = 0.0,
    operators: Sequence[str] = ("=", "<=", ">="),
    predicate_targets: Sequence[str] = ("attribute", "text"),
    predicate_steps: PredicateSteps = "any",
    nested: int = 0,
    nested_probability: float = 0.0,
    distinct: bool = False,
    match_rate: float | None = None,
    documents: Iterable[bytes] | None = None,
    largest: int = 20,
    text: TextStyle = "integers",
    values: Values | None = None,
    progress: Progress | None = None,
) -> list[str]:
    """`count` XPath subscriptions.

    max_depth: levels that a walk goes down; with `min_depth` each walk draws its depth from between the two.
    wildcard, descendant: probabilities of `*` for a step and of starting a `//`.
    skew: Zipf's exponent for the choice of a child; 0 is uniform.
    predicates: value predicates per subscription, at random steps (fewer where a path has fewer attributes and texts);
        or predicate_probability, for each attribute and text of each step. Values come from the domains of documents
        with the same schema, seed, `largest` and `text`, or from `values`. predicate_steps: at any step, or only at
        those with a name (not at `*`).
    nested: nested paths per subscription (fewer where a path has fewer other children); or nested_probability per step.
    match_rate: the wanted mean share of matched documents, measured on `documents`, by default 200 generated ones.
    progress: called now and then with how many are done.

    >>> from pathcast.workloads import generate_subscriptions, news_schema
    >>> len(generate_subscriptions(news_schema(), 10, predicates=1, distinct=True))
    10
    """
    if count < 0:
        raise ValueError(f"count must not be negative, not {count}")
    if match_rate is not None and not 0 <= match_rate <= 1:
        raise ValueError(f"match_rate must lie in 0..1, not {match_rate}")
    domains = values if values is not None else Values(schema, seed=seed, largest=largest, text=text)
    walker = Walker(
        schema,
        domains,
        seed=seed,
        max_depth=max_depth,
        min_depth=min_depth,
        wildcard=wildcard,
        descendant=descendant,
        skew=skew,
        predicates=predicates,
        predicate_probability=predicate_probability,
        operators=operators,
        predicate_targets=predicate_targets,
        predicate_steps=predicate_steps,
        nested=nested,
        nested_probability=nested_probability,
    )
    if match_rate is None:
        return _draw(walker, count, distinct, progress)
    from pathcast.workloads.match_rate import draw_at_rate

    if documents is None:
        documents = generate_documents(schema, SAMPLE_SIZE, seed=seed, values=domains)
    return draw_at_rate(walker, count, distinct, match_rate, documents, progress)


def assign_subscribers(count: int, *, readers: int = 100, seed: int = 0) -> list[str]:
    """A subscriber for each of `count` subscriptions, drawn from `readers` names such as `reader-017`."""
    if readers < 1:
        raise ValueError(f"readers must be at least 1, not {readers}")
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
                        f"found {len(found):,} distinct subscriptions of {count:,}, then {PATIENCE:,} repetitions; "
                        "ask for fewer, go deeper (max_depth), or use more wildcards, descendants or predicates"
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
