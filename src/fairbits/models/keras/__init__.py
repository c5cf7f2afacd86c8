"""Keras models and their files."""
