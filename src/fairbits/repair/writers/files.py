"""A repaired model to files: written aside, each asked in a fresh process, kept only where it is the judged model.

Files of a repaired model on their way into a run: checked, described by a subject file, put into place.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import tomlkit

from fairbits.data import Fitted, load_subject
from fairbits.domain import Codes, Encoding, text_of
from fairbits.errors import FairbitsError
from fairbits.models import (
    CanSave,
    Model,
    Network,
    attribute,
    ending_of,
    estimator_ending,
    save_as_original,
    save_estimator,
    settled_original,
    trusted_types,
)
from fairbits.repair.proposals.guard import Guard
from fairbits.repair.proposals.thresholds import GroupThresholds
from fairbits.repair.records import FileCheck
from fairbits.repair.writers.check import About, Promise, by_inputs, class_values, judged, table_of, ways
from fairbits.repair.writers.checker import TOLERANCE, Answer, Job, apart, in_fresh_process, perform
from fairbits.repair.writers.graphs import write_guard_onnx, write_thresholds_onnx
from fairbits.repair.writers.python import Script, script_of
from fairbits.store import write_whole
from fairbits.subject import (
    Subject,
    document_of_subject,
    encoding_word,
    read_document,
    section_of,
    split_name,
    table_of_subject,
)

NAME = "repaired"
NPZ, ONNX, SUBJECT = ".npz", ".onnx", f"{NAME}.toml"
#: The model that a Python file asks, beside it.
COMPANION = f"{NAME}_model"
#: The table of a subject that has none in a file of its own.
TABLE = f"{NAME}_table.parquet"


@dataclass(frozen=True, slots=True)
class Export:
    """The model files, the subject file about the first of them, in words what could not be done, and the checks."""

    files: tuple[Path, ...]
    subject_file: Path | None
    warnings: tuple[str, ...]
    checks: tuple[FileCheck, ...] = ()


def remove_old(folder: Path, kept: Sequence[str] = ()) -> None:
    """Take away files of an earlier repair, which would pass for this one's."""
    for old in (*folder.glob(f"{NAME}.*"), *folder.glob(f"{COMPANION}.*"), folder / TABLE):
        if old.name not in kept:
            old.unlink(missing_ok=True)


def described(subject: Subject, aside: Path, model: str, promise: Promise, warnings: list[str]) -> list[str]:
    """Write a subject file about a model file beside it, and try it out as a user would; gives the files' names."""
    names = [SUBJECT]
    grants = subject.options.grants()
    if not model.endswith((NPZ, ONNX)):  # our own file, just written
        grants = {**grants, "trust_pickle": True}
    try:
        if not has_table_file(subject):
            pq.write_table(table_of_subject(subject), aside / TABLE, compression="zstd")
            names.append(TABLE)
        (aside / SUBJECT).write_text(subject_text(subject, model, aside), encoding="utf-8")
        found = load_subject(aside / SUBJECT, **grants)
        distance = apart(_seen(found, promise), promise.wanted["rows"])
        if not distance <= TOLERANCE:
            raise FairbitsError(f"its scores differ by {distance:.2g}.")
    except FairbitsError as error:
        why = f"it did not come back as the repaired model: {error}"
        if model.endswith((NPZ, ONNX)) and not says_encoding(subject):
            why = (
                f"{model} takes rows as the encoders of the original make them (it has encoders of its own), which a "
                f"subject file cannot say; feed it what they put out."
            )
        warnings.append(f"{SUBJECT} was left out, because {why}")
        return []
    return names


def _seen(found: Subject, promise: Promise) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    """What the model of a subject file says about the rows, in the order of the audited subject's classes."""
    table = table_of(found.model, found, promise.rows, None)
    mine, theirs = found.schema.classes, promise.schema.classes
    if table.shape[1] == len(mine) > 1 and mine != theirs and set(mine) == set(theirs):
        table = table[:, [mine.index(name) for name in theirs]]
    return table


