"""The subject that a run was about, loaded again and checked: nothing may be said or mended about another model."""

from __future__ import annotations

from typing import Unpack

from fairbits.data import Subject, load_subject
from fairbits.domain.limits import GrantOptions
from fairbits.errors import OptionError
from fairbits.store.run import Run


def subject_of(run: Run, given: Subject | None = None, **grants: Unpack[GrantOptions]) -> Subject:
    """The subject of a run, with the attributes protected that the run protected.

    ``given`` is needed only for a run whose subject came from neither a name nor a file.
    """
    source = run.manifest.get("source")
    if given is None and source is None:
        raise OptionError(
            f"the run in {str(run.folder)!r} does not say where its model is, because it was started from Python; "
            f"hand over the subject, as Audit(…).open(folder) does."
        )
    subject = given if given is not None else load_subject(str(source), **grants)
    subject = subject.with_protected(run.manifest["protected"])
    found, wanted = subject.fingerprint(), run.manifest["fingerprint"]
    if found != wanted:
        raise OptionError(
            f"the model, table or schema of {subject.name!r} has changed since the run in {str(run.folder)!r} "
            f"(fingerprint {found}, was {wanted}); search again, or restore what it was."
        )
    return subject
