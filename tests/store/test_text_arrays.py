"""Texts in arrays: packed texts can be read back, and bytes that are not UTF-8 are reported as damage."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pathcast import SnapshotError
from pathcast.store.text_arrays import Texts, pack


@given(st.lists(st.text()), st.lists(st.text()))
def test_texts_are_those_that_were_packed_and_those_that_were_added(packed: list[str], added: list[str]) -> None:
    texts = Texts(*pack(packed))
    for text in added:
        texts.append(text)
    assert list(texts) == texts[:] == packed + added
    assert [texts[place - len(texts)] for place in range(len(texts))] == packed + added


def test_bytes_that_are_no_text_are_damage() -> None:
    texts = Texts(np.array([97, 255], dtype=np.uint8), np.array([0, 1, 2]))
    assert texts[0] == "a"
    with pytest.raises(SnapshotError, match="a text is not UTF-8; write the snapshot again"):
        texts[1]
    with pytest.raises(SnapshotError, match="a text is not UTF-8; write the snapshot again"):
        list(texts)
