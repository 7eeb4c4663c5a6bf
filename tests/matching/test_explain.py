"""Explanations: their words and places; `test_explain_properties.py` compares them with lxml."""

import json
from pathlib import Path

import pytest

import pathcast
from pathcast.documents import read, read_batch
from pathcast.matching import engines
from pathcast.matching.explain import Explanation, Finding
from pathcast.patterns import Namespaces
from tests import oracle

NEWS = """<news id="7" lang="en">
  <head><title>Rain</title></head>
  <body>
    <p id="7">It rained</p>
    <p id="8" k="abc"><q>x</q><q>y</q></p>
  </body>
  <body><p id="12"><em>5</em></p></body>
</news>
"""
FEED = '<f:story xmlns:f="urn:f" xmlns:g="urn:g"><g:p f:n="1"/></f:story>'


def explained(xpath: str, document: str | bytes = NEWS, namespaces: Namespaces = None) -> Explanation:
    subscriptions = pathcast.Subscriptions(namespaces=namespaces)
    number = subscriptions.add(xpath)
    return subscriptions.compile(engine="reference").explain(document, number)


def findings(explanation: Explanation) -> list[Finding]:
    found, waiting = [], list(explanation.steps)
    while waiting:
        found.append(waiting.pop())
        waiting.extend(found[-1].parts)
    return found


# A match.


def test_a_match_shows_the_elements_of_each_step() -> None:
    explanation = explained("/news//p/q")
    assert explanation.matches and explanation and explanation.misses == () and explanation.nearest == ""
    assert [(step.text, [str(place) for place in step.places]) for step in explanation.steps] == [
        ("/news", ["/news, line 1, column 1"]),
        ("//p", ["/news/body[1]/p[2], line 5, column 5"]),
        ("/q", ["/news/body[1]/p[2]/q[1], line 5, column 23", "/news/body[1]/p[2]/q[2], line 5, column 31"]),
    ]


def test_a_match_shows_each_predicate_with_the_value_found() -> None:
    step, below = explained("//p[@id > 7][contains(., 'x')][starts-with(q, 'x')][q = 'y']").steps
    values = {part.text: part.places[0].value for part in (*step.parts, *below.parts)}
    assert values == {"@id > 7": "8", "contains(., 'x')": "xy", "starts-with(q, 'x')": "x", ". = 'y'": "y"}


def test_only_a_few_elements_are_shown_and_all_are_counted() -> None:
    explanation = explained("//b", f"<a>{'<b/>' * 1000}</a>")
    (step,) = explanation.steps
    assert len(step.places) == 3 and step.count == 1000
    assert "; 997 more" in str(explanation)


def test_the_elements_of_a_match_belong_together() -> None:
    """The first `a` has no `b` with a `c`; the outer `a` of the second place has none either."""
    document = "<r><a><b/></a><a><x><a><b><c/></b></a></x></a></r>"
    assert [step.places[0].path for step in explained("//a/b/c", document).steps] == [
        "/r/a[2]/x/a",
        "/r/a[2]/x/a/b",
        "/r/a[2]/x/a/b/c",
    ]


def test_elements_that_are_not_part_of_a_match_are_not_counted() -> None:
    document = "<r><b/><a><b/></a><x><a><b/></a></x></r>"
    assert [step.count for step in explained("/r/a/b", document).steps] == [1, 1, 1]
    assert [step.count for step in explained("/r//a/b", document).steps] == [1, 2, 2]
    assert [step.count for step in explained("//x//b", document).steps] == [1, 1]


@pytest.mark.parametrize(
    ("xpath", "document", "expected"),
    [
        ("//b[contains(., 'yz')]", "<a><b>xy</b><c>z</c></a>", False),
        ("//a[contains(., 'yz')]", "<a><b>xy</b><c>z</c></a>", True),
        ("//c[contains(., 'aa')]", "<r><b>aa</b><c>a</c><c>aa</c></r>", True),
        ("//c[contains(//b, 'x')]", "<r><b>x</b><b>y</b><c/></r>", True),
        ("//c[contains(//b, 'y')]", "<r><b>x</b><b>y</b><c/></r>", False),
        ("//c[contains(/r//b/@n, 'y')]", "<r><b/><b n='y'/><c/></r>", True),
        ("//a[starts-with(.//b/c, 'x')]", "<a><b/><d><b><c>x</c></b></d><b><c>y</c></b></a>", True),
        ("//a[starts-with(.//b/c, 'y')]", "<a><b/><d><b><c>x</c></b></d><b><c>y</c></b></a>", False),
        ("/a[starts-with(.//b, 'x')]", "<a><d><e><b>x</b></e></d></a>", True),
        ("/a[starts-with(.//a, 'y')]", "<a>y<a>x</a></a>", False),
        ("//a[contains(.//text(), 'y')]", "<a><b>x</b>y</a>", False),
        ("//a[contains(text(), 'y')]", "<a><b>x</b>y</a>", True),
        ("//a[contains(.//@n, '2')]", "<a><b n='1'/><a n='2'/></a>", True),
        ("/a[contains(.//@n, '2')]", "<a><b n='1'/><a n='2'/></a>", False),
    ],
)
def test_what_functions_look_at_is_what_xpath_looks_at(xpath: str, document: str, expected: bool) -> None:
    assert oracle.matches(xpath, document.encode()) == expected
    assert explained(xpath, document).matches == expected


