"""A subject that can go to another process: itself where it can be pickled, else the place to load it from."""

from __future__ import annotations

import pickle
from dataclasses import dataclass, field
from typing import Any, Unpack

import cloudpickle

from fairbits.data import load_subject
from fairbits.domain import GrantOptions, joined
from fairbits.errors import ModelError
from fairbits.subject import Subject, differences


@dataclass(frozen=True, slots=True)
class Portable:
    """What a worker needs to have the subject of its coordinator, and no other; make one with ``of``."""

    name: str
    identity: dict[str, Any]
    content: bytes | None
    source: str | None
    protected: tuple[str, ...]
    grants: GrantOptions = field(default_factory=GrantOptions)
    repeats: int = 1

    @classmethod
    def of(cls, subject: Subject, **grants: Unpack[GrantOptions]) -> Portable:
        """Pack a subject for another process."""
        content: bytes | None = None
        try:
            content = cloudpickle.dumps(subject)  # takes classes and functions of a notebook along
        except Exception as error:  # noqa: BLE001 - every framework has its own way of saying that it cannot be pickled
            if subject.source is None:
                raise ModelError(
                    f"the model of {subject.name!r} cannot be sent to other processes ({error}); give it as a file "
                    f"in a subject.toml, which workers can open, or leave the workers out."
                ) from None
        protected = tuple(subject.schema.protected)
        known = subject.identity.document()
        return cls(subject.name, known, content, subject.source, protected, grants, subject.repeats)

    def open(self) -> Subject:
        """The subject, in whatever process this is."""
        if self.content is not None:
            subject: Subject = pickle.loads(self.content)  # noqa: S301 - packed by our own coordinator
            return subject
        subject = load_subject(str(self.source), **self.grants).with_protected(self.protected)
        subject = subject.with_repeats(self.repeats)
        found = differences(self.identity, subject.identity)
        if found:
            raise ModelError(
                f"subject {self.name!r} is not the same where the worker runs ({self.source!r}): "
                f"{joined(found)}; give all machines the same model and table."
            )
        return subject
