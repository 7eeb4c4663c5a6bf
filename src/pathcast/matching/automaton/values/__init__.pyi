from .required_path_gate import gate as gate
