"""The report of a table of scores: groups and indirect bits, in the same three faces as any other report."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from markupsafe import Markup

from fairbits._version import __version__
from fairbits.errors import OptionError
from fairbits.report.files import HTML, MARKDOWN, SUMMARY
from fairbits.report.markdown import indirect_text, text
from fairbits.report.page import rendered
from fairbits.report.sections.proxies import (
    WHAT_A_BIT_IS,
    carriers,
    lead,
    matches,
    pictures,
    sentences,
    summary,
)
from fairbits.report.summary import FORMAT
from fairbits.store import plain, write_json, write_whole
from fairbits.subject import Subject

LIMITS = (
    "The model is not at hand: nobody but the people of the table can be scored, so there are no twins, no search, no "
    "repair and no certificate. Whether the model takes a protected attribute itself cannot be known from scores."
)


def write_scores_report(document: Mapping[str, Any], subject: Subject, folder: Path) -> Path:
    """Write report.html, report.md and summary.json of a table of scores.

    Parameters
    ----------
    document
        The content of proxies.json.
    subject
        Whose scores.
    folder
        Where to; it is made.

    Returns
    -------
    Path
        The page.

    Raises
    ------
    OptionError
        Where the folder cannot be written to.
    """
    sentence = lead(document, blind=True).strip() or _unknown(document)
    quality = () if subject.quality is None else tuple(subject.quality.lines())
    created = datetime.now(UTC).date().isoformat()
    page = rendered(
        "scores.html",
        data=SimpleNamespace(proxies=document),
        subject=subject.name,
        sentence=sentence,
        created=created,
        lines=(f"{document['rows']:,} people, their scores only.", *quality, LIMITS),
        notes=subject.notes,
        indirect=list(sentences(document)),
        carriers=carriers(document),
        matches=matches(document),
        pictures={name: Markup(svg) for name, svg in pictures(document).items()},  # noqa: S704 - made by us
        what_a_bit_is=WHAT_A_BIT_IS,
    )
    head = [f"# {text(subject.name, 80)}: fairbits audit", "", f"**{text(sentence, 400)}**", "", text(LIMITS, 400), ""]
    words = "\n".join([*head, *indirect_text(document)]).rstrip() + "\n"
    figures = {} if subject.quality is None else subject.quality.figures()
    about = {"subject": subject.name, "rows": document["rows"], "scores_only": True, "fairbits": __version__}
    whole = plain({**about, "format": FORMAT, **figures, "sentence": sentence, "proxies": summary(document)})
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write_whole(folder / HTML, page.encode())
        write_whole(folder / MARKDOWN, words.encode())
        write_json(folder / SUMMARY, whole)
    except OSError as error:
        raise OptionError(
            f"cannot write to {str(folder)!r}: {error.strerror or error}; choose another --out."
        ) from None
    return folder / HTML


def _unknown(document: Mapping[str, Any]) -> str:
    """Where nothing can be known about any attribute, the reason is the finding."""
    reasons = [one["reason"] for one in document["attributes"] if one["reason"]]
    return f"What the score tells cannot be known: {reasons[0]}" if reasons else "Nothing was found."
