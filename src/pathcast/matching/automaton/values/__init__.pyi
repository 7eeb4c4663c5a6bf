from .path_gates import gate as gate
