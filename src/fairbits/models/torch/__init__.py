"""PyTorch: modules, weight files and exported programs."""
