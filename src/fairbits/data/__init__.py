"""The built-in subjects: their tables, where these come from, how they are coded, and the networks trained on them.

Nothing is read, written or downloaded by importing this package.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