def placed(
    subject: Subject,
    aside: Path,
    folder: Path,
    models: Sequence[str],
    others: Sequence[str],
    warnings: Sequence[str],
    checks: Sequence[FileCheck],
) -> Export:
    """Put files into the run, in place of those of an earlier repair."""
    ready = [*models, *others]
    remove_old(folder, ready)
    for name in ready:
        if name != SUBJECT:
            write_whole(folder / name, (aside / name).read_bytes())
    if SUBJECT in ready:  # written anew: seen from here, the table lies elsewhere
        write_whole(folder / SUBJECT, subject_text(subject, models[0], folder).encode())
    files = tuple(folder / name for name in models)
    return Export(files, folder / SUBJECT if SUBJECT in ready else None, tuple(warnings), tuple(checks))


def has_table_file(subject: Subject) -> bool:
    """Whether the subject came from a subject file, which names its table."""
    return subject.source is not None and Path(subject.source).is_file()


def says_encoding(subject: Subject) -> bool:
    """Whether a subject file can say how people become inputs of a bare network."""
    return encoding_word(subject) is not None


def subject_text(subject: Subject, model: str, folder: Path) -> str:
    """A subject file in ``folder`` about the model file beside it and the subject's own table."""
    about: dict[str, Any] = {"path": model}
    table: dict[str, Any] = {"path": TABLE}
    if subject.table.held_out is not None:
        table["split"] = split_name(subject)
    if has_table_file(subject):
        source = Path(str(subject.source))
        document = read_document(source)
        stated = section_of(document, "table")
        table = {"path": _relative(source.parent / str(stated["path"]), folder)}
        table |= {key: str(stated[key]) for key in ("delimiter", "person", "split") if key in stated}
        if "test" in stated:
            table["test"] = _relative(source.parent / str(stated["test"]), folder)
    word = encoding_word(subject)
    if word is not None:
        about["encoding"] = word
    return tomlkit.dumps(document_of_subject(subject, {**about, **subject.options.section()}, table))


def _relative(path: Path, folder: Path) -> str:
    """Seen from the folder, so that both can be moved together; on another drive, as it is."""
    try:
        return Path(os.path.relpath(path.resolve(), folder.resolve())).as_posix()
    except ValueError:
        return path.resolve().as_posix()


PY = ".py"
#: People by whom the cost of a decision is measured.
_TIMED = 2_000


@dataclass(slots=True)
class _Draft:
    """A file that was written aside, and how it is asked; ``held`` is its owner's object, where that is in memory."""

    path: Path
    job: Job
    held: Any = None
    with_files: tuple[str, ...] = ()  # which go with it
    fresh: bool = True
    script: Script | None = None


