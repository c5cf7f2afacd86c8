"""Tree ensembles of any library as plain arrays."""
