"""The demo's publishers: five schemas for the same facts; the first is the global schema.

    exchange   the global schema itself
    wire       attributes where the global schema has elements
    courier    its own names
    ledger     no groups: ratios beside the symbol, the analyst's name beside the rating
    digest     one more group, and reviews inside their analyst

`Mediator.register` derives the mapping of each; only correspondences that names do not show are given.

Invariant: `write(publisher, report)` of any publisher, rewritten by its mapping, equals `write("exchange", report)` in
content. A test checks this; so the demo's check does not need mediation.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING
from xml.sax.saxutils import escape, quoteattr

if TYPE_CHECKING:
    from pathcast.mediation import Mediator


@dataclass(frozen=True, slots=True)
class Stock:
    """The data of a share in a report: its price–earnings ratio and, if it pays any, its dividend yield."""

    symbol: str
    name: str
    sector: str
    per: float
    dividend: float | None


@dataclass(frozen=True, slots=True)
class Review:
    """An analyst's opinion of a share."""

    symbol: str
    rating: float
    text: str


@dataclass(frozen=True, slots=True)
class Report:
    """The content of a document: stocks, or reviews of one analyst of a house."""

    number: int
    publisher: str
    stocks: tuple[Stock, ...] = ()
    reviews: tuple[Review, ...] = ()
    analyst: str = ""
    house: str = ""


GLOBAL = """
report
  publisher #text
  stock*
    symbol #text
    name #text
    sector #text
    ratio
      per #text
      yield? #text
  review*
    symbol #text
    rating #text
    text #text
    analyst
      fullname #text
      house #text
"""
_SCHEMAS = {
    "exchange": GLOBAL,
    "wire": """
report @publisher
  stock* @symbol @name @sector
    ratio @per @yield
  review* @symbol @rating
    text #text
    analyst @fullname @house
""",
    "courier": """
bulletin
  source #text
  share*
    ticker #text
    company #text
    branch #text
    figures
      pe #text
      dividend? #text
  verdict*
    ticker #text
    grade #text
    comment #text
    author
      person #text
      employer #text
""",
    "ledger": """
report
  publisher #text
  stock*
    symbol #text
    name #text
    sector #text
    per #text
    yield? #text
  review*
    symbol #text
    rating #text
    text #text
    fullname #text
    house #text
""",
    "digest": """
report
  publisher #text
  market?
    stock*
      symbol #text
      name #text
      sector #text
      ratio
        per #text
        yield? #text
  analyst*
    fullname #text
    house #text
    review+
      symbol #text
      rating #text
      text #text
""",
}
# The courier shares no names with the others, so its publisher says what corresponds.
_KNOWN = {
    "courier": {
        "bulletin/source": "report/publisher",
        "bulletin/share": "report/stock",
        "bulletin/share/ticker": "report/stock/symbol",
        "bulletin/share/company": "report/stock/name",
        "bulletin/share/branch": "report/stock/sector",
        "bulletin/share/figures": "report/stock/ratio",
        "bulletin/share/figures/pe": "report/stock/ratio/per",
        "bulletin/share/figures/dividend": "report/stock/ratio/yield",
        "bulletin/verdict": "report/review",
        "bulletin/verdict/ticker": "report/review/symbol",
        "bulletin/verdict/grade": "report/review/rating",
        "bulletin/verdict/comment": "report/review/text",
        "bulletin/verdict/author": "report/review/analyst",
        "bulletin/verdict/author/person": "report/review/analyst/fullname",
        "bulletin/verdict/author/employer": "report/review/analyst/house",
    }
}
PUBLISHERS = tuple(_SCHEMAS)


def mediator() -> "Mediator":
    """A mediator that knows all publishers."""
    from pathcast.mediation import Mediator
    from pathcast.mediation.mappings import read_tree

    made = Mediator(read_tree(GLOBAL))
    for name, schema in _SCHEMAS.items():
        made.register(name, read_tree(schema), correspondence=_KNOWN.get(name))
    return made


