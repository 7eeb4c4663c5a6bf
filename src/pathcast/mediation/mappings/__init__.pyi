from .document_items import item_of as item_of
from .document_items import to_bytes as to_bytes
from .mapping_messages import is_packed as is_packed
from .mapping_messages import original as original
from .schema_mapping import read_tree as read_tree
