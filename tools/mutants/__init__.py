"""A mutation survey: do the tests notice when a step of the method is changed?

`table.toml` lists changes of one line or two, each with the tests that must notice it. The survey applies each of them
alone to a copy of the project and runs these tests. It is our own short list and not a mutation library: those change
every operator in turn, thousands of them, and each change to a file with kernels costs a compilation.
"""