@dataclass(slots=True)
class _Aside:
    """Files on their way."""

    promise: Promise
    folder: Path
    what: str
    drafts: list[_Draft] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    @property
    def subject(self) -> Subject:
        return self.promise.subject

    @property
    def trusted(self) -> bool:
        """Whether code that the model's file brings may run: it came as an object, or somebody said so."""
        return self.subject.options.trust_pickle or _file_of(self.subject) is None

    def path(self, ending: str) -> Path:
        return self.folder / f"{NAME}{ending}"

    def add(self, path: Path, job: Job, **rest: Any) -> None:
        self.drafts.append(_Draft(path, {**self._usual(), "do": "ask", "file": str(path), **job}, **rest))

    def _usual(self) -> Job:
        """What every question has: the rows, and how fairbits itself would read the file."""
        options = {name: value for name, value in self.subject.options.section().items() if value is not None}
        return {
            "by": "library",
            "trusted": self.trusted,
            "tolerance": self.promise.tolerance,
            "tables": self.promise.tables,
            "codes": {"rows": self.promise.rows, "twins": self.promise.twins},
            "schema": self.promise.schema,
            "options": {**options, **self.subject.options.grants(), "trust_pickle": True},
        }

    def not_written(self, ending: str, error: Exception) -> None:
        self.warnings.append(f"{self.what} was not written as {ending}: {error}")

    def checked(self) -> list[FileCheck]:
        """Ask every file, and remove those that are not the judged model."""
        fresh = [one for one in self.drafts if one.fresh]
        answers: dict[int, Answer] = dict(
            zip(map(id, fresh), in_fresh_process([one.job for one in fresh]) if fresh else [], strict=True)
        )
        checks = []
        for one in list(self.drafts):
            answer = answers[id(one)] if one.fresh else perform(one.job, one.held)
            check = judged(answer, self.promise, one.job, fresh=one.fresh)
            if not check.kept and one.fresh and one.script is not None and one.held is not None:
                # The owner's object does not survive a file: the script is handed the object instead.
                for name in one.with_files:
                    (self.folder / name).unlink(missing_ok=True)
                one.with_files, one.fresh = (), False
                one.script.without_file().write(one.path)
                check = judged(perform(one.job, one.held), self.promise, one.job, fresh=False)
            checks.append(check)
            if not check.kept:
                self.drafts.remove(one)
                for name in (one.path.name, *one.with_files):
                    (self.folder / name).unlink(missing_ok=True)
                self.warnings.append(
                    f"{self.what} was not kept as {one.path.suffix}: the file is not the model that was judged; "
                    f"{check.why.rstrip('.')}."
                )
        return checks


def export(
    model: Model,
    subject: Subject,
    folder: Path,
    people: Codes,
    *,
    fitted: Fitted | None = None,
    source: Any = None,
    k_max: int | None = None,
    epsilon: float = 0.025,
    partition: str = "constrained",
) -> Export:
    """Write a repaired model into the folder, in every format that can hold it.

    ``people`` are held-out rows and cases, by which the files are checked; ``k_max`` is what was proved.
    """
    estimator = source if source is not None else None if fitted is None else fitted.estimator
    known = estimator if estimator is not None else _opened(subject)
    classes = class_values(subject, known)
    if isinstance(model, Guard):
        k_max, epsilon, partition = model.k_max or None, model.epsilon, model.partition
    promise = Promise(
        model if fitted is None else fitted.model, subject, people, classes, fitted, k_max, epsilon, partition
    )
    what = "the guarded model" if isinstance(model, Guard) else "the repaired model"
    with tempfile.TemporaryDirectory() as place:
        aside = _Aside(promise, Path(place), what)
        order: tuple[str, ...] = ()
        if isinstance(model, Guard | GroupThresholds):
            _wrapped(model, aside)
            order = (ONNX,)
        elif estimator is not None:
            _estimator(estimator, aside, None if fitted is None else fitted.encoding)
        elif isinstance(model, Network):
            _network(model, aside)
        elif isinstance(model, CanSave):
            return _own_file(model, folder)
        else:
            note = (
                f"a repaired {type(model).__name__!r} has no file format here; give it save(path) to have it written."
            )
            remove_old(folder)
            return Export((), None, (note,))
        checks = aside.checked()
        drafts = sorted(aside.drafts, key=lambda one: one.path.suffix not in order) if order else aside.drafts
        models = [one.path.name for one in drafts]
        first = next((name for name in models if not name.endswith(PY)), None)
        others = [] if first is None else described(subject, aside.folder, first, promise, aside.warnings)
        models += [name for one in drafts for name in one.with_files]
        if isinstance(model, Guard):
            aside.warnings.insert(0, cost_words(model, people))
        return placed(subject, aside.folder, folder, models, others, aside.warnings, checks)


def _opened(subject: Subject) -> Any:
    """The object that the model came as; None where it came from a file or an address."""
    original = subject.original
    if original is None or isinstance(original, str | Path):
        if isinstance(original, str) and not Path(original).exists() and subject.options.trust_code:
            found = settled_original(original, subject.options)
            return None if isinstance(found, Path) else found
        return None
    return original


