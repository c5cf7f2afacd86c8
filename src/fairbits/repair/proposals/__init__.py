"""Repairs that are proposed, one file each."""
