"""A subject settled once: which model, the right way round, by which rule, and how well it agrees with the labels."""
