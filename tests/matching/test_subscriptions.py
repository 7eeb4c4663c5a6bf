"""Subscriptions: ids, changes, files; and that a failed change changes nothing."""

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from pyarrow import parquet

import pathcast
from pathcast import LimitError, PatternError, Subscriptions
from pathcast.patterns import parse


def test_ids_count_from_one_and_are_never_given_again() -> None:
    subscriptions = Subscriptions()
    assert subscriptions.add("//a") == 1
    assert list(subscriptions.add_many(["//b", "//c"])) == [2, 3]
    subscriptions.remove(3)
    assert subscriptions.add("//d") == 4
    assert 3 not in subscriptions and 4 in subscriptions and len(subscriptions) == 3


def test_own_ids_may_come_in_any_order_and_new_ones_follow_the_largest() -> None:
    subscriptions = Subscriptions()
    assert list(subscriptions.add_many(["//a", "//b"], ids=[70, 5])) == [70, 5]
    assert subscriptions.add("//c") == 71
    assert subscriptions.add("//d", id=6) == 6
    subscriptions.remove(70)
    assert subscriptions.add("//e") == 72
    assert [s.id for s in subscriptions] == [5, 71, 6, 72]


@pytest.mark.parametrize("ids", [[0], [-1], [2**31], [1.5], ["1"], [True], [7], [1, 2]])
def test_an_id_that_cannot_be_is_refused(ids: list[int]) -> None:
    subscriptions = Subscriptions()
    subscriptions.add("//a", id=7)
    with pytest.raises(ValueError, match="id"):
        subscriptions.add_many(["//b"], ids=ids)
    assert len(subscriptions) == 1


def test_an_id_given_twice_at_once_is_refused() -> None:
    with pytest.raises(ValueError, match="twice"):
        Subscriptions().add_many(["//a", "//b"], ids=[4, 4])


def test_the_last_id_is_the_last() -> None:
    subscriptions = Subscriptions()
    assert subscriptions.add("//a", id=2**31 - 1) == 2**31 - 1
    with pytest.raises(LimitError, match="the next id would exceed"):
        subscriptions.add("//b")
    assert subscriptions.add("//b", id=3) == 3


def test_numpy_ids_are_ids() -> None:
    subscriptions = Subscriptions()
    subscriptions.add_many(["//a", "//b"], ids=np.array([3, 9], dtype=np.int64))
    assert [s.id for s in subscriptions] == [3, 9] and subscriptions[9].xpath == "//b"
    assert np.int32(9) in subscriptions and "9" not in subscriptions


def test_a_subscription_keeps_its_own_words() -> None:
    subscriptions = Subscriptions(namespaces={"f": "http://example.org/f"})
    words = ["a/b", "//a//*/b", " /a ", "f:x", "//p[ @k='v' ]", "/a/b"]
    subscriptions.add_many(words, subscribers=["ada", None, "bob", None, "ada", None])
    assert [(s.xpath, s.subscriber) for s in subscriptions] == list(
        zip(words, ["ada", None, "bob", None, "ada", None], strict=True)
    )
    assert subscriptions.subscribers == ["ada", "bob"]
    assert len(subscriptions.table) == 6


def test_adding_many_is_all_or_nothing() -> None:
    subscriptions = Subscriptions()
    with pytest.raises(PatternError) as caught:
        subscriptions.add_many(["//a", "//b[", "//c"])
    assert caught.value.index == 1 and len(subscriptions) == 0
    assert subscriptions.add("//z") == 1


