"""The subject that a run was about, loaded again and checked: a repair must not mend another model."""

from __future__ import annotations

from pathlib import Path

from fairbits.data import Subject, load_subject
from fairbits.domain.toml import read_document, section_of
from fairbits.errors import CapabilityError, OptionError
from fairbits.models import Network
from fairbits.store import Run


def subject_of(run: Run, given: Subject | None = None) -> Subject:
    """The subject of a run, with the attributes protected that the run protected."""
    source = run.manifest.get("source")
    if given is None and source is None:
        raise OptionError(
            f"the run in {str(run.folder)!r} does not say where its model is, because it was started from Python; "
            f"hand over the subject."
        )
    subject = (given or load_subject(str(source))).with_protected(run.manifest["protected"])
    found, wanted = subject.fingerprint(), run.manifest["fingerprint"]
    if found != wanted:
        raise OptionError(
            f"the model, table or schema of {subject.name!r} changed since the run in {str(run.folder)!r} "
            f"(fingerprint {found}, was {wanted}); search again, or restore what it was."
        )
    return subject


def network_of(subject: Subject) -> Network:
    """The network to be repaired, or what can be done instead."""
    if isinstance(subject.model, Network):
        return subject.model
    raise CapabilityError(
        f"repair changes weights, which {type(subject.model).__name__!r} does not show; measure, search and cases work "
        f"for it, and holding the protected inputs constant before it is asked ends their direct use."
    )


def format_of(subject: Subject) -> str:
    """The ending of the model file that a subject came with; built-in networks are .npz."""
    if subject.source is None or not Path(subject.source).is_file():
        return ".npz"
    path = section_of(read_document(Path(subject.source)), "model").get("path")
    ending = Path(str(path)).suffix.lower()
    return ending if ending in (".npz", ".onnx") else ".npz"
