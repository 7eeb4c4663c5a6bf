"""Value tests of the automaton: values that a document lacks cost nothing, and values that it has are found."""

from random import Random
from time import process_time

import pytest

from pathcast import Subscriptions
from pathcast.documents import Names
from pathcast.matching import Matcher, Tuning
from pathcast.matching.automaton.values.required_value_tests import demands
from pathcast.matching.automaton.values.value_test_table import DemandTable
from pathcast.patterns import parse

MANY = 500
# The pattern with a number, a document that has all but the values, and one that has the value 7.
KINDS = {
    "text of an attribute": ("/a/b[@x = 'v{}']", "<a><b x='w'/></a>", "<a><b x='v7'/></a>"),
    "number of an attribute": ("/a/b[@x = {}]", "<a><b x='-1'/></a>", "<a><b x=' 7.0 '/></a>"),
    "attribute of whichever element": ("/a//*[@x = 'v{}']", "<a><b x='w'/></a>", "<a><c><b x='v7'/></c></a>"),
    "attribute at any depth": ("/a[.//@x = 'v{}']", "<a><b x='w'/></a>", "<a><c><b x='v7'/></c></a>"),
    "value of an element": ("/a[b = 'v{}']", "<a><b>w</b></a>", "<a><b>v<i>7</i></b></a>"),
    "value of whichever element": ("/a/*[. = 'v{}']", "<a><b>w7</b><c>v</c></a>", "<a><q>v<i>7</i></q></a>"),
    "value at any depth": ("/a[b]//*[. = 'v{}']", "<a><b>w7</b></a>", "<a><b><c>v7</c>8</b></a>"),
    "number of an element": ("/a/b[. = {}]", "<a><b>-1</b></a>", "<a><b>7</b></a>"),
    "a text node": ("/a/b[text() = 'v{}']", "<a><b>w<i/></b></a>", "<a><b>w<i/>v7</b></a>"),
    "at least": ("/a/b[@x >= {}0]", "<a><b x='-1'/></a>", "<a><b x='9.5'/><b x='w'/></a>"),
    "at most": ("/a/b[@x <= -{}0]", "<a><b x='1'/></a>", "<a><b x='-9.5'/></a>"),
    "more, of an element": ("/a[b > {}0]", "<a><b>-1</b></a>", "<a><b>9</b></a>"),
    "contains": ("/a/b[contains(@x, 'word {} ')]", "<a><b x='words'/></a>", "<a><b x='a word 7 here'/></a>"),
    "contains, of an element": (
        "/a[contains(., 'word{}.')]",
        "<a><b>words</b></a>",
        "<a><b>wo</b>r<!-- c -->d<i>7</i>.</a>",
    ),
    "contains, of the first node of a path": (
        "/a[contains(b, 'word {} ')]",
        "<a><b>words</b></a>",
        "<a><b>a word 7 here</b></a>",
    ),
    "starts-with": ("/a/b[starts-with(@x, 'word{}.')]", "<a><b x='words'/></a>", "<a><b x='word7.'/></a>"),
}


def counted(matcher: Matcher, document: str) -> tuple[list[int], int]:
    """The ids that a document matches, and the number of candidates."""
    before = matcher.statistics()["candidates"]
    ids = matcher.match(document).ids.tolist()
    return ids, matcher.statistics()["candidates"] - before


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_patterns_whose_value_a_document_lacks_cost_nothing(kind: str) -> None:
    pattern, without, having = KINDS[kind]
    subscriptions = Subscriptions()
    subscriptions.add_many([pattern.format(number) for number in range(MANY)])
    matcher = subscriptions.compile()
    assert counted(matcher, without) == ([], 0)
    ids, looked_at = counted(matcher, having)
    reference = subscriptions.compile(engine="reference").match(having).ids.tolist()
    assert ids == reference != []
    assert looked_at < 30, "of those that wait for other values hardly any is looked at"


def test_the_value_that_documents_hardly_ever_have_is_waited_for() -> None:
    subscriptions = Subscriptions(tuning=Tuning(first_selection=32))
    # Before any document, the attribute with more tested values seems the rarer one: here it is not.
    subscriptions.add_many([f"/a[@often = 'v{number % 50}'][@seldom = '{number % 3}']" for number in range(300)])
    subscriptions.add_many([f"/a[@often = 'w{number}']" for number in range(100)])
    matcher = subscriptions.compile()
    document = "<a often='v1' seldom='never'/>"
    _, first = counted(matcher, document)
    for _ in range(40):
        assert counted(matcher, document)[0] == []
    assert counted(matcher, document) == ([], 0)
    assert first > 0
    assert matcher.match("<a often='v1' seldom='1'/>").ids.tolist() == [
        number + 1 for number in range(300) if number % 50 == 1 and number % 3 == 1
    ]


