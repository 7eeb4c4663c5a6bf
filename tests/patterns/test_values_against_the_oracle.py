"""Strings become the same numbers as in lxml, to the last bit."""

import math
import struct
from collections.abc import Callable
from random import Random

import pytest
from lxml import etree

from pathcast.patterns.xpath_value_comparison import number_of

COUNT = 10_000
_NUMBER = etree.XPath("number($text)")
_ROOT = etree.Element("root")


def like_a_number(random: Random) -> str:
    """A sign, digits, a point, more digits and an exponent, each at random."""
    digits = "0123456789"
    whole = "".join(random.choices(digits, k=random.choice((0, 1, 1, 2, 5, 16, 17, 20, 40))))
    fraction = "." + "0" * random.choice((0, 0, 0, 3, 25)) + "".join(random.choices(digits, k=random.randint(0, 30)))
    exponent = random.choice("eE") + random.choice(("", "+", "-")) + str(random.choice((0, 1, 2, 10, 22, 23, 300, 400)))
    parts = [random.choice(("", "", "-")), whole, random.choice(("", fraction)), random.choice(("", "", exponent))]
    return "".join(parts)


def unlike_a_number(random: Random) -> str:
    return "".join(random.choices("0123456789.-+eE \t\n\r", k=random.randint(0, 8)))


@pytest.mark.parametrize("draw", [like_a_number, unlike_a_number])
def test_a_string_is_the_number_that_lxml_makes_of_it(draw: Callable[[Random], str]) -> None:
    random = Random(1)
    numbers = 0
    for _ in range(COUNT):
        text = draw(random)
        ours, theirs = number_of(text), _NUMBER(_ROOT, text=text)
        assert _same(ours, theirs), (text, ours, theirs)
        numbers += not math.isnan(theirs)
    assert COUNT / 50 < numbers < COUNT


def _same(ours: float, theirs: float) -> bool:
    """Equal bit by bit, so that 0 and -0 differ; any two NaN are alike."""
    return struct.pack("d", ours) == struct.pack("d", theirs) or (math.isnan(ours) and math.isnan(theirs))
