# %% [markdown]
# # Match a feed
#
# A feed of news, a table of subscriptions, and who gets what. Everything runs in one process and takes some seconds.

# %%
from collections import Counter

import pathcast
from pathcast.workloads import (
    SubscriptionOptions,
    assign_subscribers,
    generate_documents,
    generate_subscriptions,
    news_schema,
)

# %% [markdown]
# ## A feed
#
# The generator writes documents that are valid against our news DTD. The same seed gives the same bytes on every
# machine.

# %%
schema = news_schema()
feed = list(generate_documents(schema, 300, text="words", seed=7))
print(feed[0][:400].decode())

# %% [markdown]
# ## Subscriptions
#
# 2,000 expressions with a predicate each, for 50 readers. `add_many` adds all of them or, if one is wrong, none.

# %%
expressions = generate_subscriptions(schema, 2_000, SubscriptionOptions(predicates=1), seed=7, text="words")
subscriptions = pathcast.Subscriptions()
subscriptions.add_many(expressions, subscribers=assign_subscribers(len(expressions), readers=50, seed=7))
expressions[:5]

# %% [markdown]
# ## Matching
#
# `compile` builds the index. `match_many` reads and matches documents in groups; with `errors="return"` an unreadable
# document gives its error in its place, and the others are matched.

# %%
matcher = subscriptions.compile()
matches = list(matcher.match_many([*feed, "<nitf><p></nitf>"], errors="return"))
matches[:2], matches[-1]

# %% [markdown]
# Who gets most?

# %%
deliveries = Counter(name for one in matches[:-1] for name in one.subscribers)
print(f"{sum(deliveries.values()):,} deliveries to {len(deliveries)} readers")
deliveries.most_common(5)

# %% [markdown]
# ## Why?
#
# `explain` shows which elements satisfied each step, or what came nearest.

# %%
first = next(one for one in matches if len(one))
document = feed[matches.index(first)]
print(matcher.explain(document, int(first.ids[0])))

# %%
missed = next(id for id in range(1, len(subscriptions) + 1) if id not in first)
print(matcher.explain(document, missed))

# %% [markdown]
# ## Changes
#
# A matcher follows its subscriptions. Nothing is compiled again.

# %%
added = subscriptions.add("//body", subscriber="newcomer")
"newcomer" in matcher.match(document).subscribers

# %%
subscriptions.remove(added)
"newcomer" in matcher.match(document).subscribers
