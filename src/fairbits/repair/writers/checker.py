"""Asks written files about people, in a process of its own and by the library that their owner would use.

A job is a plain dict. ``settle`` finds out how a model is asked: which of several ways to give it the owner's rows, and
which way to read its outputs, gives back the audited scores. Where the model names its classes, the names decide the
reading; else the original has shown it, and a written file must be read in the same way. ``ask`` opens a file and asks.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import pickle
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from fairbits import models
from fairbits.repair.writers import standalone

Job = dict[str, Any]
Answer = dict[str, Any]
#: Seconds that opening and asking all files may take on a busy machine.
SECONDS = 300.0
#: How far a score may lie from the audited one, as a share of the scores' scale: parameters that a normalisation
#: divides are rounded once more, and libraries add float32 in another order.
TOLERANCE = 1e-5
#: Modules are looked for where this process looks: a model may be the owner's own code.
_CHILD = """import sys
sys.path[:0] = [{here!r}]
sys.path += [path for path in {paths!r} if path not in sys.path]
from fairbits.repair.writers.checker import main
main({folder!r})
"""


def in_fresh_process(jobs: Sequence[Job], *, seconds: float = SECONDS) -> list[Answer]:
    """The answers to all jobs by a new interpreter; a job that fails has a ``fault``."""
    here = str(Path(__file__).resolve().parents[3])
    # torch.export.load falls back to pickles that run code; not for a file that nobody trusts.
    safe = {} if all(job.get("trusted") for job in jobs) else {"TORCH_FORCE_WEIGHTS_ONLY_LOAD": "1"}
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "jobs.pkl").write_bytes(pickle.dumps(list(jobs)))
        code = _CHILD.format(here=here, paths=sys.path, folder=folder)
        try:
            done = subprocess.run(  # noqa: S603 - this interpreter, with a text of our own
                [sys.executable, "-I", "-c", code],
                capture_output=True,
                timeout=seconds,
                check=False,
                env={**os.environ, **safe},
            )
        except subprocess.TimeoutExpired:
            return [{"fault": f"opening and asking it took longer than {seconds:g} s."} for _ in jobs]
        answers = Path(folder) / "answers.pkl"
        if answers.is_file():
            return list(pickle.loads(answers.read_bytes()))  # noqa: S301 - written by our own child just now
        said = done.stderr.decode(errors="replace").strip().splitlines()
        last = said[-1][:200] if said else f"it ended with code {done.returncode}"
        return [{"fault": f"a fresh process could not ask it: {last.rstrip('.')}."} for _ in jobs]


def main(folder: str) -> None:
    """The child's side: reads the jobs, and leaves the answers."""
    jobs = pickle.loads((Path(folder) / "jobs.pkl").read_bytes())  # noqa: S301 - written by our own parent just now
    part = Path(folder) / "part.pkl"
    part.write_bytes(pickle.dumps([perform(job) for job in jobs]))
    part.rename(Path(folder) / "answers.pkl")


def perform(job: Job, model: Any = None) -> Answer:
    """The answer to one job; ``model`` is the owner's object, where it lives in this process alone."""
    try:
        return settle(job, model) if job["do"] == "settle" else ask(job, model)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - foreign libraries may raise anything; it is said
        said = str(error).strip().splitlines()
        return {"fault": f"{type(error).__name__}: {said[0][:300].rstrip('.') if said else 'no reason given'}."}


def settle(job: Job, model: Any = None) -> Answer:
    """How a model is asked so that it gives back the audited scores: the ``about`` of a written file."""
    found = opened(job["file"], trusted=job["trusted"]) if model is None else model
    table, wanted = job["table"], np.asarray(job["wanted"], np.float64)
    complaint = "its answers differ from the audited scores"
    for way in job["ways"]:
        methods = ("predict_proba", "predict") if way["classes"] else ("predict",)
        call = next((name for name in methods if callable(getattr(found, name, None))), "call")
        about = {**way, "call": call}
        try:
            outputs = standalone.AskedModel(about, found).outputs(table)
        except Exception as error:  # noqa: BLE001 - the next way is tried; the last complaint is shown
            complaint = (str(error).strip().splitlines() or [type(error).__name__])[0][:160]
            continue
        for reading in _readings(found, outputs, about, job.get("outputs")):
            try:
                given = standalone.read(outputs, {**about, "read": reading})
            except (ValueError, IndexError):
                continue
            if given.shape == wanted.shape and apart(given, wanted) <= job.get("tolerance", TOLERANCE):
                return {"about": {**about, "read": reading}, "library": library(found), "fault": ""}
    raise ValueError(f"no way of asking it gives back the audited scores ({complaint.rstrip('.')})")


def apart(found: Any, wanted: Any) -> float:
    """The largest distance between scores, as a share of their scale; infinite where one is not a number."""
    scale = max(1.0, float(np.abs(wanted).max(initial=0.0)))
    distance = float(np.abs(np.asarray(found, np.float64) - wanted).max(initial=0.0)) / scale
    return distance if np.isfinite(distance) else float("inf")


