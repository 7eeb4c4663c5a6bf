from .explain_match import explain as explain
from .explanation import Elsewhere as Elsewhere
from .explanation import Explanation as Explanation
from .explanation import Finding as Finding
from .explanation import Place as Place
from .explanation_text import lines as lines
