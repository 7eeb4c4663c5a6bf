from .document_object_tree import item_of as item_of
from .document_object_tree import to_bytes as to_bytes
from .document_with_mapping_message import is_packed as is_packed
from .document_with_mapping_message import original as original
from .schema_mapping import read_tree as read_tree
