"""Every engine agrees with lxml on random documents and random patterns over the whole fragment.

A round is a handful of documents, each in a few variants, and patterns drawn from them; each pattern is matched against
each document. lxml reads each document and compiles each pattern once; then every engine gets all documents in a batch,
the default one twice, since it learns from them. A few pairs are explained, too. On a difference, the pattern and the
document are minimised while they still differ, and reported with both answers.
"""

import functools
import itertools
import re
import sys
from dataclasses import dataclass
from random import Random

import pytest

import pathcast
from pathcast.documents import read_batch
from pathcast.matching import Tuning, engines
from tests import oracle
from tests.corpus import Namespaces
from tests.generators import NAMESPACES, Document, Path, expression, random_document, random_pattern, shrunk, varied

DOCUMENTS, VARIANTS, PATTERNS = 10, 5, 200
PAIRS_A_ROUND = DOCUMENTS * VARIANTS * PATTERNS
EXPLAINED = 40

Answers = list[set[int]]
"""For each document the indices of the expressions that it matches."""


@dataclass(frozen=True)
class Round:
    namespaces: Namespaces
    documents: tuple[Document, ...]
    patterns: tuple[Path, ...]
    expressions: tuple[str, ...]
    expected: tuple[tuple[int, ...], ...]
    """For each document the indices of the patterns that match according to lxml."""


@functools.lru_cache(maxsize=4)
def drawn(seed: int) -> Round:
    """The round with this seed; every third one ignores namespaces, every fourth is full of odd numbers."""
    random = Random(seed)
    namespaces: Namespaces = "ignore" if seed % 3 == 0 else NAMESPACES
    bases = [random_document(random, odd=0.9 if seed % 4 == 0 else 0.3) for _ in range(DOCUMENTS)]
    documents = tuple(varied(random, base) for base in bases for _ in range(VARIANTS))
    trees = [oracle.read(document.data) for document in documents]
    patterns = tuple(random_pattern(random, random.choice(trees).getroot()) for _ in range(PATTERNS))
    expressions = tuple(expression(pattern, random) for pattern in patterns)
    questions = [oracle.ask(text, namespaces) for text in expressions]
    expected = tuple(
        tuple(index for index, question in enumerate(questions) if oracle.answer(question, tree)) for tree in trees
    )
    return Round(namespaces, documents, patterns, expressions, expected)


def compiled(engine: str, expressions: tuple[str, ...], namespaces: Namespaces) -> pathcast.Matcher:
    """A matcher in which the id of an expression is its index + 1."""
    subscriptions = pathcast.Subscriptions(namespaces=namespaces, tuning=Tuning(fewest_marked=0))
    subscriptions.add_many(expressions)
    return subscriptions.compile(engine=engine, entities="expand")


def found(engine: str, expressions: tuple[str, ...], documents: list[bytes], namespaces: Namespaces) -> list[Answers]:
    """The engine's answers for the documents as a batch; for the default engine, which learns, a second time."""
    matcher = compiled(engine, expressions, namespaces)
    offsets, ids = matcher.match_batch(read_batch(documents, entities="expand"))
    batch = [{int(number) - 1 for number in ids[begin:end]} for begin, end in itertools.pairwise(offsets)]
    assert sum(map(len, batch)) == len(ids), "an id is reported once per document"
    if engine != engines()[0]:
        return [batch]
    again = [{number - 1 for number in matches} for matches in matcher.match_many(documents)]
    return [batch, again]


@pytest.mark.slow
def test_engines_and_explanations_agree_with_lxml(seed: int) -> None:
    this = drawn(seed)
    documents = [document.data for document in this.documents]
    for engine in engines():
        for answers in found(engine, this.expressions, documents, this.namespaces):
            for document, answer, expected in zip(this.documents, answers, this.expected, strict=True):
                for index in sorted(answer.symmetric_difference(expected)):
                    text, pattern = this.expressions[index], this.patterns[index]
                    pytest.fail(report(engine, text, pattern, document, this.namespaces))
    matcher, random = compiled(engines()[0], this.expressions, this.namespaces), Random(seed)
    for _ in range(EXPLAINED):
        at, index = random.randrange(len(this.documents)), random.randrange(PATTERNS)
        explanation = matcher.explain(this.documents[at].data, index + 1)
        assert explanation.matches == (index in this.expected[at]), (this.expressions[index], this.documents[at].data)


@pytest.mark.slow
def test_patterns_match_a_fair_share_of_documents() -> None:
    """Otherwise the differential test would compare little but misses."""
    rounds = [drawn(seed) for seed in range(1, 7)]
    shares = [sum(map(len, each.expected)) / PAIRS_A_ROUND for each in rounds]
    assert 0.1 < sum(shares) / len(shares) < 0.6
    some = {index for each in rounds[:1] for matched in each.expected for index in matched}
    assert len(some) > PATTERNS / 3


