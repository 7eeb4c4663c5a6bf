from .automaton_engine import AutomatonEngine as AutomatonEngine
