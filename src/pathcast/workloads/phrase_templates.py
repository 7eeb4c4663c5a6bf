"""Phrases: readable texts for generated documents, so that a demonstration looks like news.

Each element and each free attribute has a small set of phrases, drawn once per seed from templates by its name
(`city` gets cities, `headline` gets headlines); names without a template get plain sentences. A word in braces in a
template stands for one of the words of that kind. Topics occur in sentences of every kind: predicates on text look for
them.

Nothing here is true: people, companies and places are invented.
"""

from random import Random

from pathcast.documents.schema import Attribute

STOCK = 40

WORDS = {
    kind: tuple(words.replace("_", " ") for words in line.split())
    for kind, line in {
        "given": "Ada Anouk Bela Carla Chidi Dario Elif Emre Farida Gustav Hana Ines Jonas Kofi Lena Mateo Noor Priya",
        "family": "Abara Brandt Castell Demir Eklund Farkas Grau Haddad Ito Jansen Keller Moreau Novak Okafor Pereira",
        "city": "Altmark Brisford Carvena Dunmore Estavel Fjordby Grenholm Harrowgate Isola Kastelan Lindby Norvik",
        "country": "Arland Belmora Cordania Estria Halvonia Kestria Lumania Norrland Sorenia Tavria",
        "company": "Alpen_Rail Baltic_Grid Castell_Bank Delta_Steel Eklund_Foods Harbour_Air Novak_Pharma Solar_Nord",
        "club": "Altmark_United Norvik_Rovers FC_Carvena Isola_Athletic Lindby_Wolves",
        "office": "the_ministry the_central_bank the_city_council the_league the_regulator the_union the_court",
        "role": "minister mayor spokeswoman chief_economist coach director judge chairman ambassador",
        "topic": "budget election energy harvest hospital inflation merger port rail reform strike storm tax trade",
        "how": "sharp unexpected modest record cautious quiet sudden long-awaited partial heavy",
        "change": "rise fall delay agreement dispute review breakthrough cut warning vote",
        "month": "January March May June September November",
        "scale": "thousand million billion",
        "unit": "tonnes people kilometres homes",
        "meeting": "summit election trial final",
        "matter": "talks plan figures case",
        "title": "Dr Prof Sir Dame Colonel Judge",
        "alias": "the_Fox Kay_Stone the_Captain Little_Ada",
        "quarter": "Old_Town Riverside Northgate Docklands Hill_Park",
        "province": "Upper_Valley East_March Lake_District South_Coast",
        "landmark": "Town_Hall Iron_Bridge Grand_Theatre Mount_Ferrin Lake_Osta",
        "ticker": "ALPR BGRD CSTL DLTS EKLF HBRA NVKP SLRN",
        "short": "GDP EU UN CEO MP NGO",
        "language": "en de fr es it pl nl sv pt tr",
        "zone": "UTC CET EST JST",
        "day": " ".join(map(str, range(1, 29))),
        "month-number": " ".join(f"{month:02}" for month in range(1, 13)),
        "day-number": " ".join(f"{day:02}" for day in range(1, 29)),
        "number": " ".join(map(str, range(2, 100))),
        "hour": " ".join(f"{hour:02}" for hour in range(24)),
        "minute": " ".join(f"{minute:02}" for minute in range(60)),
        "goals": "0 1 2 3 4 5",
    }.items()
}

# Names of people and things that stand alone: readers search for them as they are.
NAMES = {
    "given-name": "given",
    "family-name": "family",
    "honorific": "title",
    "alias": "alias",
    "city": "city",
    "quarter": "quarter",
    "province": "province",
    "country": "country",
    "landmark": "landmark",
    "organisation": "company",
    "holder": "company",
    "source": "company",
    "side": "club",
    "function": "role",
    "stock": "ticker",
    "short-form": "short",
    "sub": "goals",
    "super": "goals",
}