def test_nodes_of_different_kinds_are_told_apart() -> None:
    """The element `q` and its attribute both have the number 1."""
    (step,) = explained("/a[q[@n = 5] or x]", "<a n='0'><q n='5'/></a>").steps
    (alternative,) = step.parts[0].parts
    assert alternative.places[0].path == "/a/q"
    assert alternative.parts[0].places[0].path == "/a/q/@n"


def test_every_document_matches_the_document() -> None:
    assert str(explained("/")) == "subscription 1 matches: /\n  every document matches it"


# A miss.


@pytest.mark.parametrize(
    ("xpath", "nearest"),
    [
        ("//p[@id = 9]", "`@id` is 8, wanted 9, line 5"),
        ("//p[@id > 100]", "`@id` is 12, wanted more than 100, line 7"),
        ("//p[@id < -3.5]", "`@id` is 7, wanted less than -3.5, line 4"),
        ("//p[@id >= 13]", "`@id` is 12, wanted at least 13, line 7"),
        ("//p[@id <= 6]", "`@id` is 7, wanted at most 6, line 4"),
        ("/news[@id != 7]", "`@id` is 7, wanted anything but 7, line 1"),
        ("/news[@lang = 5]", "`@lang` is 'en', not a number, wanted 5, line 1"),
        ("/news[@lang = 'EN']", "`@lang` is 'en', wanted 'EN' (only the case differs), line 1"),
        (
            "//p[text() = 'it rained ']",
            "`text()` is 'It rained', wanted 'it rained ' (only case and spaces differ), line 4",
        ),
        ("//q[. = 'z']", "`q` is 'x', wanted 'z', line 5"),
        ("//p[q = 'z']", "`q` is 'x', wanted 'z', line 5"),
        ("//p[contains(q, 'y')]", "the first `q` is 'x', does not contain 'y', line 5"),
        (
            "//title[starts-with(., 'rain')]",
            "`title` is 'Rain', does not start with 'rain' (only the case differs), line 2",
        ),
        ("/news/title", "no child `title` (children: head, body), line 1 (found deeper, line 2)"),
        ("//q/p", "no child `p` (there are no children), line 5 (found elsewhere, line 4)"),
        ("//head//p", "no `p` below, line 2 (found elsewhere, line 4)"),
        ("//P", "the document has no `P` (found with the spelling `p`, line 4)"),
        ("/nitf", "the root element is `news`, wanted `nitf`, line 1"),
        ("/p", "the root element is `news`, wanted `p`, line 1 (found deeper, line 4)"),
        ("//em/@id", "no attribute `id` (there are no attributes), line 7 (found elsewhere, line 1)"),
        ("/news/@k", "no attribute `k` (attributes: id, lang), line 1 (found deeper, line 5)"),
        ("//em[.//em]", "no `em` below, line 7"),
        ("//head//head[p]", "no `head` below, line 2"),
        ("//q[q]", "no child `q` (there are no children), line 5"),
        ("//em//@k", "no attribute `k` here or below, line 7 (found elsewhere, line 5)"),
        ("//@none", "the document has no attribute `none`"),
        ("//body[2]/x".replace("[2]", "[not(q)]"), "no child `x` (children: p), line 3"),
        ("/@id", "the document node has no attributes; only elements do (found deeper, line 1)"),
        ("/text()", "the document node has no text; only elements do"),
        ("//em/*", "no child element (there are no children), line 7"),
        ("//p[@id < 'x']", "cannot hold in any document, line 1"),
        ("//p[not(@id)]", "`@id` holds but must not (found '7'), line 4"),
        ("/*[not(//em)]", "`//em` holds but must not, line 7"),
        ("//p[//none]", "the document has no `none`"),
        ("//p[/news/@id = 8]", "`@id` is 7, wanted 8, line 1"),
    ],
)
def test_the_nearest_miss_is_said_in_a_sentence(xpath: str, nearest: str) -> None:
    explanation = explained(xpath)
    assert not explanation.matches and not explanation
    assert explanation.nearest == nearest
    assert str(explanation).endswith(f"nearest miss: {nearest}")


