"""What a figure is about: a model, a table and a schema, settled once, the right way round and by one rule."""

from fairbits.subject.identity import Identity, check_identity, differences, identity_of
from fairbits.subject.probe import Probe, ask_probe

__all__ = ["Identity", "Probe", "ask_probe", "check_identity", "differences", "identity_of"]
