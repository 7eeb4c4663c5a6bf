# %% [markdown]
# # Compare engines
#
# Pathcast has a default engine and the engines of the literature. All of them give the same answers; they differ in
# time. This page measures a small workload. `pathcast experiment run` measures larger ones, with repetitions and
# rivals in alternation.

# %%
import time

import pathcast
from pathcast.matching import engines
from pathcast.workloads import SubscriptionOptions, generate_documents, generate_subscriptions, news_schema

engines()

# %% [markdown]
# ## A workload
#
# 2,000 plain paths and 50 news documents.

# %%
schema = news_schema()
documents = list(generate_documents(schema, 50, seed=3))
paths = generate_subscriptions(schema, 2_000, SubscriptionOptions(distinct=True), seed=3)
subscriptions = pathcast.Subscriptions()
subscriptions.add_many(paths)

# %% [markdown]
# ## Answers first
#
# A time means something only if the answers are right. The engine `reference` tries every expression on every
# document and is the yardstick. It needs no index and no kernels, so it sees 5 documents here.

# %%
expected = [one.ids.tolist() for one in subscriptions.compile(engine="reference").match_many(documents[:5])]
compiled = {name: subscriptions.compile(engine=name) for name in engines() if name != "reference"}
for name, matcher in compiled.items():
    assert [one.ids.tolist() for one in matcher.match_many(documents[:5])] == expected, name
print(f"{len(compiled)} engines agree with the reference; {sum(map(len, expected))} matches in 5 documents")


# %% [markdown]
# ## Then times
#
# Each engine has seen some documents, so kernels are compiled. The smallest of three rounds counts; engines take
# turns, so that a busy machine slows all of them.


# %% tags=["varies"]
def seconds(matcher: pathcast.Matcher) -> float:
    """The time for all documents."""
    begin = time.perf_counter()
    for _ in matcher.match_many(documents):
        pass
    return time.perf_counter() - begin


best = dict.fromkeys(compiled, float("inf"))
for _ in range(3):
    for name, matcher in compiled.items():
        best[name] = min(best[name], seconds(matcher))

print(f"{'engine':<12} {'µs per document':>16}")
for name, time_taken in sorted(best.items(), key=lambda pair: pair[1]):
    print(f"{name:<12} {time_taken / len(documents) * 1e6:>16,.0f}")

# %% [markdown]
# ## What grows
#
# The default engine's time follows the document and its matches, not the number of subscriptions. Ten times the
# paths:

# %% tags=["varies"]
for count in (200, 2_000, 20_000):
    many = pathcast.Subscriptions()
    many.add_many(generate_subscriptions(schema, count, SubscriptionOptions(), seed=5))
    matcher = many.compile()
    found = sum(len(one) for one in matcher.match_many(documents))
    took = min(seconds(matcher) for _ in range(3))
    each = f"{took / len(documents) * 1e6:>6,.0f} µs, {found / len(documents):>6,.0f} matches per document"
    print(f"{count:>7,} paths: {each}")

# %% [markdown]
# [The default engine](../concepts/engine.md) explains why.
