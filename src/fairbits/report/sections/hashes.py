"""The files of the run with their hashes, and how the page is checked later."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from fairbits.numerals import number
from fairbits.report.manifest import MANIFEST, SIGNATURE
from fairbits.report.markup import table, text
from fairbits.report.section import Section

if TYPE_CHECKING:
    from fairbits.report.record import ReportData

_WORDS = (
    f"{MANIFEST} beside this page holds the hash of every file of the run, this page included; "
    f"`fairbits report RUN --sign KEY` signs it ({SIGNATURE}), and `fairbits report RUN --verify` names every file that "
    "was changed, added or removed since."
)


def _markdown(data: ReportData) -> Iterator[str]:
    yield "## Files of this run"
    yield ""
    yield _WORDS
    yield ""
    yield from table(
        ["file", "bytes", "SHA-256"], ([text(one.path), number(one.bytes), one.sha256] for one in data.files)
    )


TEMPLATE = """
<section id="files" aria-labelledby="files-title">
<h2 id="files-title">Files of this run</h2>
<p class="lead"><code>manifest.json</code> beside this page holds the hash of every file of the run, this page included. <code>fairbits report RUN --sign KEY</code> signs it, and <code>fairbits report RUN --verify</code> names every file that was changed, added or removed since.</p>
<details><summary>{{ number(data.files|length) }} files that the page was made from, with their hashes</summary>
<div class="table"><table>
<thead><tr><th scope="col">file</th><th scope="col" class="n">bytes</th><th scope="col">SHA-256</th></tr></thead>
<tbody>{% for one in data.files %}<tr><th scope="row">{{ p.label(one.path, 120) }}</th><td class="n">{{ number(one.bytes) }}</td><td><code class="hash">{{ one.sha256 }}</code></td></tr>
{% endfor %}</tbody></table></div></details>
</section>
"""

SECTION = Section("files", "Files", TEMPLATE, _markdown, shown=lambda data: bool(data.files))
