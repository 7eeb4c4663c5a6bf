"""Formats of values: what kind of value a text is, and one spelling for values that are equal in different forms.

`2023-06-30`, `30.06.2023` and `Fri, 30 Jun 2023 00:00:00 GMT` are one date; `1,50` and `1.5` one number.

Invariant: `value_format` accepts any text; equal values of one kind have equal tokens.
Cost: a few regular expressions per value, each linear in its length.
"""

import re
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import lru_cache
from typing import NamedTuple

KINDS = (
    "date", "moment", "time", "integer", "decimal", "measure", "boolean", "currency", "country", "language", "email",
    "address", "phone", "code", "identifier", "word", "phrase", "text",
)  # fmt: skip
# How much two different kinds are alike.
RELATED: dict[tuple[str, str], float] = {
    ("date", "moment"): 0.8,
    ("integer", "decimal"): 0.6,
    ("measure", "decimal"): 0.8,
    ("measure", "integer"): 0.5,
    ("code", "integer"): 0.3,
    ("code", "identifier"): 0.5,
    ("code", "word"): 0.3,
    ("code", "currency"): 0.3,
    ("code", "country"): 0.3,
    ("integer", "identifier"): 0.2,
    ("integer", "phone"): 0.2,
    ("identifier", "address"): 0.1,
    ("word", "phrase"): 0.5,
    ("phrase", "text"): 0.5,
    ("word", "language"): 0.2,
}


def _code_list(text: str) -> frozenset[str]:
    return frozenset(text.split())


_CURRENCIES = _code_list(
    "AED ARS AUD BGN BRL CAD CHF CLP CNY COP CZK DKK EGP EUR GBP HKD HRK HUF IDR ILS INR ISK JPY KES KRW KWD MAD "
    "MXN MYR NGN NOK NZD PEN PHP PKR PLN QAR RON RSD RUB SAR SEK SGD THB TND TRY TWD UAH USD UYU VND XAF XOF ZAR"
)
_COUNTRIES = _code_list(
    "AD AE AF AL AM AO AR AT AU AZ BA BD BE BG BH BO BR BY CA CH CL CM CN CO CR CU CY CZ DE DK DO DZ EC EE EG ES "
    "ET FI FR GB GE GH GR GT HK HN HR HU ID IE IL IN IQ IR IS IT JM JO JP KE KR KW KZ LA LB LI LK LT LU LV LY MA "
    "MC MD ME MK MT MX MY NG NI NL NO NP NZ OM PA PE PH PK PL PT PY QA RO RS RU SA SE SG SI SK SN SV SY TH TN TR "
    "TW TZ UA UG UK US UY UZ VE VN YE ZA ZM ZW"
)
_LANGUAGE = re.compile(
    r"(?:ar|bg|ca|cs|da|de|el|en|es|et|fi|fr|he|hi|hr|hu|is|it|ja|ko|lt|lv|nl|nb|no|pl|pt|ro|ru|sk|sl|sr|sv|tr|uk|zh)"
    r"(?:[-_][A-Za-z]{2})?|eng|deu|ger|fra|fre|spa|ita|nld|dut|por|swe"
)
_NUMBER = re.compile(r"[+-]?(?:\d{1,3}(?:[,. ]\d{3})+|\d+)?(?:[.,]\d+)?")
_MEASURE = re.compile(r"(?:[^\W\d_]{1,3} |[$€£¥] ?)?([+-]?\d+(?:[.,]\d+)?) ?(?:[^\W\d_]{1,3}|[%$€£¥])?")
_TIME = re.compile(r"(\d{1,2})[:.](\d{2})(?:[:.]\d{2})?\s*([AaPp])?\.?[Mm]?\.?")
_EMAIL = re.compile(r"(?:mailto:)?([\w.+-]+@[\w-]+(?:\.[\w-]+)+)")
_ADDRESS = re.compile(r"(?:[a-zA-Z][a-zA-Z0-9+.-]*://|www\.)\S+")
_PHONE = re.compile(r"(?:tel:)?[+(]\d[\d ()./-]{6,18}|\d{2,5}[ /-]\d{3,}[\d -]*")
_CODE = re.compile(r"[A-Z0-9]{1,6}")
_IDENTIFIER = re.compile(r"(?=\S*\d)[\w./:#@+-]+")
_WORD = re.compile(r"[^\W\d_]+(?:[-'][^\W\d_]+)*\.?")
_DAY_FORMS = ("%Y-%m-%d", "%Y%m%d", "%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%Y/%m/%d", "%d %b %Y", "%d %B %Y", "%B %d, %Y")
_DAY = re.compile(
    r"\d{4}-\d\d-\d\d|\d{8}|\d\d?[./]\d\d?[./]\d{4}|\d{4}/\d\d/\d\d|\d\d? \w{3,9} \d{4}|\w{3,9} \d\d?, \d{4}"
)
_MOMENT = re.compile(r"(\d{4})-?(\d\d)-?(\d\d)[T ](\d\d):?(\d\d)(?::?(\d\d)(?:\.\d+)?)?\s*(Z|[+-]\d\d:?\d\d)?")
_MAIL_DATE = re.compile(r"(?:\w{3}, )?\d\d? \w{3} \d{2,4} \d\d:\d\d(?::\d\d)? \S+")


