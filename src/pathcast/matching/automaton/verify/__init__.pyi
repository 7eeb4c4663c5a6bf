from .condition_table import Conditions as Conditions
from .verifier import Verifier as Verifier