@pytest.mark.parametrize("operator", ["=", "<"])
def test_any_number_is_nearer_than_what_is_none(operator: str) -> None:
    explanation = explained(f"//b[@n {operator} 5]", "<a><b n='x'/><b n='1e999'/></a>")
    assert explanation.nearest.startswith("`@n` is 1e999, wanted ")


def test_the_steps_before_the_miss_are_shown_with_what_satisfied_them() -> None:
    explanation = explained("/news/body/p/em/x[y]/z")
    assert [(step.text, step.holds) for step in explanation.steps] == [
        ("/news", True),
        ("/body", True),
        ("/p", True),
        ("/em", True),
        ("/x", False),
    ]
    assert explanation.steps[3].places[0].path == "/news/body[2]/p/em"


def test_predicates_are_tried_in_order_on_what_is_left() -> None:
    """Each predicate holds for some `p`, and none has both."""
    (step,) = explained("//p[@k = 'abc'][@id = 12]").steps
    assert [(part.text, part.holds) for part in step.parts] == [("@id = 12", True), ("@k = 'abc'", False)]
    assert step.parts[1].reason == "no attribute `k` (attributes: id)"
    assert step.parts[1].places[0].path == "/news/body[2]/p"


def test_of_an_or_every_alternative_is_shown() -> None:
    explanation = explained("//p[@id = 1 or q = 'z' or em > 7]")
    assert explanation.nearest == (
        "`@id` is 7, wanted 1, line 4; `em` is 5, wanted more than 7, line 7; `q` is 'x', wanted 'z', line 5"
    )


def test_of_a_not_the_element_that_must_not_be_there_is_shown() -> None:
    (miss,) = explained("/news[not(body/p[em])]").misses
    assert [place.path for place in miss.places] == ["/news/body[2]/p/em"]


def test_why_a_not_holds_is_shown() -> None:
    (step,) = explained("//p[not(@id = 7)][not(q)]").steps
    inside = {part.text: part.parts[0].reason for part in step.parts}
    assert inside == {"not(@id = 7)": "`@id` is 12, wanted 7", "not(q)": "no child `q` (children: em)"}


def test_the_furthest_place_counts_not_the_first() -> None:
    document = "<r><a/><a><b/></a><a><b><c n='1'/></b></a></r>"
    explanation = explained("//a/b/c[@n = 2]", document)
    assert explanation.nearest == "`@n` is 1, wanted 2, line 1"
    assert explanation.misses[0].places[0].path == "/r/a[3]/b/c/@n"


# Names.


def test_names_have_the_prefixes_of_the_subscriptions() -> None:
    explanation = explained("/s:story/Q{urn:g}p[@s:n = 1]", FEED, {"s": "urn:f"})
    assert [step.places[0].path for step in explanation.steps] == ["/s:story", "/s:story/Q{urn:g}p"]
    assert explanation.steps[1].parts[0].places[0].path == "/s:story/Q{urn:g}p/@s:n"
    assert explanation.pattern == "/s:story/Q{urn:g}p[@s:n = 1]"


def test_ignored_namespaces_are_not_shown() -> None:
    explanation = explained("/story/p/@n", FEED, "ignore")
    assert [step.places[0].path for step in explanation.steps] == ["/story", "/story/p", "/story/p/@n"]


def test_a_name_in_another_namespace_is_pointed_out() -> None:
    assert "(found in the namespace urn:f, line 1)" in explained("/story", FEED).nearest
    assert "(found in no namespace, line 1)" in explained("/f:news", "<news/>", {"f": "urn:f"}).nearest
    assert explained("/news/Title").nearest == "no child `Title` (children: head, body), line 1"


# Places.


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "iso-8859-1"])
def test_lines_and_columns_count_as_those_of_errors_do(encoding: str) -> None:
    document = f"<?xml version='1.0' encoding='{encoding}'?>\r\n<é>\r<b/>é<c/>\n\n  <d/></é>".encode(encoding)
    found = {step: str(explained(f"//{step}", document).steps[0].places[0]) for step in "bcd"}
    assert found == {"b": "/é/b, line 3, column 1", "c": "/é/c, line 3, column 6", "d": "/é/d, line 5, column 3"}


def test_lines_are_right_beyond_the_pieces_that_are_decoded_at_once() -> None:
    """Pieces have 1 MiB; the first one ends at each byte of the text in turn."""
    text = "\r\n\r\né<b/>\r\n\n<c/>\r<d/></a>"
    whole = [str(explained(f"//{name}", "<a>" + text)) for name in "bcd"]
    for before in range(len(text.encode())):
        document = "<a>".ljust((1 << 20) - before) + text
        assert [str(explained(f"//{name}", document)) for name in "bcd"] == whole


