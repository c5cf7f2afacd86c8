"""One file per dataset: its schema, in words, and the step from its raw table to codes.

The coding is that of the published experiments (same columns, same order, same codes), so that m and the domains
match the paper's; names and labels are ours, from the datasets' own documentation.
"""
