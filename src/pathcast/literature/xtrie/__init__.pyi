from .xtrie_engine import Lent as Lent
from .xtrie_engine import XTrieEngine as XTrieEngine
