from .engine import RunInputs as RunInputs
from .engine import XTrieEngine as XTrieEngine