def test_collecting_errors_adds_the_good_ones() -> None:
    subscriptions = Subscriptions()
    bad = subscriptions.add_many(
        ["//a", "//b[", "./c", "/d" * 300], subscribers=["x", "y", None, "z"], errors="collect"
    )
    assert [(error.index, type(error)) for error in bad] == [(1, PatternError), (3, LimitError)]
    assert [tuple(s) for s in subscriptions] == [(1, "//a", "x"), (2, "./c", None)]
    bad = subscriptions.add_many(["|", "//e"], ids=[10, 11], errors="collect")
    assert [error.index for error in bad] == [0] and 11 in subscriptions and 10 not in subscriptions


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda s: s.add_many("//a"), TypeError),
        (lambda s: s.add_many(["//a"], subscribers="ada"), TypeError),
        (lambda s: s.add_many(["//a"], subscribers=["ada", "bob"]), ValueError),
        (lambda s: s.add("//a", subscriber=""), ValueError),
        (lambda s: s.add_many(["//a"], subscribers=[5]), ValueError),
        (lambda s: s.add_many(["//a"], subscribers=[["ada"]]), ValueError),
        (lambda s: s.add_many(["//a"], errors="skip"), ValueError),
        (lambda s: s.remove(99), KeyError),
        (lambda s: s.replace(99, "//a"), KeyError),
        (lambda s: s.replace(1, "//a["), PatternError),
        (lambda s: s[99], KeyError),
        (lambda s: s.compile(engine="warp"), ValueError),
        (lambda s: Subscriptions(namespaces="all"), TypeError),  # type: ignore[arg-type]
        (lambda s: Subscriptions(namespaces={"f": 5}), TypeError),  # type: ignore[dict-item]
        (lambda s: Subscriptions(namespaces={"": "http://example.org"}), ValueError),
        (lambda s: s.add("//a", subscriber="\ud800"), ValueError),
        (lambda s: s.add("//a[. = '\ud800']"), PatternError),
    ],
)
def test_a_wrong_call_says_so_and_changes_nothing(call, error) -> None:
    subscriptions = Subscriptions()
    subscriptions.add("//kept", subscriber="ada")
    with pytest.raises(error):
        call(subscriptions)
    assert [tuple(s) for s in subscriptions] == [(1, "//kept", "ada")]


class Model(RuleBasedStateMachine):
    """Subscriptions compared with a dictionary, over any history of changes."""

    def __init__(self) -> None:
        super().__init__()
        self.subscriptions = Subscriptions()
        self.matcher = self.subscriptions.compile(engine="reference")
        self.model: dict[int, tuple[str, str | None]] = {}
        self.largest = 0

    expressions = st.sampled_from(["//a", "a", "/a/b", "//b[@x]", "//c", "/*", "//a[b or c]"])
    people = st.sampled_from([None, "ada", "bob", "cyd"])

    @rule(xpath=expressions, subscriber=people)
    def add(self, xpath: str, subscriber: str | None) -> None:
        added = self.subscriptions.add(xpath, subscriber)
        assert added == self.largest + 1
        self.largest = added
        self.model[added] = (xpath, subscriber)

    @rule(xpaths=st.lists(expressions, max_size=40), subscriber=people, start=st.integers(1, 200))
    def add_with_ids(self, xpaths: list[str], subscriber: str | None, start: int) -> None:
        free = [number for number in range(start, start + 300) if number not in self.model][: len(xpaths)]
        free.reverse()
        self.subscriptions.add_many(xpaths, [subscriber] * len(xpaths), free)
        self.model.update({number: (xpath, subscriber) for number, xpath in zip(free, xpaths, strict=True)})
        self.largest = max([self.largest, *free])

    @precondition(lambda self: self.model)
    @rule(data=st.data())
    def remove(self, data: st.DataObject) -> None:
        number = data.draw(st.sampled_from(sorted(self.model)))
        self.subscriptions.remove(number)
        del self.model[number]

    @precondition(lambda self: len(self.model) > 4)
    @rule()
    def remove_most(self) -> None:
        for number in sorted(self.model)[:-2]:
            self.subscriptions.remove(number)
            del self.model[number]

    @precondition(lambda self: self.model)
    @rule(data=st.data(), xpath=expressions)
    def replace(self, data: st.DataObject, xpath: str) -> None:
        number = data.draw(st.sampled_from(sorted(self.model)))
        self.subscriptions.replace(number, xpath)
        self.model[number] = (xpath, self.model[number][1])

    @invariant()
    def holds_what_the_dictionary_holds(self) -> None:
        assert len(self.subscriptions) == len(self.model)
        assert {s.id: (s.xpath, s.subscriber) for s in self.subscriptions} == self.model

    @invariant()
    def the_matcher_follows(self) -> None:
        matches = self.matcher.match(b"<a><b x='1'/></a>")
        wanted = {n: s for n, (x, s) in self.model.items() if x != "//c"}
        assert matches.ids.tolist() == sorted(wanted) and len(matches) == len(wanted)
        assert matches.subscribers == sorted({s for s in wanted.values() if s is not None})


