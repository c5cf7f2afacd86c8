"""The explorer in a notebook without a port (extra ``widget``): the one-file page in a frame of its own."""

from __future__ import annotations

from typing import Any

from fairbits.errors import MissingDependencyError
from fairbits.explore.explorer import Explorer
from fairbits.explore.page import page_text
from fairbits.store import Run
from fairbits.subject import Subject

#: The page brings its own look and script; the frame keeps both from the notebook, and the notebook from them.
_SCRIPT = """
function render({ model, el }) {
  const frame = document.createElement("iframe");
  frame.title = "fairbits explorer";
  frame.setAttribute("sandbox", "allow-scripts");
  frame.style.cssText = `width: 100%; height: ${model.get("height")}px; border: 0`;
  frame.srcdoc = model.get("page");
  el.append(frame);
}
export default { render };
"""


def explorer_widget(run: Run, *, subject: Subject | None = None, height: int = 820) -> Any:
    """The explorer of a run as an anywidget, for Jupyter, VS Code, Colab and marimo.

    Parameters
    ----------
    run
        A run of a network or of trees, from :func:`fairbits.open_run`.
    subject
        The model and table, where the run was made from Python objects.
    height
        Of the frame, in pixels.

    Returns
    -------
    anywidget.AnyWidget
        What a notebook shows.
    """
    try:
        import anywidget
        import traitlets
    except ImportError:
        raise MissingDependencyError("anywidget", "widget", "the explorer in a notebook") from None

    traits = {
        "_esm": _SCRIPT,
        "page": traitlets.Unicode(page_text(Explorer(run, subject=subject))).tag(sync=True),
        "height": traitlets.Int(height).tag(sync=True),
    }
    return type("ExplorerWidget", (anywidget.AnyWidget,), traits)()