def _readings(model: Any, outputs: Any, about: Job, names: Sequence[str] | None) -> Iterator[Job]:
    """Ways to read outputs: by the names of the classes where the model (or its owner) has named them."""
    classes = [standalone.text_of(one) for one in about["classes"]]
    if not classes:
        yield {"link": None, "order": [], "speaks": 1}
        return
    own = getattr(model, "classes_", None)
    said = [standalone.text_of(one) for one in np.ravel(own)] if own is not None else list(names or ())
    orders = [list(range(len(classes)))]
    orders += [orders[0][::-1]] if len(classes) == 2 else []
    if sorted(said) == sorted(classes):
        orders = [[said.index(name) for name in classes]]
    if about["call"] == "predict" and {standalone.text_of(one) for one in np.ravel(outputs)} <= set(classes):
        yield {"link": "labels", "order": orders[0], "speaks": 1}
    for link in (None, "logit"):
        for order in orders:
            yield {"link": link, "order": order, "speaks": order.index(len(classes) - 1)}


def ask(job: Job, model: Any = None) -> Answer:
    """What a written file says about every table of the job, and what it decides where it decides."""
    file, tables = Path(job["file"]), job["tables"]
    answer: Answer = {"decisions": None, "classes": None, "fault": ""}
    if job["by"] == "module":
        sys.modules.pop(file.stem, None)
        loading = importlib.util.spec_from_file_location(file.stem, file)
        assert loading is not None and loading.loader is not None  # noqa: S101, PT018 - a .py file has a loader
        module = importlib.util.module_from_spec(loading)
        loading.loader.exec_module(module)
        made = getattr(module, job["name"])(*([] if model is None else [model]))
        answer |= {"scores": {name: made.predict_proba(table) for name, table in tables.items()}}
        answer |= {"decisions": made.predict(tables["rows"]), "favourable": made.scores(tables["rows"])}
        classes = None if made.classes_ is None else made.classes_.tolist()
        return answer | {"classes": classes, "library": library(made.model.model)}
    if job["by"] == "encoded":
        network = models.load_model(file)
        both = job["schema"].rule.both
        scores = {name: both(mean(network.scores(rows))) for name, (rows, mean) in job["encoded"].items()}
        return answer | {"scores": scores, "library": library(None)}
    about = job.get("about")
    ours = job["by"] == "fairbits" or file.suffix.lower() in {".pt", ".pth"}  # weights: their module is the owner's
    found = model if ours or model is not None else opened(file, trusted=job["trusted"])
    if about is None and not ours:
        try:  # as the original is asked; by itself, where names say what its outputs speak of
            about = settle({**job, "file": job.get("original") or job["file"], "table": tables["rows"]})["about"]
        except ValueError:
            ours = True
    if ours:
        return answer | {"scores": _through_fairbits(job, file), "library": library(None)}
    asked = standalone.AskedModel(about, found)
    own = getattr(found, "classes_", None)
    answer |= {"scores": {name: asked(table) for name, table in tables.items()}, "library": library(found)}
    if file.suffix == ".onnx" and "label" in [one.name for one in found.get_outputs()]:
        rows = np.asarray(asked.rows(tables["rows"]), np.float32)
        answer["decisions"] = found.run(["label"], {"inputs": rows})[0]
        if job.get("blank"):  # nobody has declared anything
            rows[:, job["blank"]] = np.nan
            answer["scores"]["blank"] = standalone.read(found.run(["output"], {"inputs": rows[:200]})[0], about)
    return answer if own is None else {**answer, "classes": np.ravel(own).tolist()}


def _through_fairbits(job: Job, file: Path) -> dict[str, Any]:
    """Scores by a reader of ours alone (a state dict with its factory), as a subject file would have it read."""
    loaded, encoding = models.load_with_encoding(file, job["schema"], **job["options"])
    inputs = {name: encoding.encode(codes) for name, codes in job["codes"].items()}
    if len(job["schema"].classes) > 2:
        return {name: loaded.class_scores(rows) for name, rows in inputs.items()}  # type: ignore[attr-defined]
    scores = {name: np.asarray(loaded.scores(rows)) for name, rows in inputs.items()}
    both = job["schema"].rule.both if job["schema"].classes else lambda one: one[:, None]
    return {name: both(one) for name, one in scores.items()}


def opened(file: str | Path, *, trusted: bool) -> Any:
    """A model file by its library; a network in our own format by fairbits."""
    ending = Path(file).suffix.lower()
    if ending == ".skops":
        return standalone.opened(file, models.trusted_types(Path(file), trust_pickle=trusted))
    if ending != ".npz":
        return standalone.opened(file, trusted)
    network: Any = models.load_model(file)
    return network.scores if network.head == "linear" else network.class_scores


def library(model: Any) -> str:
    """The library that a model is asked through, with its version."""
    name = "fairbits" if model is None else standalone.library_of(model)
    name = {"sklearn": "scikit-learn", "builtins": "fairbits", "repaired": "numpy"}.get(name, name)
    try:
        return f"{name} {importlib.metadata.version(name)}"
    except importlib.metadata.PackageNotFoundError:
        return name
