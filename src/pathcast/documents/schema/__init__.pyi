from .document_schema import Attribute as Attribute
from .document_schema import Element as Element
from .document_schema import Occurrence as Occurrence
from .document_schema import Particle as Particle
from .document_schema import Schema as Schema
from .dtd_reader import read_dtd as read_dtd
