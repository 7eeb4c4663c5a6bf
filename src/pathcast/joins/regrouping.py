"""Regrouping: subscriptions move to other decompositions, and their clients with them (§4 of the select-join paper).

A client's content of a base table is its semijoin with one neighbour; with another neighbour it is a different one. The
message to a subscription that moves has its new forms, and the difference of the contents.
"""

from dataclasses import dataclass

from ..messages import Message
from .contents import Listing
from .forms import subscription_filters, write_forms
from .semijoins import Choice, SemijoinScheme
from .subscription import Subscription
from .words import FORMS


@dataclass(frozen=True)
class Regrouping:
    """Who moved, and the messages that tell."""

    subscriptions: list[Subscription]
    messages: list[Message]


def move(scheme: SemijoinScheme, subscription: Subscription, choice: Choice) -> Message:
    """Give a subscription another decomposition; the message for its client."""
    id, query = subscription.id, subscription.query
    before = {form.base: dict(scheme.content(query, form)) for form in subscription.forms.values()}
    scheme.remove(id, query, subscription.forms.values())
    subscription.choice = choice
    subscription.forms = scheme.add(id, query, choice)
    subscription.filters = subscription_filters(id, query, subscription.forms)
    listing = Listing()
    for form in subscription.forms.values():
        after = dict(scheme.content(query, form))
        had = before[form.base]
        listing.come(form.base, scheme.bags[form.base].columns, [(n, row) for n, row in after.items() if n not in had])
        listing.go(form.base, [number for number in had if number not in after])
    return Message({**listing.message(id), FORMS: write_forms(subscription.forms)})
