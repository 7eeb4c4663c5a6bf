from .document_annotations import NOTHING as NOTHING
