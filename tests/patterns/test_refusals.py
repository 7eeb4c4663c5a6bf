"""The parser rejects other expressions with the position, the offending text and what is supported instead."""

from operator import attrgetter

import pytest

from pathcast.errors import PatternError
from pathcast.patterns import parse
from tests.corpus import Refusal, refusals


@pytest.mark.parametrize("refusal", refusals(), ids=attrgetter("id"))
def test_the_error_points_at_the_offending_text(refusal: Refusal) -> None:
    with pytest.raises(PatternError) as caught:
        parse(refusal.pattern, refusal.namespaces)
    error = caught.value
    assert (error.column, error.offending) == (refusal.column, refusal.offending)
    assert error.expression == refusal.pattern
    assert error.supported
    assert error.reason
