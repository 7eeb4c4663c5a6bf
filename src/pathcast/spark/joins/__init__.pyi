from .join_files import publish_file as publish_file
from .join_files import read_join_subscriptions as read_join_subscriptions
