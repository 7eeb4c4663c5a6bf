"""Records that fill the documents of the schema pairs: invoices, orders, feeds, articles, contacts, products.

A record is a table of fields; a field is a text, a number, a date, or a list of records. Values are drawn from pools of
the kind that real documents show: people, places and products recur, numbers and identifiers do not.
"""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

Record = dict[str, Any]


class HalfPools(Random):
    """Draws from every other value of a pool, so that two publishers have few values in common."""

    def __init__(self, seed: str, half: int) -> None:
        super().__init__(seed)
        self.half = half

    def choice(self, seq: Any) -> Any:
        """One value of the half; small pools, such as code lists, are for all."""
        return super().choice(seq[self.half :: 2] if len(seq) > 5 else seq)


def _pool(text: str) -> list[str]:
    return text.split()


_GIVEN = "Anna Ben Carla David Elif Farid Grace Hugo Ines Jonas Kim Lena Marco Nadia Olga Peter Rosa Sven Tara Yusuf"
_SURNAMES = "Meyer Rossi Dupont Tanaka Silva Novak Khan Olsen Garcia Smith Brown Kowalski Andersson Moreau Weber Ito"
_STREETS = ("Main Street", "Station Road", "Hafenweg", "Rue de la Paix", "Via Roma", "Park Lane", "Mill Road")
_CITIES = (
    ("Hamburg", "DE", "20457"), ("Lyon", "FR", "69002"), ("Milano", "IT", "20121"), ("Leeds", "GB", "LS1 4AP"),
    ("Utrecht", "NL", "3511"), ("Porto", "PT", "4000"), ("Oslo", "NO", "0150"), ("Austin", "US", "73301"),
)  # fmt: skip
_FIRMS = _pool("Nordwind Aurora Bluestone Kestrel Vertex Almeda Quadrant Larkspur Harbour Solaris Tundra Mosaic")
_FORMS = ("GmbH", "Ltd", "SA", "SpA", "BV", "Inc")
_THINGS = _pool("drill lamp keyboard monitor cable desk chair printer router pump valve filter sensor bracket hammer")
_MAKES = ("steel", "compact", "wireless", "heavy duty", "portable", "industrial", "slim", "outdoor")
_WORDS = _pool(
    "system market report growth policy energy network water health region model data study analysis method "
    "result city council budget season team record energy climate transport school research museum border trade "
    "harvest"
)
_JOBS = ("Engineer", "Sales Manager", "Accountant", "Analyst", "Director", "Technician", "Buyer")
_NOTES = ("Please deliver to the back entrance", "Thank you for your order", "Goods remain our property until paid",
          "Call before delivery", "Replaces the earlier document", "Urgent, do not split the shipment")  # fmt: skip
_TOPICS = ("Tools", "Lighting", "Office", "Electronics", "Plumbing", "Safety")


def _some(random: Random, texts: str) -> str:
    return random.choice(texts.split())


def _day(random: Random) -> datetime:
    return datetime(2023, 1, 1, tzinfo=UTC) + timedelta(minutes=random.randrange(2 * 365 * 24 * 60))


def _digits(random: Random, count: int) -> str:
    return "".join(str(random.randrange(10)) for _ in range(count))


def _sentence(random: Random, words: int) -> str:
    return " ".join(random.choice(_WORDS) for _ in range(words)).capitalize()


def _party(random: Random) -> Record:
    given, surname, firm = _some(random, _GIVEN), _some(random, _SURNAMES), random.choice(_FIRMS)
    city, country, code = random.choice(_CITIES)
    return {
        "id": _digits(random, 6),
        "name": f"{firm} {random.choice(_FORMS)}",
        "company": f"{firm} {random.choice(_FORMS)}",
        "person": f"{given} {surname}",
        "given": given,
        "surname": surname,
        "street": f"{random.choice(_STREETS)} {random.randint(1, 120)}",
        "city": city,
        "country": country,
        "zip": code,
        "phone": f"+{random.randint(30, 49)} {_digits(random, 3)} {_digits(random, 6)}",
        "email": f"{given}.{surname}@{firm}.example".lower(),
        "url": f"https://www.{firm}.example/{given}".lower(),
        "vat": f"{country}{_digits(random, 9)}",
        "sex": random.choice("MF"),
        "job": random.choice(_JOBS),
        "language": random.choice(("en", "de", "fr", "it")),
        "born": _day(random) - timedelta(days=random.randrange(8000, 20000)),
        "changed": _day(random),
        "note": _sentence(random, 8),
    }