def _file_of(subject: Subject) -> Path | None:
    original = subject.original
    return Path(original) if isinstance(original, str | Path) and Path(original).is_file() else None


def _own_file(model: CanSave, folder: Path) -> Export:
    """A model from outside that writes itself: nobody here can read it back to compare."""
    remove_old(folder, [NAME])
    path = folder / NAME
    model.save(path)
    note = f"{NAME} was written by the proposal itself, in a format of its own; it was not loaded again."
    return Export((path,), None, (note,), (FileCheck(NAME, True, why="nobody here can open it"),))


def _network(network: Network, aside: _Aside) -> None:
    """A native network: in the format that it came in (in our own where that cannot hold it), and as ONNX."""
    subject, classes = aside.subject, aside.promise.classes
    inputs = by_inputs(subject.schema, subject.encoding, classes)
    ending = ending_of(subject.original, subject.options)
    path = aside.path(ending)
    try:
        save_as_original(network, subject.original, path, options=subject.options)
        aside.add(path, {"about": inputs} if ending == NPZ else _as_original(aside))
    except FairbitsError as error:
        path.unlink(missing_ok=True)
        if ending == NPZ:
            raise
        aside.warnings.append(
            f"the repaired network could not be written as {ending}, the format that it came in: {error}"
        )
        path = aside.path(NPZ)
        network.save(path)
        aside.add(path, {"about": inputs})
    if path.suffix != ONNX:
        try:
            network.save(aside.path(ONNX))
            aside.add(aside.path(ONNX), {"about": inputs})
        except FairbitsError as error:
            aside.warnings.append(str(error))


def _as_original(aside: _Aside) -> Job:
    """How the original is asked by its own library; a written file must be asked and read in the same way."""
    subject, promise = aside.subject, aside.promise
    codes = promise.rows
    wanted = _original_says(promise, codes)
    file, held = _file_of(subject), _opened(subject)
    asked = ways(subject, held if held is not None else file, promise.classes)
    if held is not None:
        job = {"do": "settle", "ways": asked, "wanted": wanted, "table": promise.tables["rows"]}
        settled = perform({**job, "tolerance": promise.tolerance}, held)
        return {"by": "fairbits"} if settled["fault"] else {"about": settled["about"]}
    return {"ways": asked, "original": None if file is None else str(file), "wanted": wanted}


def _original_says(promise: Promise, codes: Codes) -> Any:
    return replace(promise, model=promise.subject.model, fitted=None).says(codes)


def _estimator(estimator: Any, aside: _Aside, encoding: Encoding | None) -> None:
    """A fitted estimator: in the format that the original came in, and in its library's own."""
    subject, promise = aside.subject, aside.promise
    own = attribute(estimator, "classes_")
    names = None if own is None else [text_of(one) for one in np.ravel(own).tolist()]
    asked = ways(subject, estimator, promise.classes, encodings=() if encoding is None else (encoding,))
    endings = [estimator_ending(estimator, subject.original, subject.options)]
    if encoding is None:
        endings = [ending_of(subject.original, subject.options), ".skops", *_native(estimator)]
    for ending in dict.fromkeys(endings):
        path = aside.path(ending)
        try:
            save_estimator(estimator, path)
            aside.add(path, {"ways": asked, "wanted": promise.wanted["rows"], "outputs": names})
        except FairbitsError as error:
            path.unlink(missing_ok=True)
            aside.not_written(ending, error)


def _native(estimator: Any) -> list[str]:
    """The ending of the library's own format, for boosters that are no step of a pipeline."""
    home = type(estimator).__module__.partition(".")[0]
    return {"lightgbm": [".txt"], "xgboost": [".json"], "catboost": [".cbm"]}.get(home, [])


