from .java_installation import OLDEST as OLDEST
from .java_installation import find_java as find_java
from .jvm_signals_and_exit import how_it_ended as how_it_ended
from .jvm_signals_and_exit import is_lost as is_lost
from .jvm_signals_and_exit import keep_quiet_about_its_end as keep_quiet_about_its_end
from .jvm_signals_and_exit import silence as silence
from .spark_session import running as running
