from .join_subscription import Subscription as Subscription
from .row_extraction import Extractor as Extractor
from .table_schema_file import SchemaFile as SchemaFile
from .table_schema_file import read_schema_file as read_schema_file
from .value_text_conversion import read_value as read_value
from .value_text_conversion import write_row as write_row
