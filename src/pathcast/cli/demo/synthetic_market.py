"""The demo's market: companies, reports about them, and the subscriptions of readers and investors.

A company is in one sector. A report is about one sector and comes from one publisher; half of the reports have stocks,
half have reviews. The readers of a router are interested in two sectors, so that a report reaches some routers and not
others. Investors wait for joins: stocks with a price–earnings ratio in a range, whose reviews are good enough.

Invariant: the same seed gives the same market; a report depends on the seed and its number alone.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from random import Random

from .publisher_schemas import PUBLISHERS, Report, Review, Stock

SECTORS = ("banks", "chemistry", "energy", "food", "media", "retail", "shipping", "software", "steel", "transport")
# One document in DAMAGED_EVERY is truncated, the first of them early, so that a small demo has one too.
DAMAGED_EVERY, FIRST_DAMAGED = 250, 10
QUERY = "select * from Stocks natural join Reviews where {}"
NEWCOMERS, NEWCOMER = 10, "newcomer"
_COMPANIES = 300
_BEGINNINGS = ("Alta", "Bero", "Cara", "Dena", "Ervo", "Fola", "Gati", "Hedo", "Ista", "Juno", "Kelo", "Luma", "Mira")
_ENDINGS = ("bank", "corp", "data", "fab", "gas", "lab", "line", "mart", "net", "pharm", "soft", "tec", "works")
_HOUSES = ("Alder", "Birch", "Cedar", "Elm", "Hazel", "Rowan")
_PEOPLE = ("Ada King", "Ben Osei", "Chen Li", "Dora Maar", "Emil Post", "Fay Ito", "Gus Hall", "Ines Roth")
_WORDS = (
    *("orders", "rise", "fall", "slowly", "costs", "margin", "debt", "cash", "growth", "outlook", "strong", "weak"),
    *("abroad", "new", "plant", "board", "expects", "last", "next", "quarter", "year", "dividend", "held", "cut"),
)


@dataclass(frozen=True)
class Market:
    """All inputs of the demo, drawn from one seed."""

    seed: int = 0

    @cached_property
    def companies(self) -> list[tuple[str, str, str]]:
        """Symbol, name and sector of each."""
        draw = Random(f"pathcast/demo/companies/{self.seed}")
        names = draw.sample([f"{first}{last}" for first in _BEGINNINGS for last in _ENDINGS], 169)
        names += [f"New {name}" for name in draw.sample(names, _COMPANIES - len(names))]
        return [
            (f"{name.replace('New ', 'N')[:3].upper()}{number:03}", name, SECTORS[number % len(SECTORS)])
            for number, name in enumerate(names)
        ]

    def report(self, number: int) -> Report:
        """The report of this number."""
        draw = Random(f"pathcast/demo/report/{self.seed}/{number}")
        at = draw.randrange(len(SECTORS))
        publisher = draw.choice(PUBLISHERS)
        companies = draw.sample(self.companies[at :: len(SECTORS)], draw.randint(1, 4))
        if draw.random() < 0.5:
            return Report(number, publisher, stocks=tuple(_stock(draw, *company) for company in companies))
        reviews = tuple(_review(draw, symbol) for symbol, _, _ in companies)
        return Report(number, publisher, (), reviews, draw.choice(_PEOPLE), draw.choice(_HOUSES))

    def subscriptions(self, routers: list[str], count: int, readers: int) -> Iterator[tuple[str, str, str]]:
        """Router, XPath and subscriber of each subscription; a reader subscribes at one router."""
        draw = Random(f"pathcast/demo/subscriptions/{self.seed}")
        homes = [routers[number % len(routers)] for number in range(readers)]
        sectors = {router: draw.sample(range(len(SECTORS)), 2) for router in routers}
        for number in range(count):
            reader = number % readers if number < readers else draw.randrange(readers)
            home = homes[reader]
            yield home, self._xpath(draw, draw.choice(sectors[home])), f"reader-{reader + 1:03}"

    def newcomers(self, routers: list[str], count: int) -> Iterator[tuple[str, str, str]]:
        """The same for later subscribers, each at its own router; their first subscription is to a whole sector."""
        draw = Random(f"pathcast/demo/newcomers/{self.seed}")
        for number in range(count):
            home, sector = routers[-1 - number % NEWCOMERS], number % len(SECTORS)
            whole = f"/report/stock[sector = '{SECTORS[sector]}']"
            xpath = whole if number < NEWCOMERS else self._xpath(draw, sector)
            yield home, xpath, f"{NEWCOMER}-{number % NEWCOMERS + 1:02}"

    def _xpath(self, draw: Random, sector: int) -> str:
        symbol, *_ = draw.choice(self.companies[sector :: len(SECTORS)])
        ratio, rating = draw.randint(8, 40), draw.randint(6, 10)
        match draw.randrange(20):
            case 0:
                return f"/report/stock[sector = '{SECTORS[sector]}']/ratio[per < {draw.randint(45, 55) / 10}]"
            case 1:
                return f"//review[rating >= 9]/analyst[house = '{draw.choice(_HOUSES)}']"
            case 2 | 3:
                return f"/report[publisher = '{draw.choice(PUBLISHERS)}']/stock[symbol = '{symbol}']"
            case 4 | 5 | 6:
                return f"//stock[symbol = '{symbol}' and ratio/yield]"
            case 7 | 8 | 9 | 10 | 11:
                return f"//stock[symbol = '{symbol}'][ratio/per < {ratio}]"
            case 12 | 13 | 14 | 15:
                return f"//review[symbol = '{symbol}'][rating >= {rating}]"
        return f"//stock[symbol = '{symbol}']" if draw.random() < 0.7 else f"//review[symbol = '{symbol}']"

    def queries(self, investors: int) -> list[str]:
        """The standing joins of investors, in SQL."""
        draw = Random(f"pathcast/demo/investors/{self.seed}")
        found = []
        for _ in range(investors):
            low, rating = draw.randint(4, 50), draw.randint(60, 95) / 10
            ranges = f"per between {low} and {low + draw.randint(1, 5)} and rating >= {rating}"
            found.append(QUERY.format(ranges))
        return found


def is_damaged(number: int) -> bool:
    """Whether a document is truncated, as by a broken connection."""
    return number % DAMAGED_EVERY == FIRST_DAMAGED


def _stock(draw: Random, symbol: str, name: str, sector: str) -> Stock:
    dividend = draw.randint(1, 90) / 10 if draw.random() < 0.6 else None
    return Stock(symbol, name, sector, draw.randint(40, 600) / 10, dividend)


def _review(draw: Random, symbol: str) -> Review:
    return Review(symbol, draw.randint(10, 100) / 10, " ".join(draw.choices(_WORDS, k=draw.randint(3, 9))))