def test_a_number_in_very_much_text_is_still_a_number() -> None:
    subscriptions = Subscriptions()
    subscriptions.add_many(["/a/b[. = 5]", "/a/b[. > 4]", "/a/b[. < 4]", "/a[b = 6]", "/a/b[. = '5']"])
    matcher = subscriptions.compile()
    long = " " * 3000 + "5" + "\n" * 3000
    assert matcher.match(f"<a><b>{long}</b></a>").ids.tolist() == [1, 2]


def test_values_under_not_and_beside_alternatives_without_one_are_never_waited_for() -> None:
    names = Names()
    for text in (
        "/a[not(@x = 1)]", "/a[@x != 'v']", "//*[. = 1]", "/a[contains(., 'abc')]", "/a[@x = 1 or @y]",
        "/a[@x = 1 or not(@y = 2)]", "/a[not(@x = 1 or @y = 2)]", "/a[@x = 1 or b[contains(., 'abc')]]",
    ):  # fmt: skip
        assert demands(parse(text), names) == [[[]]], text
    (outright,), *others = demands(parse("/a[@x = 1][b > 2][text() = 'v'][contains(c, 'four')]/d[. = 'w']"), names)
    assert len(outright) >= 4 and not others


def test_an_or_is_a_clause_with_the_tests_of_each_alternative() -> None:
    names = Names()
    for text, sizes in (
        ("/a[@x = 1 or @y = 2]", [1, 1]),
        ("/a[@x = 1 and b = 3 or @y = 2 and not(c)]", [1, 2]),
        ("/a[(@x = 1 or @x = 2) and (b or c) or @y = 2]", [1, 1, 1]),
        ("/a[/r/@x = 1 or b[contains(., 'four')]]", [1, 1]),
    ):
        (outright,), clause = demands(parse(text), names)
        assert not outright and sorted(map(len, clause)) == sizes, text


def test_equal_tests_of_different_patterns_are_one() -> None:
    table = DemandTable(Names())
    ((first,),), ((second,),) = (table.add(parse(text)) for text in ("/a/b[@x = 'v']", "//b[@x = 'v'][@y > 3]"))
    assert first == second[:1] and len(table) == 2


def test_not_a_number_is_passed_over() -> None:
    subscriptions = Subscriptions()
    subscriptions.add_many(["/a[@x > 3]", "/a[@x < 3]", "/a[@x = 3]", "/a[@x != 3]"])
    matcher = subscriptions.compile()
    for value, wanted in {"w": [4], "": [4], "NaN": [4], "3": [3], "1e99": [1, 4], "-0": [2, 4]}.items():
        assert matcher.match(f"<a x='{value}'/>").ids.tolist() == wanted, value


FIRSTS = [
    "/a[contains(b, 'x')]",
    "/a[contains(b/c, 'x')]",
    "//*[contains(text(), 'x')]",
    "//b[starts-with(.//@k, 'x')]",
    "/a[contains(//c, 'x')]",
    "/a[contains(*[@k], 'x') or contains(b/text(), 'y')]",
    "/a[not(contains(b, 'x'))]",
    "/a[b[contains(c, 'x')]]",
    "/a[contains(/, 'xy')]",
]


def test_only_the_first_node_of_a_path_counts_and_the_kernel_finds_it() -> None:
    subscriptions = Subscriptions()
    subscriptions.add_many(FIRSTS)
    matcher, reference = subscriptions.compile(), subscriptions.compile(engine="reference")
    documents = [
        "<a><b>x</b><b>y</b></a>",
        "<a><b>y</b><b>x</b></a>",
        "<a>y<i>x</i>x<b k='y'><c k='x'>x</c></b></a>",
        "<a><b><c>y</c><c>x</c></b><b k='x'><c>x</c></b>xy</a>",
        "<a k='x'><i k='y'>x</i><b k='xx'>y<c>x</c></b></a>",
        "<b k='x'/>",
    ]
    answers = [matcher.match(document).ids.tolist() for document in documents]
    assert answers == [reference.match(document).ids.tolist() for document in documents]
    assert len({tuple(answer) for answer in answers}) == len(documents)


MANY_FIRSTS = {
    "a child": ("//i[contains(t, 'some word')]", None, "<i><t>x</t></i>"),
    "one further down": ("//i[contains(.//t/u, 'some word')]", None, "<i><a><t><u>x</u></t></a></i>"),
    "under not": ("//i[not(contains(t, 'x'))]", None, "<i><t>x</t></i>"),
    "an attribute": ("//i[contains(@t, 'some word')]", "ignore", "<i t='x'/>"),
}


