"""How the raw files of the tables that ship were coded: read by `tools.tables` alone."""
