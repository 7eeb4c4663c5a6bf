from .annotations import NOTHING as NOTHING
