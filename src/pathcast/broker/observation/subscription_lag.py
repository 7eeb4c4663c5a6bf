"""How far subscriptions are behind the log, over all that have a cursor: quantiles, since a label per subscription
would be a series per subscription.

Cost: 0.3 s for a million subscriptions, so it runs in a thread of its own, once per scrape.
"""

from typing import Final

import numpy as np

from pathcast.broker_log import BrokerState

QUANTILES: Final = (0.5, 0.9, 0.99, 1.0)


def lags(state: BrokerState, head: int) -> list[int]:
    """How many records each cursor is behind the head."""
    return [max(0, head - settled) for settled in state.subscriptions.settled()]


def quantiles(values: list[int]) -> list[float]:
    """`QUANTILES` of some values, each one of the values; 0 if there are none."""
    if not values:
        return [0.0] * len(QUANTILES)
    found: list[float] = np.quantile(values, QUANTILES, method="inverted_cdf").tolist()
    return found
