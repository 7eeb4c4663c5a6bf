from .entry_path import EntryPath as EntryPath
from .entry_path import parse_entry_path as parse_entry_path
from .entry_stream import entries_of as entries_of
from .entry_stream import split_documents as split_documents
from .splitter import Entry as Entry
from .splitter import Splitter as Splitter
