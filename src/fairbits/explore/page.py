"""The explorer's page: as parts for the one who serves it, or as one file with the model inside that opens from disk,
also in a notebook (extra ``widget``), in a frame of its own and without a port.

The file holds the model, the rules and the people to start from, who are in the report too; no other row of the table.
The script in it (``static/model.js``) scores to the bit as the engine does: networks as the plan that the kernels get,
trees as the flat arrays of their ensemble.
"""

from __future__ import annotations

import base64
import hashlib
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

from fairbits.domain import Encoding, Numeric, Unseen
from fairbits.engine import plan_of, ruler_of, tree_plan
from fairbits.errors import MissingDependencyError, OptionError
from fairbits.explore.explorer import STATISTICS, Explorer, blank_row, row_of
from fairbits.measure import Evaluator
from fairbits.models import Do, HasTrees, Network, kind_of
from fairbits.report import stylesheet
from fairbits.store import Run, write_whole
from fairbits.subject import Subject
from fairbits.text import json_text, shortened

#: Bytes of a file: more would be no pleasure to send or to open.
MAX_BYTES = 24 * 1024 * 1024
#: One script to the browser, several to whoever reads them; before the last one comes who answers its questions.
_SCRIPTS = ("pictures.js", "fields.js", "neurons.js", "", "explore.js")

_SERVED = "Served to this machine alone; nothing in the run is changed."
_ALONE = (
    "This file holds the model and the people listed; the rest of the table stays where it is, and nothing leaves the "
    "page."
)


def style() -> str:
    """The look: the report's, and what the explorer adds."""
    return stylesheet() + _file("report.css", "fairbits.report", "templates") + _file("explore.css")


def script(answers: str) -> str:
    """The page's script, with the file that answers its questions."""
    return "\n".join(_file(name or answers) for name in _SCRIPTS)


def served_page(token: str) -> str:
    """The page that asks the explorer which serves it."""
    look = f'<link rel="stylesheet" href="/explore.css?token={token}">'
    return _page(f'{look}\n<script src="/explore.js?token={token}" defer></script>', "", _SERVED)


def write_page(explorer: Explorer, path: Path) -> Path:
    page = page_text(explorer)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, page.encode())
    return path


def page_text(explorer: Explorer) -> str:
    """The page with the model inside; only networks and trees can be, and only so large."""
    content = json_text(document_of(explorer), indent=None).replace("<", "\\u003c")
    code, look = script("model.js"), style()
    allowed = f"script-src '{_hash(code)}'; style-src '{_hash(look)}'; img-src data:"
    policy = f"default-src 'none'; {allowed}; base-uri 'none'; form-action 'none'"
    head = f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n<style>{look}</style>'
    page = _page(
        head, f'<script type="application/json" id="model">{content}</script>\n<script>{code}</script>', _ALONE
    )
    if len(page.encode()) > MAX_BYTES:
        raise OptionError(
            f"the page would have {len(page) / 2**20:,.0f} MB, more than {MAX_BYTES // 2**20}; serve it instead with: "
            f"fairbits explore {explorer.run.folder}"
        )
    return page


def document_of(explorer: Explorer) -> dict[str, Any]:
    """Everything that the page knows: what :meth:`Explorer.start` says, the model, twins and rules."""
    evaluator, schema = explorer.evaluator, explorer.schema
    model = evaluator.model
    known = _network(evaluator) if isinstance(model, Network) else _trees(evaluator)
    if known is None or evaluator.by_vector:
        what = "whole vectors of probabilities" if evaluator.by_vector else kind_of(model)
        raise OptionError(
            f"one file can hold networks and trees with one score, and this is {what}; serve the page instead with: "
            f"fairbits explore {explorer.run.folder}"
        )
    start = explorer.start()
    protected = set(schema.protected_columns)
    ruler = ruler_of(evaluator.twins.m, evaluator.epsilon, evaluator.partition, schema.probabilities)
    last = float(ruler.last)
    return {
        "setting": {**start, "people": _people(explorer, start["people"]), "rows": 0, "judged": 0, "embedded": True},
        "model": known,
        "holds": _holding(explorer) if isinstance(model, Network) else [],
        "twins": {
            "columns": evaluator.twins.columns.tolist(),
            "values": _packed(evaluator.twins.values),
            "m": evaluator.twins.m,
        },
        "columns": list(schema.person_columns),
        "blank": blank_row(schema).tolist(),
        "rules": [
            {"text": shortened(rule.text, 120), "program": rule.program, "twins": bool(protected & set(rule.columns))}
            for rule in schema.rules
        ],
        "ruler": {
            "grid": ruler.grid,
            "epsilon": float(ruler.epsilon),
            "tolerance": float(ruler.tolerance),
            "last": last if np.isfinite(last) else None,
        },
        "threshold": schema.rule.threshold,
        "bounded": schema.probabilities,
    }


