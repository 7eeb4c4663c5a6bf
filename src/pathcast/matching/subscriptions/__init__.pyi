from .csv_field_limit import fields_of_any_length as fields_of_any_length
from .id_and_subscriber_checks import check_namespaces as check_namespaces
from .subscription_files import LARGEST_ID as LARGEST_ID
