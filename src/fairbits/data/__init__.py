"""The built-in subjects: their tables, where these come from and how they are coded."""