def _product(random: Random) -> Record:
    thing, make = random.choice(_THINGS), random.choice(_MAKES)
    return {
        "sku": f"{thing[:2].upper()}-{_digits(random, 4)}",
        "own": f"M{_digits(random, 7)}",
        "gtin": f"40{_digits(random, 11)}",
        "part": f"{_digits(random, 3)}.{_digits(random, 3)}",
        "product": f"{make} {thing}".capitalize(),
        "description": f"{_sentence(random, 9)} {thing}",
        "unit": random.choice(("C62", "MTR", "KGM", "HUR")),
        "price": f"{random.randint(100, 90_000) / 100:.2f}",
        "brand": random.choice(_FIRMS),
        "category": random.choice(_TOPICS),
        "weight": f"{random.randint(10, 9_000) / 100:.2f}",
        "colour": random.choice(("black", "white", "red", "blue")),
        "stock": random.choice(("in stock", "out of stock", "preorder")),
        "image": f"https://img.example/{thing}/{_digits(random, 5)}.jpg",
        "url": f"https://shop.example/{thing}/{_digits(random, 5)}",
    }


def _lines(random: Random, ordered: datetime) -> list[Record]:
    lines = []
    for position in range(1, random.randint(2, 7)):
        line, quantity, percent = _product(random), random.randint(1, 40), random.choice((7, 19, 20))
        line |= {
            "position": position,
            "quantity": quantity,
            "amount": f"{quantity * float(line['price']):.2f}",
            "taxpercent": percent,
            "taxcode": "S" if percent > 7 else "AA",
            "remark": _sentence(random, 5),
            "wanted": ordered + timedelta(days=random.randint(5, 40)),
        }
        lines.append(line)
    return lines


def _trade(random: Random) -> Record:
    issued = _day(random)
    lines = _lines(random, issued)
    rates: list[Record] = []
    for percent in sorted({line["taxpercent"] for line in lines}):
        base = sum(float(line["amount"]) for line in lines if line["taxpercent"] == percent)
        rates.append(
            {
                "percent": percent,
                "category": "S" if percent > 7 else "AA",
                "base": f"{base:.2f}",
                "tax": f"{base * percent / 100:.2f}",
            }
        )
    net, tax = sum(float(rate["base"]) for rate in rates), sum(float(rate["tax"]) for rate in rates)
    currency, prepaid = random.choice(("EUR", "EUR", "USD", "GBP")), random.choice((0, 0, 50, 120))
    return {
        "issued": issued,
        "due": issued + timedelta(days=random.choice((14, 30, 60))),
        "delivered": issued - timedelta(days=random.randint(1, 9)),
        "wanted": issued + timedelta(days=random.randint(5, 40)),
        "currency": currency,
        "currency of tax": currency,
        "note": random.choice(_NOTES),
        "lines": lines,
        "rates": rates,
        "count": len(lines),
        "net": f"{net:.2f}",
        "exclusive": f"{net:.2f}",
        "tax": f"{tax:.2f}",
        "gross": f"{net + tax:.2f}",
        "prepaid": f"{prepaid:.2f}",
        "payable": f"{net + tax - prepaid:.2f}",
        **{f"{role}.{key}": value for role in ("buyer", "seller", "ship") for key, value in _party(random).items()},
    }


def invoice(random: Random) -> Record:
    """An invoice with lines and tax rates."""
    return _trade(random) | {
        "number": f"INV-{_digits(random, 5)}",
        "order": f"PO{_digits(random, 6)}",
        "kind": random.choice(("380", "380", "381")),
        "reference": f"REF/{_digits(random, 4)}",
        "means": random.choice(("30", "58")),
        "payment": f"RF{_digits(random, 10)}",
        "iban": f"DE{_digits(random, 20)}",
        "bic": random.choice(("DEUTDEFF", "BNPAFRPP", "INGBNL2A", "BARCGB22")),
        "profile": "urn:cen.eu:en16931:2017",
        "scheme": "0160",
        "terms": random.choice(("30 days net", "14 days 2% discount, 30 days net", "Due on receipt")),
    }


