"""Figures as ratios within one run: the machine they are measured on is never quiet."""
