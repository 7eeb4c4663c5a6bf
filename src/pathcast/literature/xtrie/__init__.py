"""The XTrie engine: maximal wildcard-free substrings in a trie, a substring table, partial matchings."""

from .engine import XTrieEngine

__all__ = ["XTrieEngine"]