@pytest.mark.slow
@pytest.mark.parametrize(
    "markup",
    [
        pytest.param(r"<(\w+)[^>]*>[^<]+<\w", id="mixed content"),
        pytest.param(r"\w<!\[CDATA\[[^]]", id="CDATA beside text"),
        pytest.param(r">[^<]*5[^<]*<!--[^>]*-->[^<]+<", id="a comment that splits text"),
        pytest.param(r"<\?p 5\?><!\[CDATA", id="a processing instruction that splits text"),
        pytest.param(r">[^<>]*&(word|number|empty);", id="entities in text"),
        pytest.param(r"=\"&(word|number|empty);\"", id="entities in attributes"),
        pytest.param(r"&markup;", id="elements in entities"),
        pytest.param(r"&split;", id="an entity of two text nodes"),
        pytest.param(r"&#x?[0-9A-F]+;", id="character references"),
        pytest.param(r" xmlns=\"\"", id="default namespace removed"),
        pytest.param(r" xmlns:p=\"urn:two\"", id="a prefix with another meaning"),
        pytest.param(r"=\"\"", id="empty values"),
        pytest.param(r"=\"\s+\"", id="values of spaces"),
        pytest.param(r"[\">] +-?[0-9]+ +[<\"]", id="numbers between spaces"),
        pytest.param(r"[\">][0-9]+e[0-9]", id="exponents"),
        pytest.param(r"[\">]\.5[\"<]", id="no digits before the point"),
        pytest.param(r"[\">]5\.[\"<]", id="no digits after the point"),
        pytest.param(r"[\">]-0[\"<]", id="negative zero"),
        pytest.param(r"[\">]\+[0-9]", id="a plus sign"),
        pytest.param(r"NaN|Infinity|0x5", id="words for numbers, and hexadecimal ones"),
        pytest.param(r"[٠-٩०-९０-９]", id="digits of other scripts"),
        pytest.param(r"[0-9]{30}", id="huge numbers"),
    ],
)
def test_documents_have_what_is_hard_about_documents(markup: str) -> None:
    assert any(re.search(markup, text) for text in texts())


@functools.cache
def texts() -> list[str]:
    random = Random(1)
    documents = [random_document(random, odd=random.choice((0.3, 0.9))) for _ in range(1_000)]
    return [str(document.root) for document in documents]


@pytest.mark.slow
def test_a_difference_is_reported_as_a_small_example(monkeypatch: pytest.MonkeyPatch) -> None:
    """With an engine that fails on every comment, minimisation leaves a comment and a minimal pattern."""

    def wrong(_: str, expressions: tuple[str, ...], documents: list[bytes], namespaces: Namespaces) -> list[Answers]:
        answers = [
            {
                index
                for index, text in enumerate(expressions)
                if oracle.matches(text, data, namespaces) != (b"<!-" in data)
            }
            for data in documents
        ]
        return [answers]

    monkeypatch.setattr(sys.modules[__name__], "found", wrong)
    with pytest.raises(pytest.fail.Exception) as caught:
        test_engines_and_explanations_agree_with_lxml(seed=1)
    shown = str(caught.value)
    assert "lxml differ" in shown
    assert shown.count("<!-") == 1
    assert len(shown) < 200


def report(engine: str, text: str, pattern: Path, document: Document, namespaces: Namespaces) -> str:
    """The smallest example that shows the difference."""

    def answers(text: str, document: Document) -> tuple[bool | str, bool | str]:
        data = document.data
        try:
            theirs: bool | str = oracle.matches(text, data, namespaces)
            ours = {bool(answer[0]) for answer in found(engine, (text,), [data], namespaces)}
            return ours.pop() if len(ours) == 1 else "now this, now that", theirs
        except oracle.Unanswerable as error:
            return False, f"rejected: {error}"
        except pathcast.PathcastError as error:
            return f"rejected: {error.reason}", theirs

    ours, theirs = answers(text, document)
    if ours == theirs:
        alone = "the pattern alone on the document alone gives the right answer: it is the company that makes it wrong"
        return f"{engine} and lxml differ on {text!r} and {document.data!r}, but {alone}"
    if answers(expression(pattern), document) == (ours, theirs):
        document = shrunk(document, lambda smaller: answers(text, smaller) == (ours, theirs))
        pattern = shrunk(pattern, lambda smaller: answers(expression(smaller), document) == (ours, theirs))
        text = expression(pattern)
    document = shrunk(document, lambda smaller: answers(text, smaller) == (ours, theirs))
    shown = document.data.decode(document.encoding or "utf-8")
    return f"{engine} and lxml differ\n  pattern   {text}\n  document  {shown}\n  {engine}: {ours}\n  lxml: {theirs}"


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """One test per round: a hundred thousand pairs, or a million with `--long`."""
    if "seed" in metafunc.fixturenames:
        pairs = 1_000_000 if metafunc.config.getoption("--long") else 100_000
        metafunc.parametrize("seed", range(1, pairs // PAIRS_A_ROUND + 1))