def _wrapped(model: Guard | GroupThresholds, aside: _Aside) -> None:
    """A guard or thresholds by group: of a native network as one ONNX graph, of every model as a Python file."""
    subject, promise = aside.subject, aside.promise
    guard = isinstance(model, Guard)
    if isinstance(model.model, Network):
        path = aside.path(ONNX)
        try:
            if isinstance(model, Guard):
                write_guard_onnx(model, path, promise.classes)
            else:
                write_thresholds_onnx(model, path, promise.classes)
            about = by_inputs(subject.schema, subject.encoding, promise.classes)
            odd = {"blank": promise.odd_wanted()["missing"]} if isinstance(model, Guard) else {}
            blank = model.protected_inputs.tolist() if isinstance(model, Guard) else []
            aside.add(path, {"about": about, "odd": odd, "blank": blank})
        except FairbitsError as error:
            path.unlink(missing_ok=True)
            aside.not_written(ONNX, error)
    script, held, files = _script(model, aside)
    script.write(aside.path(PY))
    job: Job = {"by": "module", "name": script.name}
    if guard:
        job |= {"tables": {**promise.tables, **promise.odd_tables}, "odd": promise.odd_wanted()}
    aside.add(aside.path(PY), job, held=held, with_files=files, fresh=not script.needs_model, script=script)


def _script(model: Guard | GroupThresholds, aside: _Aside) -> tuple[Script, Any, tuple[str, ...]]:
    """The Python file, the object that it is handed where it is handed one, and the files that go with it."""
    subject, promise = aside.subject, aside.promise
    file, held = _file_of(subject), _opened(subject)
    network = isinstance(model.model, Network) and not _asks_people(held, file)
    if network:
        return script_of(model, promise.classes, network=True), None, ()
    settled = _settled(aside, held, file)
    if settled is None:  # whatever it is: its owner hands over a function
        script = script_of(model, promise.classes)
        return script, script.function(subject), ()
    if held is not None:
        companion = f"{COMPANION}.joblib"
        try:
            save_estimator(held, aside.folder / companion)
        except FairbitsError:
            return script_of(model, promise.classes, about=settled), held, ()
        about = {**settled, "file": companion, "trusted": True}
        return script_of(model, promise.classes, about=about), held, (companion,)
    assert file is not None  # noqa: S101 - one of both was settled
    companion = f"{COMPANION}{file.suffix.lower()}"
    (aside.folder / companion).write_bytes(file.read_bytes())
    known = trusted_types(file, trust_pickle=aside.trusted) if file.suffix == ".skops" else aside.trusted
    about = {**settled, "file": companion, "trusted": known}
    return script_of(model, promise.classes, about=about), None, (companion,)


def _asks_people(held: Any, file: Path | None) -> bool:
    """Whether a network came as an estimator with encoders of its own, which its owner asks with a table."""
    if file is not None:
        return file.suffix.lower() in {".skops", ".pkl", ".pickle", ".joblib"}
    return held is not None and callable(attribute(held, "predict")) and callable(attribute(held, "get_params"))


def _settled(aside: _Aside, held: Any, file: Path | None) -> About | None:
    """How the owner asks the model, found by asking; None where no way of asking gives back the audited scores."""
    subject, promise = aside.subject, aside.promise
    if held is None and file is None:
        return None
    codes = promise.rows
    job: Job = {
        "do": "settle",
        "ways": ways(subject, held if held is not None else file, promise.classes),
        "wanted": _original_says(promise, codes),
        "table": promise.tables["rows"],
        "file": None if file is None else str(file),
        "trusted": aside.trusted,
        "tolerance": promise.tolerance,
    }
    answer = perform(job, held) if held is not None else in_fresh_process([job])[0]
    if answer["fault"]:
        aside.warnings.append(
            f"{NAME}{PY} asks no model by itself ({answer['fault'].rstrip('.')}): hand it a function of a table that "
            f"gives the scores."
        )
        return None
    about: About = answer["about"]
    return about


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
