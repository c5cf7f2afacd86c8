"""The guarded model as files: written aside, loaded again, compared, and only then put into the run."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fairbits.domain import Codes, Decoder, as_arrow, table_from_arrow
from fairbits.errors import CapabilityError, FairbitsError, ModelError
from fairbits.models import Network, ending_of, estimator_of, load_with_encoding
from fairbits.repair.placement import NAME, ONNX, Export, Writer, export_compared
from fairbits.repair.proposals.arrays import GuardArrays
from fairbits.repair.proposals.guard import Guard
from fairbits.repair.subject import says_encoding
from fairbits.subject import Subject

PY, PT2, KERAS, SKOPS = ".py", ".pt2", ".keras", ".skops"
#: People by whom the cost of a decision is measured.
_TIMED = 2_000
#: Seconds that a file which was just written here may take to load again.
_OWN_SECONDS = 120.0


def export_guard(guard: Guard, subject: Subject, folder: Path, people: Codes) -> Export:
    """Write a guarded model in every format that can hold it.

    A native network goes out as ONNX with its twins expanded inside the graph, and as a PyTorch program or a Keras
    model where it came as one. An estimator goes out as .skops, out of scikit-learn's own parts. Every model
    goes out as a small Python file around the model itself.
    """
    # A graph takes encoded rows, so that the estimator goes first where it alone has the encoders.
    described = (ONNX, SKOPS) if says_encoding(subject) else (SKOPS, ONNX)
    written = export_compared(
        _writers(guard, subject),
        guard.people_scores,
        subject,
        folder,
        people,
        what="the guarded model",
        described=described,
        pickles=(SKOPS,),
    )
    return replace(written, warnings=(cost_words(guard, people), *written.warnings))


def cost_words(guard: Guard, people: Codes) -> str:
    """The time that a decision costs, measured now."""
    some = people[np.arange(_TIMED if guard.subject_native else min(50, len(people))) % len(people)]
    inputs = guard.encoding.encode(some)
    seconds = []
    for scores in (guard.model.scores, guard.scores):
        scores(inputs[:1])
        begin = time.perf_counter()
        scores(inputs)
        seconds.append((time.perf_counter() - begin) / len(some))
    pupil = "; the distilled repair costs one score" if isinstance(guard.model, Network) else ""
    return (
        f"a guarded decision asks the model about {guard.m:,} twins: {1e6 * seconds[1]:.3g} µs in place of "
        f"{1e6 * seconds[0]:.3g} µs here{pupil}."
    )


def _writers(guard: Guard, subject: Subject) -> dict[str, Writer]:
    """By ending: a function that writes the file and gives back how the file, loaded again, scores people."""
    found: dict[str, Writer] = {}
    if isinstance(guard.model, Network):
        found[ONNX] = lambda path: _onnx(guard, path)
        if ending_of(subject.original, subject.options) in {PT2, ".pt", ".pth"}:
            found[PT2] = lambda path: _pt2(guard, path)
        if ending_of(subject.original, subject.options) == KERAS:
            found[KERAS] = lambda path: _keras(guard, path)
    if _of_estimator(subject):
        found[SKOPS] = lambda path: _skops(guard, subject, path)
    found[PY] = lambda path: _module(guard, path)
    return found


def _of_estimator(subject: Subject) -> bool:
    """Whether the model was read from an estimator, which then goes out guarded as one."""
    try:
        estimator_of(subject.original, subject.model, subject.options)
    except CapabilityError:
        return False
    return True


def _skops(guard: Guard, subject: Subject, path: Path) -> Callable[[Codes], npt.NDArray[Any]]:
    from fairbits.repair.proposals.sklearn import write_guard_skops

    try:
        write_guard_skops(guard, path)
    except FairbitsError:
        raise
    except Exception as error:  # noqa: BLE001 - foreign code may raise anything
        raise ModelError(f"scikit-learn or skops refused ({type(error).__name__}: {error}); use .py.") from None
    options = {name: value for name, value in subject.options.section().items() if value is not None}
    # Our own file, just written: a pipeline for every twin may take its time to load on a busy machine.
    seconds = max(subject.options.max_seconds, _OWN_SECONDS)
    grants = {**subject.options.grants(), "trust_pickle": True, "max_seconds": seconds}
    found, encoding = load_with_encoding(path, subject.schema, **options, **grants)
    return lambda codes: np.asarray(found.scores(encoding.encode(codes)))


def _onnx(guard: Guard, path: Path) -> Callable[[Codes], npt.NDArray[Any]]:
    from fairbits.repair.proposals.onnx import write_guard_onnx

    write_guard_onnx(GuardArrays.of(guard), path)
    found, own = load_with_encoding(path, guard.schema)
    # Where categories are spread over the table's columns, the file is read as taking those, and makes them itself.
    encoding = guard.encoding if found.inputs == guard.inputs else own
    return lambda codes: found.scores(encoding.encode(codes))


def _pt2(guard: Guard, path: Path) -> Callable[[Codes], npt.NDArray[Any]]:
    from fairbits.repair.proposals.torch import write_guard_pt2

    arrays = GuardArrays.of(guard)
    write_guard_pt2(arrays, path)

    def scores(codes: Codes) -> npt.NDArray[Any]:
        import torch

        program = torch.export.load(str(path)).module()
        found = program(torch.from_numpy(np.asarray(guard.encoding.encode(codes), np.float32))).detach().numpy()
        return favourable_of(found, arrays.network)

    return scores


def _keras(guard: Guard, path: Path) -> Callable[[Codes], npt.NDArray[Any]]:
    from fairbits.repair.proposals.keras import write_guard_keras

    arrays = GuardArrays.of(guard)
    write_guard_keras(arrays, path)

    def scores(codes: Codes) -> npt.NDArray[Any]:
        import keras

        found = keras.models.load_model(path).predict(guard.encoding.encode(codes), verbose=0)
        return favourable_of(np.asarray(found), arrays.network)

    return scores


def favourable_of(output: npt.NDArray[Any], network: Network) -> npt.NDArray[Any]:
    """The score among the outputs of a network with this head."""
    if network.head == "softmax":
        return output[:, network.favourable]
    return 1 - output[:, 0] if network.head == "sigmoid" and network.favourable == 0 else output[:, 0]


def _module(guard: Guard, path: Path) -> Callable[[Codes], npt.NDArray[Any]]:
    from fairbits.repair.proposals.module import module_text

    text = module_text(guard)
    path.write_text(text, encoding="utf-8")
    space: dict[str, Any] = {"__name__": NAME}
    exec(compile(text, path.name, "exec"), space)  # noqa: S102 - our own text, tried as a user would
    decoder = Decoder(guard.schema)

    def scores(codes: Codes) -> npt.NDArray[Any]:
        guarded = space["Guarded"](lambda frame: _asked(guard, frame))
        return np.asarray(guarded.scores(decoder.frame(codes)))

    return scores


def _asked(guard: Guard, frame: Any) -> npt.NDArray[Any]:
    """The model itself, asked about a frame of what people read."""
    codes = table_from_arrow(as_arrow(frame), replace(guard.schema, target=None)).codes
    inputs = guard.encoding.encode(codes)
    if len(guard.schema.classes) > 2:
        return np.asarray(guard.model.class_scores(inputs))  # type: ignore[attr-defined]
    return np.asarray(guard.model.scores(inputs))