HEADLINE = ("{city}: {how} {change} in {topic} {matter}",)
SENTENCE = (
    "In {city} {office} announced the {how} {change} in the {topic} plan on {day} {month} 2031.",
    "After the {how} {change} of the {topic} programme, {office} asked for more time.",
    "Observers in {city} expect the {how} {change} once the {topic} question is settled.",
    "{city} saw the {how} {change} over {topic}, {office} said.",
)
TAIL = ("and {office} spoke of {topic}.", "before the {how} {topic} debate.", "said that {topic} comes first.")
DATE = ("{day} {month} 2031",)

# Texts that are not sentences; nothing follows a child element inside them.
SHORT_TEXTS = {
    "person": ("{given} {family}",),
    "byline": ("By {given} {family}",),
    "place": ("{city}, {country}",),
    "dateline": ("{city}, {country}",),
    "pin": ("{city}, {country}",),
    "money": ("{number} {scale} euros",),
    "quantity": ("{number} {unit}",),
    "share": ("{number} percent",),
    "date": DATE,
    "period": DATE,
    "time": ("{hour}:{minute}",),
    "email": ("{family}@news.example",),
    "phone": ("+00 {number} {number} {number}",),
    "handle": ("@{given}",),
    "hashtag": ("#{topic}",),
    "postcode": ("{number}{number}",),
    "street": ("{family} Street {number}",),
    "score": ("{goals}:{goals}",),
    "law": ("the {topic} act",),
    "event": ("the {city} {meeting}",),
    "work": ("“{topic} and {topic}”",),
    "product": ("{company} {number}",),
    "maker": ("{given} {family}",),
    "option": ("for the {topic} plan", "against the {topic} plan"),
}
LONG_TEXTS = dict.fromkeys(
    ("title", "headline", "subhead", "running-title", "section-title", "crosshead", "entry"), HEADLINE
)

DAY = ("2031-{month-number}-{day-number}",)
PERSON = ("{given} {family}",)
ATTRIBUTES = {
    **dict.fromkeys(("when", "date", "from", "to", "until", "since", "issued", "received", "taken", "filed"), DAY),
    **dict.fromkeys(("editor", "speaker", "guest", "asker"), PERSON),
    **dict.fromkeys(("href", "source"), ("https://news.example/{topic}/{number}",)),
    **dict.fromkeys(("code", "value", "story", "serial"), ("{topic}-{number}",)),
}


def phrases(element: str, seed: int) -> tuple[str, ...]:
    """The possible texts of an element."""
    if element in NAMES:
        return WORDS[NAMES[element]]
    templates = SHORT_TEXTS.get(element) or LONG_TEXTS.get(element) or SENTENCE
    return _stock(templates, STOCK, Random(f"pathcast/words/{seed}/{element}"))


def tails(element: str, seed: int) -> tuple[str, ...]:
    """The possible texts after a child element; none for names and numbers."""
    if element in NAMES or element in SHORT_TEXTS:
        return ()
    return _stock(TAIL, STOCK, Random(f"pathcast/tails/{seed}/{element}"))


def search_terms(element: str) -> tuple[str, ...]:
    """Search terms for an element."""
    return WORDS[NAMES.get(element, "topic")]


def attribute_values(element: str, attribute: Attribute, seed: int) -> tuple[str, ...] | None:
    """The values of a free attribute; None if it is a number."""
    name = attribute.name
    if name in ("lang", "zone"):
        return WORDS["language" if name == "lang" else "zone"]
    if attribute.type != "CDATA":
        return None
    templates = ATTRIBUTES.get(name, ("{how} {topic}",))
    return _stock(templates, STOCK // 2, Random(f"pathcast/attribute/{seed}/{element}/{name}"))


def _stock(templates: tuple[str, ...], count: int, random: Random) -> tuple[str, ...]:
    """Up to `count` different phrases."""
    return tuple(dict.fromkeys(_filled(random.choice(templates), random) for _ in range(count)))


def _filled(template: str, random: Random) -> str:
    parts = template.replace("}", "{").split("{")  # text, kind, text, kind, …, text
    return "".join(random.choice(WORDS[part]) if at % 2 else part for at, part in enumerate(parts))
