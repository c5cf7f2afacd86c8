"""Sphinx: Markdown pages, notebooks, one theme, and a reference that is read off the docstrings."""

import json
import re
from pathlib import Path

from myst_parser.sphinx_ import Parser

project = "fairbits"
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
html_theme = "furo"
html_title = "fairbits"
html_show_copyright = False
exclude_patterns = ["_build"]
html_extra_path = ["_gallery"] if Path(__file__).with_name("_gallery").is_dir() else []  # tools/gallery.py fills it
myst_heading_anchors = 3

# Docstrings have numpydoc sections; types stand in the signatures.
napoleon_google_docstring = False
napoleon_use_rtype = False
napoleon_preprocess_types = False
autodoc_default_options = {"members": True, "show-inheritance": False, "member-order": "bysource"}
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_class_signature = "mixed"
maximum_signature_line_length = 88

TOP = "api/index"  # the page of the names that `import fairbits` gives


def skip_elsewhere(app, what, name, member, skip, options):  # noqa: ARG001
    """Show a name once: those of the top level on its page, and nothing that another library wrote."""
    import fairbits

    if str(getattr(member, "__module__", "") or "").startswith(("matplotlib", "sklearn")):
        return True
    if what == "module" and app.env.current_document.docname != TOP and name in fairbits.__all__:
        return True
    return None


class NotebookParser(Parser):
    """A notebook as Markdown: its text, its code, and what the code printed."""

    supported = ("notebook",)

    def parse(self, inputstring, document):
        lines = []
        for cell in json.loads(inputstring)["cells"]:
            text = "".join(cell["source"])
            printed = "".join("".join(output["text"]) for output in cell.get("outputs", ()))
            lines.append(text if cell["cell_type"] == "markdown" else f"```python\n{text}\n```")
            lines += [f"```text\n{printed}\n```"] * bool(printed)
        super().parse("\n\n".join(lines), document)


def link_terms(app, pagename, templatename, context, doctree):  # noqa: ARG001
    """Lead the first mention of each term on a page to the glossary, as the page of a report does."""
    from fairbits.report.html import link_terms, terms

    if doctree is None or pagename == "glossary" or pagename.startswith("api/"):
        return
    known, glossary = app.env.domains.standard_domain.objects, context["pathto"]("glossary")
    anchors = {f"#{mine}": f"{glossary}#{known['term', term][1]}" for mine, (term, _) in terms().items()}
    parts = re.split(r"(<p>.*?</p>)", context["body"], flags=re.DOTALL)  # no headings, no code
    linked = link_terms("\0".join(parts[1::2]))[0]
    parts[1::2] = re.sub(r'(?<=class="term" href=")[^"]+', lambda found: anchors[found[0]], linked).split("\0")
    context["body"] = "".join(parts)


def setup(app):
    """Register the parser and the hooks."""
    app.add_source_suffix(".ipynb", "notebook")
    app.add_source_parser(NotebookParser)
    app.connect("autodoc-skip-member", skip_elsewhere)
    app.connect("html-page-context", link_terms)


# Shapes such as "(n, attributes)" are read as types, and two classes may have an attribute of that name.
suppress_warnings = ["ref.python"]
