"""String-values of nested elements: results derived from one for another agree with lxml."""

from random import Random

from pathcast import Subscriptions
from tests import oracle

MOST = 12
NEEDLES = ("a", "ab", "aab", "bb", "abab")
# Nested elements `n`, each identified by a child of its own.
FORMS = (
    "//n[contains(., '{}')]/e{}",
    "//n[not(contains(., '{}'))]/e{}",
    "//n[contains(n, '{}')]/e{}",
    "//n[contains(.//n/n, '{}') or starts-with(., 'ba')]/e{}",
    "//n[starts-with(., '{}')]/e{}",
    "//n[. = '{}']/e{}",
    "//n[. != '{}'][not(. > 0)]/e{}",
)
PIECES = ("a", "b", "ab", "ba", "&#97;", "&#98;a", "<!-- c -->", "<![CDATA[b]]>", "", "7")


def nested(random: Random, numbers: list[int]) -> str:
    """An element with text and nested elements, each with a number of its own."""
    number = numbers.pop()
    inside = [f"<e{number}/>", *random.choices(PIECES, k=random.randrange(4))]
    while numbers and random.random() < 0.7:
        inside.append(nested(random, numbers))
    random.shuffle(inside)
    return f"<n>{''.join(inside)}</n>"


def test_texts_are_found_in_the_elements_that_have_them() -> None:
    random = Random(3)
    documents = [nested(random, list(range(MOST))) for _ in range(15)]
    xpaths = [form.format(needle, number) for form in FORMS for needle in NEEDLES for number in range(MOST)]
    questions, trees = [oracle.ask(xpath) for xpath in xpaths], [oracle.read(text.encode()) for text in documents]
    wanted = [[i + 1 for i, ask in enumerate(questions) if oracle.answer(ask, tree)] for tree in trees]
    subscriptions = Subscriptions()
    subscriptions.add_many(xpaths)
    matcher = subscriptions.compile()
    assert [matches.ids.tolist() for matches in matcher.match_many(documents)] == wanted