TestAnyHistory = Model.TestCase
TestAnyHistory.settings = settings(max_examples=40, stateful_step_count=20, deadline=None)


# Files.


def test_a_text_file_gives_ids_by_line(tmp_path: Path) -> None:
    (tmp_path / "s.txt").write_bytes("\ufeff//a\r\n\n  //é  \n\r//b\r".encode())
    found = [tuple(s) for s in Subscriptions.read(tmp_path / "s.txt")]
    assert found == [(1, "//a", None), (3, "//é", None), (5, "//b", None)]


def test_csv_and_parquet_bring_ids_and_subscribers(tmp_path: Path) -> None:
    rows = [(9, "//a[@k = 'x,y']", "ada"), (4, "//b", None)]
    (tmp_path / "s.csv").write_text("subscriber,id,xpath\nada,9,\"//a[@k = 'x,y']\"\n,4,//b\n")
    (tmp_path / "s.csv.gz").write_bytes(gzip.compress((tmp_path / "s.csv").read_bytes()))
    table = pa.table({"id": [9, 4], "xpath": [row[1] for row in rows], "subscriber": ["ada", None]})
    parquet.write_table(table, tmp_path / "s.parquet")
    (tmp_path / "s.parquet.gz").write_bytes(gzip.compress((tmp_path / "s.parquet").read_bytes()))
    for name in ("s.csv", "s.csv.gz", "s.parquet", "s.parquet.gz"):
        assert [tuple(s) for s in Subscriptions.read(tmp_path / name)] == rows, name


def test_a_file_without_ids_counts(tmp_path: Path) -> None:
    (tmp_path / "s.csv").write_text("xpath\n//a\n//b\n")
    assert [s.id for s in Subscriptions.read(str(tmp_path / "s.csv"))] == [1, 2]


@pytest.mark.parametrize("wrong", [None, 5, b"/a"], ids=str)
def test_what_is_no_text_is_no_subscription(wrong: Any) -> None:
    subscriptions = Subscriptions()
    with pytest.raises(PatternError, match="a subscription must be a str, got "):
        subscriptions.add(wrong)
    refused = subscriptions.add_many(["/a", wrong], errors="collect")
    assert [error.index for error in refused] == [1] and len(subscriptions) == 1


def test_lines_that_begin_with_a_number_sign_are_comments_and_count(tmp_path: Path) -> None:
    (tmp_path / "s.txt").write_text("# news\n//a\n  \t# more: //b\n//c[. = '#1']\n#//d\n#")
    assert [tuple(s) for s in Subscriptions.read(tmp_path / "s.txt")] == [(2, "//a", None), (4, "//c[. = '#1']", None)]


def test_errors_that_are_collected_keep_no_parser_alive() -> None:
    (error,) = Subscriptions().add_many(["//a["], errors="collect")
    assert error.__traceback__ is None


def test_csv_has_no_comments(tmp_path: Path) -> None:
    (tmp_path / "s.csv").write_text("subscriber,xpath\n#sales,//a\n")
    assert [tuple(s) for s in Subscriptions.read(tmp_path / "s.csv")] == [(1, "//a", "#sales")]


INVALID = """id,xpath,subscriber
1,//a,ada
2,//b/!=,bob
1_0,//c,ada
٣,//d,ada
1,//e,ada
7,//f,ada,more
+8,//g,ada
,//h,ada
 9 ,//i,bob
10,//f:j,bob
"""


def test_all_invalid_rows_of_a_file_are_collected_with_their_lines(tmp_path: Path) -> None:
    (tmp_path / "s.csv").write_text(INVALID)
    subscriptions, errors = Subscriptions.read(tmp_path / "s.csv", errors="collect")
    assert [tuple(s) for s in subscriptions] == [(1, "//a", "ada"), (9, "//i", "bob")]
    whole = "id must be a whole number from 1 to 2,147,483,647"
    assert [(error.line, error.reason) for error in errors] == [
        (3, "expected a step, got '!='"),
        (4, f"{whole}, got '1_0'"),
        (5, f"{whole}, got '٣'"),
        (6, "id 1 is already in use in line 2; give each subscription its own id"),
        (7, "the row has 4 fields, but the heading has 3; quote fields that contain a comma"),
        (8, f"{whole}, got '+8'"),
        (9, f"{whole}, got ''"),
        (11, "the prefix 'f:' is not declared"),
    ]
    with pytest.raises(PatternError, match="^line 4: id must be a whole number from 1 to .*, got '1_0'"):
        Subscriptions.read(tmp_path / "s.csv")
    with pytest.raises(ValueError, match="errors must be 'raise' or 'collect', got 'skip'"):
        Subscriptions.read(tmp_path / "s.csv", errors="skip")  # type: ignore[call-overload]