class ValueFormat(NamedTuple):
    """The kind of a value, and the tokens that equal values share."""

    kind: str
    tokens: tuple[str, ...]


@lru_cache(maxsize=1 << 16)
def value_format(text: str) -> ValueFormat:
    """The format of a value.

    >>> value_format("30.06.2023") == value_format("2023-06-30") == ValueFormat("date", ("d 2023-06-30",))
    True
    """
    text = text.strip()
    for test in (_date, _number, _named, _worded):
        if (found := test(text)) is not None:
            return found
    return ValueFormat("text", (text.casefold(),))


def _date(text: str) -> ValueFormat | None:
    if _DAY.fullmatch(text):
        for form in _DAY_FORMS:
            try:
                day = datetime.strptime(text, form)  # noqa: DTZ007 - a day has no zone
            except ValueError:
                continue
            if 1850 <= day.year <= 2150:
                return ValueFormat("date", (f"d {day:%Y-%m-%d}",))
    try:
        if parts := _MOMENT.fullmatch(text):
            zone = (parts[7] or "").replace("Z", "+0000").replace(":", "")
            moment = datetime.strptime(
                "".join(each or "00" for each in parts.groups()[:6]) + (zone or "+0000"), "%Y%m%d%H%M%S%z"
            )
        elif _MAIL_DATE.fullmatch(text):
            moment = parsedate_to_datetime(text)
        else:
            return None
        moment = moment.astimezone(UTC) if moment.tzinfo else moment
    except (ValueError, OverflowError, IndexError):
        return None
    return ValueFormat("moment", (f"m {moment:%Y-%m-%dT%H:%M}", f"d {moment:%Y-%m-%d}"))


def _number(text: str) -> ValueFormat | None:
    if text and _NUMBER.fullmatch(text) and any(map(str.isdigit, text)):
        plain = _plain_number(text)
        kind = "decimal" if "." in plain else "integer"
        return ValueFormat(kind, (f"n {_shortest(plain)}",))
    if (parts := _TIME.fullmatch(text)) and int(parts[1]) < 25:
        hour = int(parts[1]) % 12 + 12 if (parts[3] or "").lower() == "p" else int(parts[1])
        return ValueFormat("time", (f"t {hour:02}:{parts[2]}",))
    if len(text) < 24 and (parts := _MEASURE.fullmatch(text)):
        return ValueFormat("measure", (f"n {_shortest(parts[1].replace(',', '.'))}",))
    return None


def _plain_number(text: str) -> str:
    """A number with a decimal point and without separators of thousands."""
    text = text.replace(" ", "")
    last = max(text.rfind("."), text.rfind(","))
    if last < 0:
        return text
    whole, part, mark = text[:last], text[last + 1 :], text[last]
    grouped = len(part) == 3 and (mark in whole or (mark == "," and len(whole.lstrip("+-")) <= 3))
    whole = whole.replace(".", "").replace(",", "")
    return whole + part if grouped else f"{whole or '0'}.{part}"


def _shortest(plain: str) -> str:
    """A number without zeros that its value does not need; long ones are identifiers, and stay."""
    if "." in plain:
        plain = plain.rstrip("0").rstrip(".")
    sign = "-" if plain.startswith("-") else ""
    return sign + (plain.lstrip("+-").lstrip("0") or "0")


def _named(text: str) -> ValueFormat | None:
    """Values that are what they look like: codes of lists, addresses of mail and of the web, telephone numbers."""
    if text.casefold() in ("true", "false", "yes", "no"):
        return ValueFormat("boolean", (f"b {text.casefold() in ('true', 'yes')}",))
    if text in _CURRENCIES:
        return ValueFormat("currency", (text.casefold(),))
    if text in _COUNTRIES:
        return ValueFormat("country", (text.casefold(),))
    if _LANGUAGE.fullmatch(text):
        return ValueFormat("language", (text.casefold(),))
    if parts := _EMAIL.search(text):
        return ValueFormat("email", (parts[1].casefold(),))
    if _ADDRESS.fullmatch(text):
        return ValueFormat("address", (text.casefold().rstrip("/"),))
    if _PHONE.fullmatch(text):
        return ValueFormat("phone", ("p " + "".join(filter(str.isdigit, text)),))
    return None


def _worded(text: str) -> ValueFormat | None:
    if _CODE.fullmatch(text):
        return ValueFormat("code", (text.casefold(),))
    if _WORD.fullmatch(text):
        return ValueFormat("word", (text.casefold(),))
    if _IDENTIFIER.fullmatch(text):
        return ValueFormat("identifier", (text.casefold(),))
    if text.count(" ") < 5:
        return ValueFormat("phrase", (text.casefold(),))
    return None
