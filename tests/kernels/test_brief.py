"""Which kernels keep the GIL: the brief ones, and no others."""

from pathcast.matching import trie_kernels


def test_brief_kernels_keep_the_gil_and_others_release_it() -> None:
    assert not trie_kernels.enter_path.targetoptions["nogil"]
    assert trie_kernels.insert_paths.targetoptions["nogil"]
