"""Explaining: one document and one subscription give an `Explanation`.

The pattern is evaluated again from the subscription's text, on the document's arrays, by separate code
(`condition_node_sets.py`): no engine is involved, so an explanation does not depend on the matcher's engine, and can be
used to check it.
"""

from pathcast.documents import Document, Limits
from pathcast.patterns import Namespaces, Pattern
from pathcast.patterns.parsing import parse_printed
from pathcast.patterns.xpath import parse_expression

from ..subscriptions.subscriptions import Subscription, Subscriptions
from .condition_node_sets import Truth, path_of, reached
from .document_node_sets import DocumentNodes
from .evaluated_expressions import Evaluated
from .explanation import Explanation
from .findings_awaiting_locations import finished
from .match_and_miss_reasons import Reasons
from .node_locations import Locations
from .step_and_condition_text import Spelling


def explain(document: Document, subscriptions: Subscriptions, id: int) -> Explanation:
    """Why the document matches the subscription with this id, or what keeps it from matching.

    Raises the document's own error if it could not be read, and `KeyError` if there is no such subscription.
    """
    if id not in subscriptions:
        raise KeyError(f"unknown subscription id {id!r}; {_ids(subscriptions)}")
    if document.error is not None:
        raise document.error
    subscription = subscriptions[id]
    pattern = parse_printed(subscription.xpath, subscriptions.namespaces)
    return explain_pattern(document, pattern, subscription, subscriptions.namespaces)


def explain_pattern(
    document: Document, pattern: Pattern, subscription: Subscription, namespaces: Namespaces
) -> Explanation:
    """As `explain`, for a subscription and its pattern from any source."""
    spelling = Spelling(namespaces)
    number, xpath, subscriber = subscription
    if pattern.root is None:
        return Explanation(number, subscriber, xpath, "/", True, ())
    alone = document.alone()[0]
    nodes = DocumentNodes(alone.batch, ignore_namespaces=spelling.local)
    truth = Truth(nodes)
    reasons = Reasons(truth, spelling)
    if pattern.expression:
        expression = parse_expression(pattern.expression, ignore_namespaces=spelling.local)
        drafts = Evaluated(alone.batch, Limits(), ignore_namespaces=spelling.local).drafts(expression)
        return Explanation(
            id=number,
            subscriber=subscriber,
            xpath=xpath,
            pattern=xpath,
            matches=all(draft.holds for draft in drafts),
            steps=finished(drafts, Locations(alone, nodes, spelling)),
        )
    steps = path_of(pattern.root)
    matches = len(reached(truth, pattern.root, None, satisfied=True)) > 0
    drafts = reasons.prove_path(steps, None) if matches else reasons.refute_path(steps, None)
    return Explanation(
        id=number,
        subscriber=subscriber,
        xpath=xpath,
        pattern="".join(
            spelling.step(step.node) + "".join(f"[{spelling.condition(part)}]" for part in step.predicates)
            for step in steps
        ),
        matches=matches,
        steps=finished(drafts, Locations(alone, nodes, spelling)),
    )


def _ids(subscriptions: Subscriptions) -> str:
    """The existing ids: all if they are few, otherwise their number and range."""
    ids = subscriptions.expansion().ids
    if not len(ids):
        return "there are no subscriptions"
    if len(ids) <= 10:
        return f"the known ids are {', '.join(map(str, ids))}"
    return f"there are {len(ids):,} subscriptions, with ids from {ids[0]} to {ids[-1]}"
