from .java import OLDEST as OLDEST
from .java import find_java as find_java
from .jvm import how_it_ended as how_it_ended
from .jvm import is_lost as is_lost
from .jvm import keep_quiet_about_its_end as keep_quiet_about_its_end
from .jvm import silence as silence
from .session import running as running
