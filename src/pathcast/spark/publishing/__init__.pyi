from .index_versions import is_versioned as is_versioned
from .index_versions import latest as latest
from .index_versions import version_folder as version_folder
