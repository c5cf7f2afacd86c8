"""A repaired model to files: written aside, each asked in a fresh process, kept only where it is the judged model.

What is kept is described by a subject file, which is tried out as a user would, and put into the run's folder.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import tomlkit

from fairbits.data import Fitted, load_subject
from fairbits.domain import Codes, Encoding, Unseen, text_of
from fairbits.errors import FairbitsError
from fairbits.language import TextModel, network_of
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
from fairbits.repair.proposals.mitigators import GroupThresholds
from fairbits.repair.proposals.tree import nodes_of
from fairbits.repair.records import FileCheck
from fairbits.repair.writers.check import About, Promise, by_inputs, class_values, embedded, judged, table_of, ways
from fairbits.repair.writers.checker import TOLERANCE, Job, apart, in_fresh_process, perform
from fairbits.repair.writers.wrappers import Script, script_of, tree_script, write_onnx, write_tree
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
    names, ours = [SUBJECT], not model.endswith((NPZ, ONNX))  # a file of another kind that we have just written
    source = Path(str(subject.source))
    if isinstance(subject.model, TextModel) and not (
        has_table_file(subject) and "encoder" in section_of(read_document(source), "model")
    ):
        warnings.append(
            f"{model} holds the network alone: put it behind the same encoder, EncodedNetwork(encode, {model!r})."
        )
        return []
    grants = subject.options.grants()
    if ours:
        grants = {**grants, "trust_pickle": True}
    try:
        if not has_table_file(subject):
            pq.write_table(table_of_subject(subject), aside / TABLE, compression="zstd")
            names.append(TABLE)
        (aside / SUBJECT).write_text(subject_text(subject, model, aside), encoding="utf-8")
        found = load_subject(aside / SUBJECT, **grants)
        table = table_of(found.model, found, promise.rows, None)
        mine, theirs = found.schema.classes, promise.schema.classes
        if table.shape[1] == len(mine) > 1 and mine != theirs and set(mine) == set(theirs):
            table = table[:, [mine.index(name) for name in theirs]]  # in the order of the audited subject's classes
        distance = apart(table, promise.wanted["rows"])
        if not distance <= TOLERANCE:
            raise FairbitsError(f"its scores differ by {distance:.2g}.")
    except FairbitsError as error:
        why = f"it did not come back as the repaired model: {error}"
        if not ours and encoding_word(subject) is None:
            why = (
                f"{model} takes rows as the encoders of the original make them (it has encoders of its own), which a "
                f"subject file cannot say; feed it what they put out."
            )
        warnings.append(f"an audit file ({SUBJECT}) was left out, because {why}")
        return []
    return names


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


def subject_text(subject: Subject, model: str, folder: Path) -> str:
    """A subject file in ``folder`` about the model file beside it and the subject's own table."""
    if isinstance(subject.model, TextModel):
        return _text_of_texts(Path(str(subject.source)), model, folder)
    table: dict[str, Any] = {"path": TABLE}
    if has_table_file(subject):
        source = Path(str(subject.source))
        stated = section_of(read_document(source), "table")
        kept = {"path", "delimiter", "person", "split", "weight", "test"}
        table = {key: str(value) for key, value in stated.items() if key in kept}
        table |= {key: _relative(source.parent / table[key], folder) for key in ("path", "test") if key in table}
    elif subject.table.held_out is not None:
        table["split"] = split_name(subject)
    word = encoding_word(subject)
    about = {"path": model, **({} if word is None else {"encoding": word}), **subject.options.section()}
    return tomlkit.dumps(document_of_subject(subject, about, table))


def _text_of_texts(source: Path, model: str, folder: Path) -> str:
    """The audit file of texts as it was, about another network; files beside it are found from the folder."""
    document = read_document(source)

    def found(path: Any) -> Any:
        return _relative(source.parent / path, folder) if (source.parent / str(path)).is_file() else path

    families = {
        name: {slot: found(one) if isinstance(one, str) else one for slot, one in family.items()}
        for name, family in document["text"]["families"].items()
    }
    parts = {
        "text": {**document["text"], "families": families},
        "model": {**document["model"], "path": model, "encoder": found(document["model"]["encoder"])},
        "table": {**document["table"], "path": found(document["table"]["path"])},
    }
    return tomlkit.dumps({**document, **parts})