@pytest.mark.parametrize("kind", MANY_FIRSTS)
def test_first_nodes_of_many_elements_cost_each_its_own(kind: str) -> None:
    """And not all patterns before it, which would cost hundreds of times as much."""
    xpath, namespaces, item = MANY_FIRSTS[kind]
    document = f"<r><b>some word</b>{20_000 * item}</r>"
    times = []
    for text in (xpath, "//i[contains(., 'some word')]"):
        subscriptions = Subscriptions(namespaces=namespaces)  # type: ignore[arg-type]
        subscriptions.add(text)
        matcher = subscriptions.compile()
        matcher.match("<i t='some word'><t>some word<u/></t></i>")
        began = process_time()
        assert matcher.match(document).ids.tolist() == []
        times.append(process_time() - began)
    assert times[0] < 20 * times[1]


def test_a_text_that_is_nearly_found_everywhere_costs_no_more_than_its_length() -> None:
    """Otherwise it would cost hundreds of times as much."""
    nearly, times = "a" * 3_000, []
    for wanted in (nearly + "b", "aab"):
        subscriptions = Subscriptions()
        subscriptions.add(f"//i[contains(., '{wanted}')]")
        matcher = subscriptions.compile()
        for end, ids in (("b", [1]), ("ba", [1]), ("c", [])):
            began = process_time()
            assert matcher.match(f"<r><b>aaaaab</b><i>{100 * nearly}{end}</i></r>").ids.tolist() == ids
        times.append(process_time() - began)
    assert times[0] < 20 * times[1]


@pytest.mark.parametrize(
    "test", ["contains(., '{}')", "contains(., '{}') or q", "starts-with(., '{}') or q", ". = '{}' or q", ". > 5 or q"]
)
@pytest.mark.parametrize("inside", ["{}", "{}<b/>{}"])
def test_text_inside_many_elements_is_not_read_for_each_of_them(test: str, inside: str) -> None:
    """Otherwise it would cost hundreds of times as much."""
    text = inside.format(*2 * ["need edle le i in it dle " * 4_000])
    subscriptions = Subscriptions()
    subscriptions.add(f"//a[{test}]".format("needle in it"))
    matcher, times = subscriptions.compile(), []
    for depth in (1, 1, 900):
        began = process_time()
        assert not matcher.match(f"<r>{depth * '<a>'}{text}{depth * '</a>'}</r>")
        times.append(process_time() - began)
    assert times[2] < 20 * times[1]


def test_a_text_is_found_wherever_it_begins_and_ends() -> None:
    """In nested elements, across the ends of text nodes, repeatedly."""
    subscriptions = Subscriptions()
    subscriptions.add_many(
        [f"//{name}[{test}]" for name in "pqr*" for test in ("contains(., 'abab')", "not(contains(., 'abab'))")]
    )
    matcher, reference = subscriptions.compile(), subscriptions.compile(engine="reference")
    random, answers = Random(3), set()
    for _ in range(300):
        pieces = [random.choice(["a", "b", "ab", "ba", "<p>", "<q>", "<r>", "</>", "<p/>"]) for _ in range(25)]
        document, opened = "<r>", ["r"]
        for piece in pieces:
            if piece == "</>":
                document += f"</{opened.pop()}>" if len(opened) > 1 else "ab"
            else:
                document += piece
                opened += [piece[1]] if piece[0] == "<" and piece[-2] != "/" else []
        document += "".join(f"</{name}>" for name in reversed(opened))
        found = matcher.match(document).ids.tolist()
        assert found == reference.match(document).ids.tolist(), document
        answers.add(tuple(found))
    assert len(answers) > 10


def test_conditions_that_need_more_room_than_there_is_get_it() -> None:
    many = "".join(f"[b{number} or c{number}]" for number in range(40))
    deep = "[b" * 30 + "]" * 30
    subscriptions = Subscriptions(tuning=Tuning(element_sets=8, element_set_words=8, nested_conditions=2))
    subscriptions.add_many([f"/a{many}", f"/a{many}[d]", f"/a{deep}", "/a[c][d]/e", f"/a[not(b{deep})]"])
    matcher, reference = subscriptions.compile(), subscriptions.compile(engine="reference")
    wide = "".join(f"<{'bc'[number % 2]}{number}/>" for number in range(40))
    tower = "<b>" * 30 + "</b>" * 30
    for document in (f"<a>{wide}</a>", f"<a>{wide}<d/></a>", f"<a>{tower}</a>", f"<a>{wide}{tower}<c/><d/><e/></a>"):
        assert matcher.match(document).ids.tolist() == reference.match(document).ids.tolist(), document
    assert matcher.match(f"<a>{wide}{tower}<c/><d/><e/></a>").ids.tolist() == [1, 2, 3, 4, 5]


def test_of_the_pieces_of_a_text_the_rarest_is_waited_for() -> None:
    subscriptions = Subscriptions(tuning=Tuning(first_selection=32))
    subscriptions.add_many(["/a[contains(., 'often and seldom')]"])
    matcher = subscriptions.compile()
    for _ in range(40):
        matcher.match("<a>often and often</a>")
    assert counted(matcher, "<a>often and often</a>") == ([], 0)
    assert counted(matcher, "<a>so often and seldom</a>") == ([1], 1)