def test_text_nodes_are_numbered() -> None:
    step = explained("/a/text()", "<a>x<b/>y<!-- -->z</a>").steps[1]
    assert [(place.path, place.value) for place in step.places] == [
        ("/a/text()[1]", "x"),
        ("/a/text()[2]", "y"),
        ("/a/text()[3]", "z"),
    ]


def test_long_values_are_cut_and_nothing_acts_on_the_terminal() -> None:
    (miss,) = explained("/a[. = 'y']", "<a>\n\t" + "x" * 10_000 + "</a>").misses
    assert len(miss.places[0].value or "") == 201
    assert len(miss.reason) < 120 and "\n" not in miss.reason


# From everywhere.


@pytest.mark.parametrize("engine", engines())
def test_every_engine_explains_alike_and_so_does_its_index(engine: str, tmp_path: Path) -> None:
    subscriptions = pathcast.Subscriptions(namespaces={"f": "urn:f"})
    subscriptions.add_many(["//f:a[b or c]/d", "//x"], subscribers=["ada", None], ids=[70, 5])
    matcher = subscriptions.compile(engine=engine)
    matcher.save(tmp_path / "index")
    opened = pathcast.open_index(tmp_path / "index")
    document = b"<r xmlns:g='urn:f'><g:a><b/></g:a></r>"
    for number in (70, 5):
        assert opened.explain(document, number) == matcher.explain(document, number)
    explanation = opened.explain(document, 70)
    assert (explanation.id, explanation.subscriber, explanation.xpath) == (70, "ada", "//f:a[b or c]/d")
    assert explanation.nearest == "no child `d` (children: b), line 1"


def test_what_was_replaced_is_explained_as_it_is_now() -> None:
    subscriptions = pathcast.Subscriptions()
    matcher = subscriptions.compile()
    number = subscriptions.add("//a")
    assert not matcher.explain("<b/>", number)
    subscriptions.replace(number, "//b")
    assert matcher.explain("<b/>", number)


def test_a_document_of_a_batch_is_explained_by_itself() -> None:
    subscriptions = pathcast.Subscriptions()
    number = subscriptions.add("/a/b[. = 'y']")
    batch = read_batch(["<a><b>x</b></a>", "<a>\n<b k='1'>y</b></a>", "<a><b>z</b></a>"])
    matcher = subscriptions.compile()
    found = [matcher.explain(document, number) for document in batch]
    assert [each.matches for each in found] == [False, True, False]
    assert str(found[1].steps[1].places[0]) == "/a/b, line 2, column 1"
    assert matcher.explain(read("<a><b>y</b></a>"), number).matches


def test_a_file_is_explained(tmp_path: Path) -> None:
    (tmp_path / "a.xml").write_text("<a/>")
    subscriptions = pathcast.Subscriptions()
    assert subscriptions.compile().subscriptions is subscriptions
    number = subscriptions.add("/a")
    assert subscriptions.compile().explain(tmp_path / "a.xml", number).matches


def test_an_unreadable_document_raises_its_error() -> None:
    with pytest.raises(pathcast.DocumentError, match="mismatched tag"):
        explained("//a", "<a><b></a>")
    unread = read_batch(["<a><b></a>"], errors="return")[0]
    subscriptions = pathcast.Subscriptions()
    number = subscriptions.add("//a")
    with pytest.raises(pathcast.DocumentError, match="mismatched tag"):
        subscriptions.compile().explain(unread, number)


@pytest.mark.parametrize(
    ("ids", "said"),
    [
        ([], "there are no subscriptions"),
        ([3], "the known ids are 3"),
        ([9, 3], "the known ids are 3, 9"),
        (range(5, 2005), "there are 2,000 subscriptions, with ids from 5 to 2004"),
    ],
)
def test_an_unknown_id_is_told_what_ids_there_are(ids: list[int], said: str) -> None:
    subscriptions = pathcast.Subscriptions()
    subscriptions.add_many(["//a"] * len(ids), ids=list(ids))
    matcher = subscriptions.compile()
    for unknown in (2, "3"):
        with pytest.raises(KeyError) as caught:
            matcher.explain("<a/>", unknown)  # type: ignore[arg-type]
        assert caught.value.args[0] == f"unknown subscription id {unknown!r}; {said}"


def test_an_explanation_is_a_dictionary_that_json_carries() -> None:
    explanation = explained("//p[@id = 1 or not(q)]/x")
    shown = explanation.as_dict()
    assert json.loads(json.dumps(shown)) == shown
    assert shown["matches"] is False and shown["nearest"] == explanation.nearest
    assert shown["steps"][1]["elsewhere"] is None
    assert shown["steps"][0]["places"][0] == {"path": "/news/body[1]/p[1]", "line": 4, "column": 5, "value": None}