def _relative(path: Path, folder: Path) -> str:
    """Seen from the folder, so that both can be moved together; on another drive, as it is."""
    try:
        return Path(os.path.relpath(path.resolve(), folder.resolve())).as_posix()
    except ValueError:
        return path.resolve().as_posix()


PY = ".py"


@dataclass(slots=True)
class _Draft:
    """A file that was written aside, and how it is asked; ``held`` is its owner's object, where that is in memory."""

    path: Path
    job: Job
    held: Any = None
    with_files: tuple[str, ...] = ()  # which go with it
    script: Script | None = None

    @property
    def fresh(self) -> bool:
        """Whether a fresh process can ask it: nobody has to hand over the model."""
        return self.script is None or not self.script.needs_model


@dataclass(slots=True)
class _Aside:
    """Files on their way; ``held`` is the object that the model came as, ``file`` the file that it came from."""

    promise: Promise
    folder: Path
    what: str
    held: Any
    file: Path | None
    drafts: list[_Draft] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    @property
    def subject(self) -> Subject:
        return self.promise.subject

    @property
    def trusted(self) -> bool:
        """Whether code that the model's file brings may run: it came as an object, or somebody said so."""
        return self.subject.options.trust_pickle or self.file is None

    @property
    def by_inputs(self) -> About:
        """Asked with the inputs that the subject's encoding makes of people."""
        return by_inputs(self.subject.schema, self.subject.encoding, self.promise.classes)

    def saved(self, ending: str, save: Callable[[Path], None]) -> Path | None:
        """Write a file; what cannot be written is said."""
        path = self.folder / f"{NAME}{ending}"
        try:
            save(path)
        except FairbitsError as error:
            path.unlink(missing_ok=True)
            self.warnings.append(f"{self.what} was not written as {ending}: {error}")
            return None
        return path

    def add(self, path: Path | None, job: Job, **rest: Any) -> None:
        """Have a file asked: about the rows, or as fairbits itself would read it."""
        if path is None:
            return
        options = {name: value for name, value in self.subject.options.section().items() if value is not None}
        usual = {
            "do": "ask",
            "by": "library",
            "file": str(path),
            "trusted": self.trusted,
            "tolerance": self.promise.tolerance,
            "tables": self.promise.tables,
            "codes": {"rows": self.promise.rows, "twins": self.promise.twins},
            "schema": self.promise.schema,
            "options": {**options, **self.subject.options.grants(), "trust_pickle": True},
        }
        self.drafts.append(_Draft(path, {**usual, **job}, **rest))

    def settling(self) -> Job:
        """How the original is asked by its own library: whichever way gives back the audited scores."""
        original = self.held if self.held is not None else self.file
        return {
            "do": "settle",
            "ways": ways(self.subject, original, self.promise.classes),
            "wanted": replace(self.promise, model=self.subject.model, fitted=None).says(self.promise.rows),
            "table": self.promise.tables["rows"],
            "file": None if self.file is None else str(self.file),
            "trusted": self.trusted,
            "tolerance": self.promise.tolerance,
        }

    def checked(self) -> list[FileCheck]:
        """Ask every file, and remove those that are not the judged model."""
        jobs = [one.job for one in self.drafts if one.fresh]
        answers = in_fresh_process(jobs) if jobs else []
        checks = []
        for one in list(self.drafts):
            told = one.fresh
            check = judged(answers.pop(0) if told else perform(one.job, one.held), self.promise, one.job, fresh=told)
            if not check.kept and told and one.script is not None and one.held is not None:
                # The owner's object does not survive a file: the script is handed the object instead.
                self._remove(*one.with_files)
                one.with_files, one.script = (), one.script.without_file()
                one.script.write(one.path)
                check = judged(perform(one.job, one.held), self.promise, one.job, fresh=False)
            checks.append(check)
            if not check.kept:
                self.drafts.remove(one)
                self._remove(one.path.name, *one.with_files)
                self.warnings.append(
                    f"{self.what} was not kept as {one.path.suffix}: the file is not the model that was judged; "
                    f"{check.why.rstrip('.')}."
                )
        return checks

    def _remove(self, *names: str) -> None:
        for name in names:
            (self.folder / name).unlink(missing_ok=True)


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
    held = _opened(subject)
    classes = class_values(subject, estimator if estimator is not None else held)
    if isinstance(model, Guard):
        k_max, epsilon, partition = model.k_max or None, model.epsilon, model.partition
    promise = Promise(
        model if fitted is None else fitted.model, subject, people, classes, fitted, k_max, epsilon, partition
    )
    with tempfile.TemporaryDirectory() as place:
        what = "the guarded model" if isinstance(model, Guard) else "the repaired model"
        original = subject.original
        file = Path(original) if isinstance(original, str | Path) and Path(original).is_file() else None
        aside = _Aside(promise, Path(place), what, held, file)
        if isinstance(model, Guard | GroupThresholds):
            _wrapped(model, aside)
        elif estimator is not None:
            _estimator(estimator, aside, None if fitted is None else fitted.encoding)
        elif isinstance(model, Network):
            _network(model, aside)
        elif isinstance(model, TextModel) and (inside := network_of(model)) is not None:
            # A network behind a frozen encoder, by itself. It is asked with what the encoder makes of the texts.
            told = {"rows": model.encoded(promise.rows), "twins": model.encoded(promise.twins)}
            for ending in (ONNX, NPZ):
                aside.add(aside.saved(ending, inside.save), {"by": "encoded", "encoded": told})
        elif isinstance(model, CanSave):
            return _own_file(model, folder)
        else:
            aside.warnings.append(
                f"a repaired {type(model).__name__!r} has no file format here; give it save(path) to have it written."
            )
        checks = aside.checked()
        models = [one.path.name for one in aside.drafts]
        first = next((name for name in models if not name.endswith(PY)), None)
        if fitted is not None and fitted.encoding is not None:  # it takes inputs of its own
            parts = zip(subject.schema.names, fitted.encoding.parts, strict=True)
            columns = tuple(name for name, part in parts if not isinstance(part, Unseen))
            options = replace(subject.options, columns=columns)
            subject = replace(subject, encoding=fitted.encoding, options=options)
        others = [] if first is None else described(subject, aside.folder, first, promise, aside.warnings)
        models += [name for one in aside.drafts for name in one.with_files]
        if isinstance(model, Guard):
            less = "; the distilled repair costs one" if isinstance(model.model, Network) else ""
            aside.warnings.insert(
                0, f"a guarded decision costs {model.m:,} scores of the model, one for each twin{less}."
            )
        return placed(subject, aside.folder, folder, models, others, aside.warnings, checks)


