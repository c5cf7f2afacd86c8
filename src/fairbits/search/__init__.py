"""The search for the people whose twins are treated most differently."""
