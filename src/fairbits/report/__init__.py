"""HTML, Markdown and JSON from a run: computed once as one record, then drawn."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
