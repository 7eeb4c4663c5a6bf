"""Numbers and strings as libxml2 computes them, for the functions of XPath 1.0.

A number becomes text with 15 significant digits, with an exponent above 1,000,000,000 and below 0.00001; whole numbers
between -2,147,483,648 and 2,147,483,647 are written out. The positions of `substring()` are rounded first.
"""

import math
import re
from datetime import UTC, datetime, timedelta

_SPACE = re.compile("[ \t\r\n]+")
_DATE = re.compile(
    r"[ \t\r\n]*(\d{4})-(\d\d)-(\d\d)"
    r"(?:T(\d\d):(\d\d):(\d\d)(\.\d+)?)?(?:Z|([+-])(\d\d):(\d\d))?[ \t\r\n]*",
    re.ASCII,
)
_DIGITS = 15
_UPPER, _LOWER = 1e9, 1e-5
_LARGEST_INT = 2147483647
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
NAN, INFINITY = math.nan, math.inf


def text_of(number: float) -> str:
    """XPath's string() of a number."""
    if number != number:  # noqa: PLR0124 - NaN
        return "NaN"
    if math.isinf(number):
        return "Infinity" if number > 0 else "-Infinity"
    if number == 0:
        return "0"
    if -_LARGEST_INT - 1 < number < _LARGEST_INT and number == int(number):
        return str(int(number))
    size = abs(number)
    if size > _UPPER or size < _LOWER:
        mantissa, _, exponent = f"{number:.{_DIGITS - 1}e}".partition("e")
        return f"{_trimmed(mantissa)}e{exponent}"
    places = int(math.log10(size))
    return _trimmed(f"{number:.{_DIGITS - places - (places > 0)}f}")


def _trimmed(text: str) -> str:
    return text.rstrip("0").rstrip(".") if "." in text else text


def rounded(number: float) -> float:
    """XPath's round(): halves go up."""
    if not math.isfinite(number):
        return number
    if -0.5 <= number < 0.5:
        return number * 0.0
    floor = math.floor(number)
    return float(floor if number - floor < 0.5 else floor + 1)


def floored(number: float) -> float:
    """XPath's floor()."""
    return float(math.floor(number)) if math.isfinite(number) else number


def raised(number: float) -> float:
    """XPath's ceiling()."""
    return float(math.ceil(number)) if math.isfinite(number) else number


def quotient(left: float, right: float) -> float:
    """XPath's div: division as in IEEE 754."""
    if right == 0:
        if left == 0 or left != left:  # noqa: PLR0124 - NaN
            return NAN
        return math.copysign(INFINITY, left) * math.copysign(1.0, right)
    return left / right


def remainder(left: float, right: float) -> float:
    """XPath's mod: the sign is that of the dividend."""
    if right == 0 or math.isinf(left) or left != left or right != right:  # noqa: PLR0124 - NaN
        return NAN
    return math.fmod(left, right)


def substring(text: str, start: float, length: float = INFINITY) -> str:
    """The characters at positions from `start`, rounded, up to `start + length`, rounded."""
    begin = _position(start)
    end = begin + _position(length)
    first = max(1.0, begin)
    if not first < min(end, len(text) + 1):  # also if one of them is NaN
        return ""
    return text[int(first) - 1 : int(min(end, len(text) + 1)) - 1]


def _position(number: float) -> float:
    if not math.isfinite(number):
        return number
    floor = math.floor(number)
    return float(floor + 1 if number - floor >= 0.5 else floor)


def normalized(text: str) -> str:
    """XPath's normalize-space()."""
    return _SPACE.sub(" ", text).strip(" ")


def translated(text: str, given: str, wanted: str) -> str:
    """XPath's translate(): each character of `given` becomes that of `wanted` at its place, or disappears."""
    table: dict[int, str | None] = {}
    for place, character in enumerate(given):
        table.setdefault(ord(character), wanted[place] if place < len(wanted) else None)
    return text.translate(table)


def seconds_of(text: str) -> float:
    """date(): a date, perhaps with time and zone (ISO 8601), in seconds since 1970; NaN for any other text."""
    found = _DATE.fullmatch(text)
    if found is None:
        return NAN
    year, month, day, hour, minute, second, fraction, sign, hours, minutes = found.groups()
    try:
        moment = datetime(
            int(year), int(month), int(day), int(hour or 0), int(minute or 0), int(second or 0), tzinfo=UTC
        )
    except ValueError:
        return NAN
    zone = timedelta(hours=int(hours or 0), minutes=int(minutes or 0)).total_seconds()
    seconds = (moment - _EPOCH).total_seconds() - (zone if sign == "+" else -zone)
    return seconds + float(fraction or 0)


def is_language(language: str, wanted: str) -> bool:
    """XPath's lang(): the language itself or one of its kinds, whatever the case of ASCII letters."""
    language, wanted = _upper(language), _upper(wanted)
    return language.startswith(wanted) and language[len(wanted) : len(wanted) + 1] in ("", "-")


def _upper(text: str) -> str:
    return "".join([c.upper() if c.isascii() else c for c in text])
