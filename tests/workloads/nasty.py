"""DTDs that lead a naive generator astray."""

RECURSIVE = {
    "direct": "<!ELEMENT a (a*)>",
    "through an optional part": "<!ELEMENT a (b+)> <!ELEMENT b (a?)>",
    "only one alternative ends": "<!ELEMENT a (a | (b, a, a) | c)> <!ELEMENT b (a)> <!ELEMENT c EMPTY>",
    "the end lies deep": "<!ELEMENT a (a | b)> <!ELEMENT b (a | c)> <!ELEMENT c (a | d)> <!ELEMENT d (a, e)?>"
    "<!ELEMENT e (a | b)>",
    "required and repeated": "<!ELEMENT a (b, b+, c)> <!ELEMENT b (a | c)+> <!ELEMENT c (#PCDATA | a | b)*>",
    "mutual, three ways": "<!ELEMENT a (b | c | x)+> <!ELEMENT b (a, c)> <!ELEMENT c (b | x)> <!ELEMENT x EMPTY>",
    "anything": "<!ELEMENT a ANY> <!ELEMENT b ANY> <!ELEMENT c (a, b, c?)>",
    "an alternative that never ends": "<!ELEMENT a (b | c)*> <!ELEMENT b (b)> <!ELEMENT c EMPTY>",
    "an optional group that never ends": "<!ELEMENT a ((b, c)?, c)> <!ELEMENT b (b, c)> <!ELEMENT c EMPTY>",
    "an alternative without declaration": "<!ELEMENT a (ghost | b)+> <!ELEMENT b (ghost?, a?)>",
    "mixed with what never ends": "<!ELEMENT a (#PCDATA | b | c)*> <!ELEMENT b (b)> <!ELEMENT c EMPTY>",
}
