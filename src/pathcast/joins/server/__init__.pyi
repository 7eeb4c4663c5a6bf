from .initial_contents import InitialContents as InitialContents
from .join_server import Step as Step