def order(random: Random) -> Record:
    """A purchase order with lines."""
    return _trade(random) | {
        "number": f"PO{_digits(random, 6)}",
        "payload": f"{_digits(random, 10)}@buyer.example",
    }


def feed(random: Random) -> Record:
    """A feed with items."""
    place, items = random.choice(_WORDS), []
    for _ in range(random.randint(3, 9)):
        author, published, number = _party(random), _day(random), _digits(random, 6)
        items.append(
            {
                "title": _sentence(random, 6),
                "url": f"https://{place}.example/{published:%Y/%m}/{number}",
                "guid": f"tag:{place}.example,2023:{number}",
                "summary": f"{_sentence(random, 14)}. {_sentence(random, 10)}.",
                "author.person": author["person"],
                "author.email": author["email"],
                "category": random.choice(_TOPICS),
                "media": f"https://{place}.example/media/{number}.mp3",
                "bytes": random.randint(10_000, 9_000_000),
                "mime": "audio/mpeg",
                "published": published,
                "updated": published + timedelta(minutes=random.randrange(3000)),
            }
        )
    editor = _party(random)
    return {
        "id": f"tag:{place}.example,2023:feed",
        "title": f"{place.capitalize()} daily",
        "url": f"https://{place}.example/",
        "subtitle": _sentence(random, 7),
        "rights": f"Copyright {random.randint(2015, 2024)} {random.choice(_FIRMS)}",
        "generator": random.choice(("Hugo", "WordPress", "Jekyll")),
        "logo": f"https://{place}.example/logo.png",
        "updated": _day(random),
        "language": random.choice(("en", "de", "fr")),
        "editor.person": editor["person"],
        "editor.email": editor["email"],
        "items": items,
    }


def _article(random: Random) -> Record:
    first = random.randint(1, 900)
    return {
        "key": f"{_some(random, _SURNAMES)}{random.randint(1990, 2024)}".lower(),
        "title": _sentence(random, 9),
        "kind": random.choice(("article", "review", "inproceedings")),
        "language": random.choice(("en", "de", "fr")),
        "journal": f"Journal of {random.choice(_WORDS).capitalize()} {random.choice(_WORDS).capitalize()}",
        "issn": f"{_digits(random, 4)}-{_digits(random, 4)}",
        "publisher": random.choice(("Springer", "Elsevier", "ACM", "IEEE", "Wiley")),
        "doi": f"10.{_digits(random, 4)}/{_digits(random, 3)}.{_digits(random, 5)}",
        "year": random.randint(1985, 2024),
        "volume": random.randint(1, 60),
        "issue": random.randint(1, 12),
        "first": first,
        "last": first + random.randint(2, 30),
        "abstract": ". ".join(_sentence(random, 12) for _ in range(3)),
        "url": f"https://doi.example/{_digits(random, 8)}",
        "keywords": [{"word": random.choice(_WORDS)} for _ in range(random.randint(1, 4))],
        "authors": [
            _party(random) | {"institute": f"University of {random.choice(_CITIES)[0]}"}
            for _ in range(random.randint(1, 4))
        ],
    }


def articles(random: Random) -> Record:
    """A bibliography."""
    return {"articles": [_article(random) for _ in range(random.randint(2, 6))]}


def contacts(random: Random) -> Record:
    """A directory of people."""
    return {"people": [_party(random) for _ in range(random.randint(2, 8))], "asof": _day(random)}


def products(random: Random) -> Record:
    """A product catalogue."""
    return {
        "shop": f"{random.choice(_FIRMS)} shop",
        "url": "https://shop.example/",
        "catalog": _digits(random, 8),
        "products": [_product(random) for _ in range(random.randint(2, 8))],
    }


RECORDS: dict[str, Callable[[Random], Record]] = {
    "invoice": invoice,
    "order": order,
    "feed": feed,
    "article": articles,
    "contact": contacts,
    "product": products,
}
