"""Executors: this process, several processes, a Ray cluster."""