def _opened(subject: Subject) -> Any:
    """The object that the model came as; None where it came from a file or an address."""
    original = subject.original
    if not isinstance(original, str | Path):
        return original
    named = isinstance(original, str) and not Path(original).exists() and subject.options.trust_code
    found = settled_original(original, subject.options) if named else None
    return None if isinstance(found, Path) else found


def _own_file(model: CanSave, folder: Path) -> Export:
    """A model from outside that writes itself: nobody here can read it back to compare."""
    remove_old(folder, [NAME])
    path = folder / NAME
    model.save(path)
    note = f"{NAME} was written by the proposal itself, in a format of its own; it was not loaded again."
    return Export((path,), None, (note,), (FileCheck(NAME, True, why="nobody here can open it"),))


def _network(network: Network, aside: _Aside) -> None:
    """A native network: in the format that it came in (in our own where that cannot hold it), and as ONNX."""
    subject, inputs = aside.subject, {"about": aside.by_inputs}
    ending = ending_of(subject.original, subject.options)
    path = aside.saved(ending, lambda path: save_as_original(network, subject.original, path, options=subject.options))
    if path is not None and ending != NPZ:
        aside.add(path, _as_original(aside))
    else:
        aside.add(path or aside.saved(NPZ, network.save), inputs)
    if path is None or ending != ONNX:
        aside.add(aside.saved(ONNX, network.save), inputs)


def _as_original(aside: _Aside) -> Job:
    """A written file must be asked, and read, in the way in which the original is."""
    job = aside.settling()
    if aside.held is None:
        return {"ways": job["ways"], "wanted": job["wanted"], "original": job["file"]}
    settled = perform(job, aside.held)
    return {"by": "fairbits"} if settled["fault"] else {"about": settled["about"]}


