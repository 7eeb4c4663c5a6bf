from .initial_contents import Beginnings as Beginnings
from .join_server import Step as Step
