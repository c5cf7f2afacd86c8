"""The subject that a run was about, loaded again and checked: nothing may be said or mended about another model."""

from __future__ import annotations

from dataclasses import replace
from typing import Unpack

from fairbits.data import load_subject
from fairbits.domain import GrantOptions
from fairbits.errors import OptionError
from fairbits.store.run import Run
from fairbits.subject import Quality, Subject, check_identity, document_of_schema


def subject_of(run: Run, given: Subject | None = None, **grants: Unpack[GrantOptions]) -> Subject:
    """The subject of a run, loaded and checked again, with the attributes protected that the run protected.

    The run itself is verified too (:meth:`Run.verify`): this is the door to every stage that speaks about one.
    """
    run.verify()
    source = run.manifest.get("source")
    if given is None and source is None:
        raise OptionError(
            f"the run in {str(run.folder)!r} does not say where its model is, because it was started from Python; "
            f"hand over the subject, as Audit(…).open(folder) does."
        )
    subject = given if given is not None else load_subject(str(source), **grants)
    subject = subject.with_protected(run.manifest["protected"])
    if subject.repeats == 1:
        subject = subject.with_repeats(run.manifest.get("repeats", 1))
    check_identity(run.manifest, subject.identity, what=f"the run in {str(run.folder)!r}")
    if document_of_schema(run.schema) != document_of_schema(subject.schema):
        raise OptionError(
            f"the schema in run.json of {str(run.folder)!r} is not that of its subject, although both have the same "
            f"identity: it is damaged; restore it from a copy."
        )
    return subject


def accepted_subject(run: Run, given: Subject | None = None, **grants: Unpack[GrantOptions]) -> Subject:
    """The subject of a run as :func:`subject_of` gives it, with the quality that the search found its model to have.

    Whoever began the run has accepted a model that decides against its labels, so it is not refused here.
    """
    subject = subject_of(run, given, **grants)
    kept = run.manifest.get("quality")
    if subject.quality is None and kept is not None:
        subject = replace(subject, quality=Quality.of_figures(kept))
    return subject.checked(as_is=True)
