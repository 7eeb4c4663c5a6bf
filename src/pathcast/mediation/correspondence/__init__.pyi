from .schema_correspondence import Pair as Pair
from .schema_correspondence import correspond as correspond
from .synonym_dictionary import SynonymDictionary as SynonymDictionary
