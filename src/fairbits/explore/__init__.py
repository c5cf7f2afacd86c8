"""A page on this machine where one person is changed, one neuron switched, and the bits answer at once."""

from fairbits.explore.explorer import Explorer
from fairbits.explore.server import build_app
from fairbits.explore.serving import listen, serve

__all__ = ["Explorer", "build_app", "listen", "serve"]
