from .xtrie_engine import RunInputs as RunInputs
from .xtrie_engine import XTrieEngine as XTrieEngine