@pytest.mark.parametrize(
    ("heading", "used"), [("id;xpath;subscriber", "';'"), ("id\txpath", r"'\t'"), ("xpath|id", "'|'")]
)
def test_a_csv_file_with_other_separators_says_so(heading: str, used: str, tmp_path: Path) -> None:
    file = tmp_path / "semi.csv"
    file.write_text(f"{heading}\n1;//a;ada\n")
    with pytest.raises(PatternError) as raised:
        Subscriptions.read(file)
    reason = f"{file} has no column 'xpath' (its columns: {heading}); separate columns with commas, not {used}"
    assert str(raised.value) == f"line 1: {reason}"


FAULTS = {
    "s.txt": (b"//a\n\n//b[\n", r"line 3, column 5"),
    "t.txt": (b"//a\n\xff\n", "not UTF-8"),
    "s.csv": (b"path\n//a\n", r"no column 'xpath' \(its columns: path\)"),
    "t.csv": (b"id,xpath\nx,//a\n", "line 2: id must be a whole number from 1 to 2,147,483,647, got 'x'"),
    "u.csv": (b"id,xpath\n1,//a\n2,//b[\n", "line 3, column 5"),
    "v.csv": (
        b"id,xpath\n1,//a\n1,//b\n",
        "line 3: id 1 is already in use in line 2; give each subscription its own id",
    ),
    "w.csv": (b"id,xpath\n-4,//a\n", "line 2: id must be a whole number from 1 to .*, got '-4'"),
    "quote.csv": (b'xpath,subscriber\n//a,ada\n//b,"bob\n//c,eve\n', "line 3: .*a quote in .* is not closed"),
    "comma.csv": (
        b"id,xpath\n1,//a[contains(b, 'c')]\n",
        "line 2: the row has 3 fields, but the heading has 2; quote fields that contain a comma",
    ),
    "twice.csv": (b"xpath,id,xpath\n//a,1,//b\n", "two columns 'xpath'"),
    "heading.csv": (b"x" * 200_000 + b",path\n", r"line 1: .*no column 'xpath' \(its columns: x{200}…"),
    "inner.csv": (b'id,xpath\n1,//a\n2,"//a[@b="c"]"\n', "line 3: the row is not CSV: .*double each quote"),
    "long.csv": (b'id,xpath\n1,//a\n\n2,"' + b"//a\n" * 50_000, "line 4: .*a quote in .* is not closed"),
    "s.parquet": (b"nonsense", "not Parquet"),
    "s.txt.gz": (b"nonsense", "cannot read"),
    "t.txt.gz": (gzip.compress(b"//a")[:10] + b"\xff" * 20, "cannot read .*invalid block type"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_faulty_file_names_its_line(name: str, tmp_path: Path) -> None:
    content, message = FAULTS[name]
    (tmp_path / name).write_bytes(content)
    with pytest.raises((PatternError, LimitError), match=message):
        Subscriptions.read(tmp_path / name)


@pytest.mark.parametrize(
    ("column", "values", "message"),
    [
        ("xpath", [7], "column 'xpath' of .* has type int64, not string"),
        ("xpath", [b"\xff"], "has type binary, but some values are not UTF-8"),
        ("id", [1.5], r"line 1: id must be .*, got 1\.5"),
        ("id", [True], "line 1: id must be .*, got True"),
        ("id", [float("nan")], "line 1: id must be .*, got nan"),
        ("id", ["1_0"], "line 1: id must be .*, got '1_0'"),
        ("id", ["9" * 5000], "line 1: id must be .*, got '99"),
    ],
    ids=["numbers", "bytes", "halves", "truth", "nan", "underscore", "long"],
)
def test_a_column_of_another_kind_is_refused(column: str, values: list, message: str, tmp_path: Path) -> None:
    parquet.write_table(pa.table({"xpath": ["//a"]} | {column: values}), tmp_path / "s.parquet")
    with pytest.raises(PatternError, match=message):
        Subscriptions.read(tmp_path / "s.parquet")


def test_a_row_with_a_quote_too_many_leaves_the_other_rows_alone(tmp_path: Path) -> None:
    (tmp_path / "s.csv").write_text('id,xpath\n1,//a\n2,"//a[@b="c"]"\n3,"//a[@b=""c""]"\n4,"//d\n"x\n5,//e\n')
    subscriptions, invalid = Subscriptions.read(tmp_path / "s.csv", errors="collect")
    assert [each.id for each in subscriptions] == [1, 3, 5]
    assert [error.line for error in invalid] == [3, 6]


def test_a_missing_file_says_so(tmp_path: Path) -> None:
    with pytest.raises(PatternError, match="No such file"):
        Subscriptions.read(tmp_path / "nowhere.txt")


def test_the_public_face_is_small_and_lazy() -> None:
    assert set(pathcast.__all__) <= set(dir(pathcast))
    with pytest.raises(AttributeError, match="no attribute 'Subscription_'"):
        pathcast.Subscription_  # noqa: B018


def test_what_the_table_has_entered_is_added_as_rows_would_be():
    one, other = pathcast.Subscriptions(), pathcast.Subscriptions()
    xpaths, names, ids = ["//a", "b[@c]", "//a", "/c"], ["ada", None, "bob", "ada"], [7, 3, 9, 12]
    one.add_many(xpaths, names, ids)
    entered = other.table.enter(xpaths)
    owners = np.array([0, -1, 1, 0], dtype=np.int32)
    given = other.add_entered(entered, 0, ["ada", "bob"], owners, np.array(ids, dtype=np.int32))
    assert given == ids
    assert list(other) == list(one)
    assert (other.add("//d"), len(other)) == (13, 5)
    assert list(other.add_entered(entered, 5, [], np.full(4, -1, np.int32), None)) == [14, 15, 16, 17]


@pytest.mark.parametrize(
    ("ids", "reason"), [([1, 1], "twice"), ([0, 1], "id must be .*, got 0"), ([5, 2], "id 5 is already in use")]
)
def test_what_was_entered_with_wrong_ids_is_refused_and_changes_nothing(ids, reason):
    subscriptions = pathcast.Subscriptions()
    subscriptions.add("/a", id=5)
    entered = subscriptions.table.enter(["/a", "/b"])
    with pytest.raises(ValueError, match=reason):
        subscriptions.add_entered(entered, 1, ["ada"], np.zeros(2, np.int32), np.array(ids, dtype=np.int32))
    assert (len(subscriptions), subscriptions.subscribers) == (1, [])


def test_columns_are_what_iteration_gives(tmp_path):
    subscriptions = pathcast.Subscriptions()
    subscriptions.add_many(
        ["//a", "//a/./b", "/a[b]", ".//a", "/c[ d ]"], ["ada", None, "bob", "ada", None], [5, 3, 9, 7, 8]
    )
    subscriptions.remove(9)
    subscriptions.replace(3, "/e [f]")
    subscriptions.compile().save(tmp_path)
    opened = pathcast.open_index(tmp_path).subscriptions
    opened.add("//g/./h", "eve", 1)
    for some in (pathcast.Subscriptions(), subscriptions, opened):
        ids, xpaths, subscribers = some.columns()
        assert list(zip(ids.tolist(), xpaths, subscribers, strict=True)) == [tuple(one) for one in some]


def test_an_invalid_expression_that_is_repeated_is_parsed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    parsed: list[str] = []

    def counting(expression: str, *arguments: Any, **more: Any) -> object:
        parsed.append(expression)
        return parse(expression, *arguments, **more)

    monkeypatch.setattr("pathcast.matching.table.pattern_table.parse", counting)
    subscriptions = Subscriptions()
    errors = subscriptions.add_many(["//a[", "//b", "//a[", "//a[b]", "//a["], errors="collect")
    assert parsed == ["//a[", "//a[b]"]
    assert [error.index for error in errors] == [0, 2, 4]
    assert len({str(error) for error in errors}) == 1 and len(set(map(id, errors))) == 3
    assert len(subscriptions) == 2
