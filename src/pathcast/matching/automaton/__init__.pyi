from .engine import AutomatonEngine as AutomatonEngine
