from .dtd import read_dtd as read_dtd
from .schema import Attribute as Attribute
from .schema import Element as Element
from .schema import Occurrence as Occurrence
from .schema import Particle as Particle
from .schema import Schema as Schema
