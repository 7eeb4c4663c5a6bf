from .engine import Lent as Lent
from .engine import XTrieEngine as XTrieEngine
