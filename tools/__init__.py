"""Tools for whoever works on the project; no part of the package."""