def _estimator(estimator: Any, aside: _Aside, encoding: Encoding | None) -> None:
    """A fitted estimator: in the format that the original came in, and in its library's own."""
    subject, promise = aside.subject, aside.promise
    own = attribute(estimator, "classes_")
    names = None if own is None else [text_of(one) for one in np.ravel(own).tolist()]
    asked = ways(subject, estimator, promise.classes, encodings=() if encoding is None else (encoding,))
    endings = [estimator_ending(estimator, subject.original, subject.options)]
    if encoding is None:
        # The library's own format too, for boosters that are no step of a pipeline.
        home = type(estimator).__module__.partition(".")[0]
        native = {"lightgbm": [".txt"], "xgboost": [".json"], "catboost": [".cbm"]}.get(home, [])
        endings = [ending_of(subject.original, subject.options), ".skops", *native]
    for ending in dict.fromkeys(endings):
        path = aside.saved(ending, partial(save_estimator, estimator))
        aside.add(path, {"ways": asked, "wanted": promise.wanted["rows"], "outputs": names})
    if type(estimator).__name__ == "DecisionTreeClassifier" and encoding is not None and names is not None:
        # One tree: as a graph, and as a Python file that needs no library but NumPy.
        schema, classes, nodes = subject.schema, promise.classes, nodes_of(estimator, subject.schema)
        about = {"about": by_inputs(schema, encoding, classes)}
        aside.add(aside.saved(ONNX, lambda path: write_tree(nodes, path, int(encoding.width), schema, classes)), about)
        script = tree_script(nodes, schema, encoding, classes)
        aside.add(aside.saved(PY, script.write), {"by": "module", "name": script.name}, script=script)


def _wrapped(model: Guard | GroupThresholds, aside: _Aside) -> None:
    """A guard or thresholds by group: of a native network as one ONNX graph, of every model as a Python file."""
    promise = aside.promise
    odd = promise.odd_wanted() if isinstance(model, Guard) else {}
    if isinstance(model.model, Network):
        path = aside.saved(ONNX, lambda path: write_onnx(model, path, promise.classes))
        blank = model.protected_inputs.tolist() if isinstance(model, Guard) else []
        about = {"about": aside.by_inputs, "odd": {"blank": odd["missing"]} if odd else {}, "blank": blank}
        aside.add(path, about)
    script, held, files = _script(model, aside)
    job: Job = {"by": "module", "name": script.name}
    if odd:
        job |= {"tables": {**promise.tables, **promise.odd_tables}, "odd": odd}
    aside.add(aside.saved(PY, script.write), job, held=held, with_files=files, script=script)


def _script(model: Guard | GroupThresholds, aside: _Aside) -> tuple[Script, Any, tuple[str, ...]]:
    """The Python file, the object that it is handed where it is handed one, and the files that go with it."""
    classes, held, file = aside.promise.classes, aside.held, aside.file
    if isinstance(model.model, Network) and not _asks_people(held, file):
        return script_of(model, classes, embedded(model.model, model.schema, model.encoding, classes)), None, ()
    settled = None
    if held is not None or file is not None:  # how its owner asks it is found by asking
        job = aside.settling()
        answer = in_fresh_process([job])[0] if held is None else perform(job, held)
        settled = answer.get("about")
        if answer["fault"]:
            aside.warnings.append(
                f"{NAME}{PY} asks no model by itself ({answer['fault'].rstrip('.')}): hand it a function of a table "
                f"that gives the scores."
            )
    if settled is None:  # whatever it is: its owner hands over a function
        script = script_of(model, classes)
        return script, script.function(aside.subject), ()
    companion = f"{COMPANION}{'.joblib' if file is None else file.suffix.lower()}"
    trusted: Any = True
    if file is not None:
        (aside.folder / companion).write_bytes(file.read_bytes())
        trusted = trusted_types(file, trust_pickle=aside.trusted) if file.suffix == ".skops" else aside.trusted
    else:
        try:
            save_estimator(held, aside.folder / companion)
        except FairbitsError:
            return script_of(model, classes, settled), held, ()
    return script_of(model, classes, {**settled, "file": companion, "trusted": trusted}), held, (companion,)


def _asks_people(held: Any, file: Path | None) -> bool:
    """Whether a network came as an estimator with encoders of its own, which its owner asks with a table."""
    if file is not None:
        return file.suffix.lower() in {".skops", ".pkl", ".pickle", ".joblib"}
    return held is not None and callable(attribute(held, "predict")) and callable(attribute(held, "get_params"))
