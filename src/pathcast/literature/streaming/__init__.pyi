from .streaming_engine import Arrays as Arrays
from .streaming_engine import DelegatedPatterns as DelegatedPatterns
