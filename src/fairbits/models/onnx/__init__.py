"""ONNX graphs: read, run and written."""