def _network(evaluator: Evaluator) -> dict[str, Any]:
    """The plan of the kernels, without what pads it to whole tiles."""
    twins = evaluator.twins if evaluator.schema.protected else None
    plan = plan_of(evaluator.model, evaluator.encoding, twins)  # type: ignore[arg-type]
    program = plan.program
    fields = ("bias", "twins", "slopes", "alphas", "weights", "biases", "shifts", "numeric_slopes")
    whole = ("widths", "curves", "columns", "lookup_sizes", "lookup_strides", "table_starts", "table_members")
    return {
        **{name: _packed(getattr(program, name)) for name in fields},
        **{name: getattr(program, name).astype(int).tolist() for name in whole},
        "tables": _packed(plan.merged),
        "linear": bool(program.linear),
    }


def _holding(explorer: Explorer) -> list[list[list[float | None]]]:
    """By layer, statistic and neuron: the bias that alone makes the neuron put out the value."""
    network, switches = explorer.subject.model, explorer.switches
    assert isinstance(network, Network)  # noqa: S101 - asked by the caller
    return [
        [
            [
                float(np.float32(network.holding_bias(Do(layer, neuron, float(values[place, neuron])))))
                if able[place, neuron]
                else None
                for neuron in range(values.shape[1])
            ]
            for place in range(len(STATISTICS))
        ]
        for layer, (values, able) in enumerate(zip(switches.values, switches.possible, strict=True))
    ]


def _trees(evaluator: Evaluator) -> dict[str, Any] | None:
    """The ensemble as it is, and how a row becomes its inputs; None for a model without trees."""
    varied = evaluator.twins if evaluator.schema.protected else None
    model, schema = evaluator.model, evaluator.schema
    plan = tree_plan(model, schema, evaluator.encoding, varied) if isinstance(model, HasTrees) else None
    if plan is None:
        return None
    trees = plan.ensemble
    arrays = ("roots", "output", "feature", "threshold", "left", "right", "missing", "missing_left", "sets", "values")
    return {
        **{name: _packed(getattr(trees, name)) for name in (*arrays, "base")},
        "members": [_packed(member) for member in trees.members],
        "known": [None if nodes is None else _packed(nodes) for nodes in trees.known],
        "width": trees.width,
        "link": trees.link,
        "slope": trees.slope,
        "single": trees.adds == "float32",
        "compares_narrow": trees.precision == "float32",
        "base_last": trees.base_last,
        "divisor": trees.divisor,
        "favourable": plan.favourable,
        "complement": plan.complement,
        **_inputs(evaluator.encoding),
    }


def _inputs(encoding: Encoding) -> dict[str, Any]:
    fixed = np.zeros(encoding.width)
    fixed[list(encoding.fixed)] = list(encoding.fixed.values())
    parts: list[dict[str, Any]] = [
        {"columns": []}
        if isinstance(part, Unseen)
        else {"column": part.column, "shift": part.shift, "scale": part.scale, "gap": part.gap}
        if isinstance(part, Numeric)
        else {"columns": part.columns.tolist(), "low": part.low, "table": _packed(part.table)}
        for part in encoding.parts
    ]
    return {"narrow": encoding.dtype == np.float32, "fixed": _packed(fixed), "parts": parts}


def _people(explorer: Explorer, people: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """People with what only the table knows: how far they are from a real row, and twins who break rules but exist."""
    evaluator = explorer.evaluator
    layers = []
    for person in people:
        codes = row_of(person["codes"], explorer.schema)[None]
        valid, ruled = evaluator.valid_twins(codes), evaluator.by_rules.valid_twins(codes)
        also = [] if valid is None or ruled is None else np.flatnonzero(valid[0] & ~ruled[0]).tolist()
        layers.append({**person, "also": also, "distance": explorer.distance_of(codes)})
    return layers


def _packed(array: Any) -> dict[str, str]:
    """An array for JavaScript: the letters of its kind, and its bytes."""
    contiguous = np.ascontiguousarray(array)
    real = "f4" if contiguous.dtype == np.float32 else "f8"
    kind = {"f": real, "b": "u1"}.get(contiguous.dtype.kind, "i4")
    return {"kind": kind, "bytes": base64.b64encode(contiguous.astype(f"<{kind}").tobytes()).decode()}


def _page(head: str, tail: str, foot: str) -> str:
    page = _file("explore.html")
    for mark, text in (("HEAD", head), ("TAIL", tail), ("FOOT", foot)):
        before, after = page.split(mark, 1)
        page = before + text + after
    return page


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _file(name: str, package: str = "fairbits.explore", folder: str = "static") -> str:
    return resources.files(package).joinpath(folder, name).read_text(encoding="utf-8")


#: The page brings its own look and script; the frame keeps both from the notebook, and the notebook from them.
_WIDGET = """
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
        raise MissingDependencyError.of("anywidget", "widget", "the explorer in a notebook") from None

    traits = {
        "_esm": _WIDGET,
        "page": traitlets.Unicode(page_text(Explorer(run, subject=subject))).tag(sync=True),
        "height": traitlets.Int(height).tag(sync=True),
    }
    return type("ExplorerWidget", (anywidget.AnyWidget,), traits)()