def write(publisher: str, report: Report) -> bytes:
    """A report in the schema of a publisher."""
    return _WRITERS[publisher](report).encode()


def _element(name: str, *inside: str) -> str:
    return f"<{name}>{''.join(inside)}</{name}>"


def _value(name: str, value: str | float | None) -> str:
    return "" if value is None else f"<{name}>{escape(str(value))}</{name}>"


def _attributes(**values: str | float | None) -> str:
    return "".join(f" {name}={quoteattr(str(value))}" for name, value in values.items() if value is not None)


def _exchange(report: Report) -> str:
    stocks = (_stock(each) for each in report.stocks)
    analyst = _element("analyst", _value("fullname", report.analyst), _value("house", report.house))
    reviews = (_element("review", *_review(each), analyst) for each in report.reviews)
    return _element("report", _value("publisher", report.publisher), *stocks, *reviews)


def _stock(stock: Stock) -> str:
    ratio = _element("ratio", _value("per", stock.per), _value("yield", stock.dividend))
    return _element("stock", *_share(stock, "symbol", "name", "sector"), ratio)


def _share(stock: Stock, symbol: str, name: str, sector: str) -> list[str]:
    return [_value(symbol, stock.symbol), _value(name, stock.name), _value(sector, stock.sector)]


def _review(review: Review, symbol: str = "symbol", rating: str = "rating", text: str = "text") -> list[str]:
    return [_value(symbol, review.symbol), _value(rating, review.rating), _value(text, review.text)]


def _wire(report: Report) -> str:
    out = [f"<report{_attributes(publisher=report.publisher)}>"]
    for stock in report.stocks:
        ratio = _attributes(per=stock.per, **{"yield": stock.dividend})
        out.append(f"<stock{_attributes(symbol=stock.symbol, name=stock.name, sector=stock.sector)}>")
        out.append(f"<ratio{ratio}/></stock>")
    analyst = f"<analyst{_attributes(fullname=report.analyst, house=report.house)}/>"
    for review in report.reviews:
        out.append(f"<review{_attributes(symbol=review.symbol, rating=review.rating)}>")
        out.append(f"{_value('text', review.text)}{analyst}</review>")
    return "".join(out) + "</report>"


def _courier(report: Report) -> str:
    out = [_value("source", report.publisher)]
    for stock in report.stocks:
        figures = _element("figures", _value("pe", stock.per), _value("dividend", stock.dividend))
        out.append(_element("share", *_share(stock, "ticker", "company", "branch"), figures))
    author = _element("author", _value("person", report.analyst), _value("employer", report.house))
    out += [_element("verdict", *_review(each, "ticker", "grade", "comment"), author) for each in report.reviews]
    return _element("bulletin", *out)


def _ledger(report: Report) -> str:
    out = [_value("publisher", report.publisher)]
    for stock in report.stocks:
        ratios = (_value("per", stock.per), _value("yield", stock.dividend))
        out.append(_element("stock", *_share(stock, "symbol", "name", "sector"), *ratios))
    analyst = (_value("fullname", report.analyst), _value("house", report.house))
    out += [_element("review", *_review(each), *analyst) for each in report.reviews]
    return _element("report", *out)


def _digest(report: Report) -> str:
    out = [_value("publisher", report.publisher)]
    if report.stocks:
        out.append(_element("market", *(_stock(each) for each in report.stocks)))
    if report.reviews:
        reviews = (_element("review", *_review(each)) for each in report.reviews)
        out.append(_element("analyst", _value("fullname", report.analyst), _value("house", report.house), *reviews))
    return _element("report", *out)


_WRITERS: dict[str, Callable[[Report], str]] = {
    "exchange": _exchange,
    "wire": _wire,
    "courier": _courier,
    "ledger": _ledger,
    "digest": _digest,
}
