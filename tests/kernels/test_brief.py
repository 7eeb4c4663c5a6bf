"""Only brief kernels keep the GIL."""

import re
from typing import Any

from pathcast.kernels.compilation.kernel_cache import kernel_sources
from pathcast.matching.table import path_trie_kernels as trie_kernels

BRIEF = re.compile(r"^@kernel\([^@]*?brief=True,?\s*\)\ndef (\w+)", re.MULTILINE)


def test_brief_kernels_keep_the_gil_and_others_release_it() -> None:
    kernels: Any = trie_kernels  # a compiled function has more attributes than its type declares
    assert kernels.enter_path.brief
    assert not kernels.insert_paths.brief


def test_only_these_are_brief() -> None:
    found = {(path.name, name) for path in kernel_sources() for name in BRIEF.findall(path.read_text())}
    assert found == {
        ("pending_paths_kernels.py", "put_pending"),
        ("scanner_kernels.py", "bounds"),
        ("path_trie_kernels.py", "enter_path"),
    }
