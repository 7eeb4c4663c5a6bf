from .schema_integration import Decision as Decision
from .schema_integration import Integration as Integration
from .schema_integration import integrate as integrate
from .schema_sources import sample_count as sample_count
from .schema_sources import with_samples as with_samples
from .schema_tree import nodes_of as nodes_of
from .schema_tree import parent_of as parent_of
from .short_paths import ShortPaths as ShortPaths
