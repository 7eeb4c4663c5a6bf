"""Alternatives as access predicates: a pattern with `or` is tried only if a document has a value of an alternative."""

import random
from pathlib import Path

import pytest

import pathcast
from pathcast import Subscriptions
from tests import oracle

WORDS = ["alpha", "beta", "gamma", "delta", "omega", "12", "7"]


def tried(xpath: str, document: str) -> tuple[bool, int]:
    """Whether a document matches, and how many patterns were candidates for it."""
    subscriptions = Subscriptions()
    subscriptions.add(xpath)
    matcher = subscriptions.compile()
    return bool(matcher.match(document)), matcher.statistics()["candidates"]


@pytest.mark.parametrize(
    ("xpath", "value", "other"),
    [
        ("//s[. = 'alpha' or . = 'beta']", "<s>beta</s>", "<s>gamma</s>"),
        ("//n[s = 'alpha' or @k = 'beta']", "<n k='beta'/>", "<n k='alpha'/>"),
        ("//p[contains(., 'alpha') or contains(., 'omega')]", "<p>an omega</p>", "<p>an alp, a ha</p>"),
        ("//p[contains(., 'alpha') and @k or contains(., 'omega')]", "<p>an omega</p>", "<p k='1'>an alp</p>"),
        ("//p[(s = 1 or s = 2) and (t = 3 or t = 4) or u = 5]", "<p><s>2</s><t>3</t></p>", "<p><s>6</s><u>7</u></p>"),
        ("//p[@k > 10 or s < 3]", "<p k='11'/>", "<p k='4'><s>9</s></p>"),
        ("//p[/r/s = 'alpha' or @k = 'beta']", "<s>alpha</s><p/>", "<p/><s>beta</s>"),
        ("//p[@k[. = 'alpha' or . = 'beta']]", "<p k='alpha'/>", "<p k='alph'/>"),
        ("//p[contains(s, 'alpha') or starts-with(t, 'omega')]", "<p><t>omegas</t></p>", "<p><s>omgea</s></p>"),
    ],
)
def test_a_pattern_with_or_is_a_candidate_where_an_alternative_has_its_value(
    xpath: str, value: str, other: str
) -> None:
    assert tried(xpath, f"<r>{value}</r>") == (True, 1)
    assert tried(xpath, f"<r>{other}<p><s/></p><n/></r>") == (False, 0)


@pytest.mark.parametrize(
    "xpath", ["//p[. = 'alpha' or q]", "//p[. = 'alpha' or not(@k)]", "//p[@k = 'alpha' or . != 'x']"]
)
def test_an_alternative_without_a_value_can_not_be_waited_for(xpath: str) -> None:
    assert tried(xpath, "<r><p><q/>y</p></r>") == (True, 1)


def condition(rng: random.Random, depth: int) -> str:
    if depth == 0:
        value = rng.choice(WORDS)
        place = rng.choice([".", "b", "@k", "text()", "//c"])
        return rng.choice([f"{place} = '{value}'", f"contains({place}, '{value[:4]}')", f"{place} > 9", "b"])
    parts = [condition(rng, rng.randrange(depth)) for _ in range(2)]
    return rng.choice(["{} and {}", "({} or {})", "({} or {})", "not({}) and {}", "({} or not({}))"]).format(*parts)


def element(rng: random.Random, depth: int) -> str:
    name = rng.choice("abc")
    inside = "".join(element(rng, depth - 1) for _ in range(rng.randrange(3))) if depth else ""
    key = f" k='{rng.choice(WORDS)}'" if rng.random() < 0.3 else ""
    return f"<{name}{key}>{rng.choice([*WORDS, '', 'x'])}{inside}</{name}>"


@pytest.mark.slow
def test_random_alternatives_match_what_lxml_says_however_they_came(tmp_path: Path) -> None:
    rng = random.Random(11)
    xpaths = list(dict.fromkeys(f"//{rng.choice('abc*')}[{condition(rng, 3)}]" for _ in range(600)))
    documents = [f"<r>{element(rng, 3)}{element(rng, 2)}</r>" for _ in range(60)]
    questions = [oracle.ask(xpath) for xpath in xpaths]
    trees = [oracle.read(document.encode()) for document in documents]
    wanted = [[id for id, ask in enumerate(questions, 1) if oracle.answer(ask, tree)] for tree in trees]
    ways = []
    compiled = Subscriptions()
    compiled.add_many(xpaths)
    ways.append(compiled.compile())
    ways[0].save(tmp_path / "index")
    ways.append(pathcast.open_index(tmp_path / "index"))
    late = Subscriptions()
    late.add("/never")
    ways.append(late.compile())
    late.remove(1)
    late.add_many(xpaths, ids=range(1, len(xpaths) + 1))
    for matcher in ways:
        for _ in range(6):  # patterns re-select their access predicates, as documents show what is rare
            found = [matches.ids.tolist() for matches in matcher.match_many(documents)]
            assert found == wanted
    assert 0 < sum(map(len, wanted)) < len(xpaths) * len(documents)


def test_the_most_expensive_subscriptions_are_named() -> None:
    subscriptions = Subscriptions()
    subscriptions.add_many(["//p[not(contains(., 'zz'))]", "//p[@k or q]", "//p[@k = 1]", "/r/p"], ids=[7, 8, 9, 10])
    subscriptions.add("//p[not(contains(., 'zz'))]", id=11)
    matcher = subscriptions.compile()
    document = "<r><p>" + 1_000 * "text " + "</p></r>"
    for _ in range(3):
        matcher.match(document)
    first, second = matcher.statistics()["most expensive"]
    assert (first["xpath"], first["ids"], first["subscriptions"]) == ("//p[not(contains(., 'zz'))]", [7, 11], 2)
    assert first["tried on"] == second["tried on"] == 3
    assert second["ids"] == [8]
    assert first["share"] > 0.9 and first["share"] + second["share"] == pytest.approx(1)
    explanation = matcher.explain(document, 11)
    assert explanation.cost.startswith("candidate in 3 documents so far, 9")
    assert str(explanation).endswith("of the verification work")
    assert explanation.as_dict()["cost"] == explanation.cost
    assert matcher.explain(document, 10).cost == "", "a plain path is never tried"
    subscriptions.remove(7)
    subscriptions.remove(11)
    assert [each["ids"] for each in matcher.statistics()["most expensive"]] == [[8]]
