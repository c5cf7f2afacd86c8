"""A block to sign: name, role, date, decision. It prints."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from fairbits.report.markup import table
from fairbits.report.section import Section

if TYPE_CHECKING:
    from fairbits.report.record import ReportData

FIELDS = ("Name", "Role", "Date", "Signature")
DECISIONS = ("approved", "approved with conditions", "not approved")


def _markdown(_: ReportData) -> Iterator[str]:
    yield "## Sign-off"
    yield ""
    yield from table([*FIELDS[:3], "Decision", FIELDS[3]], [["", "", "", " / ".join(DECISIONS), ""]] * 2)


def _values(_: ReportData) -> dict[str, Any]:
    return {"fields": FIELDS, "decisions": DECISIONS}


TEMPLATE = """
<section id="sign-off" aria-labelledby="sign-off-title">
<h2 id="sign-off-title">Sign-off</h2>
<p class="lead">Whoever decides about this model on the grounds of this page signs here, on paper; a signature under the files is made with <code>fairbits report RUN --sign KEY</code>.</p>
<div class="signing">
{% for name in fields %}<div class="line {{ name|lower }}"><span>{{ name }}</span></div>
{% endfor %}<div class="line choice"><span>Decision</span><p>{% for one in decisions %}<span class="box">{{ one }}</span>{% endfor %}</p></div>
<div class="line conditions"><span>Conditions, and until when</span></div>
</div>
</section>
"""

SECTION = Section("sign-off", "Sign-off", TEMPLATE, _markdown, values=_values)
