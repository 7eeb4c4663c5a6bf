"""The XTrie engine: maximal wildcard-free substrings in a trie, a substring table, partial matchings."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
