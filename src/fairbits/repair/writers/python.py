"""A guard, or thresholds by group, as a Python file: the text of ``standalone`` and the facts about one model."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from textwrap import fill
from typing import Any

import numpy as np

from fairbits.domain import Encoding, Numeric, Schema, Unseen, table_columns
from fairbits.models import HasClassScores, Network
from fairbits.repair.proposals.guard import ROUNDING, Guard, TwinRules, least_size
from fairbits.repair.proposals.thresholds import GroupThresholds, twin_cuts
from fairbits.repair.proposals.tree import tree_words
from fairbits.repair.writers import standalone
from fairbits.repair.writers.check import (
    About,
    asked,
    attribute_facts,
    by_inputs,
    embedded,
    protected_facts,
    twin_columns,
)
from fairbits.subject import Subject

_HEAD = '''"""{what}

{proof}

    from repaired import {name}
    model = {name}({argument})
    model.predict(table)                # the decided class of each row ({classes}), or the predicted value
    model.predict_proba(table)          # probabilities, in the order of model.classes_
    model.scores(table)                 # the score of {favourable}{threshold}

A table is a pandas DataFrame, a dict of equally long lists, or a list of dicts, with the columns and values of the
table that the model was audited with; other columns are passed over. {declared}
{needs}
"""
'''


@dataclass(frozen=True, slots=True, eq=False)
class Script:
    """The facts of one Python file."""

    name: str
    what: str
    proof: str
    declared: str
    data: dict[str, Any]

    @property
    def needs_model(self) -> bool:
        """Whether it must be handed the model."""
        about = self.data["model"]
        return about["network"] is None and about["file"] is None

    def without_file(self) -> Script:
        """The same, handed the model by its owner."""
        return replace(self, data={**self.data, "model": {**self.data["model"], "file": None}})

    def write(self, path: Path) -> None:
        """Write the file."""
        about, classes = self.data["model"], self.data["classes"]
        give = about["give"] or "hand it over as it was given to fairbits"
        favourable = "the predicted value" if not classes else repr(classes[self.data["favourable"]])
        cut = f"; favourable from {self.data['threshold']:.15g} on" if len(classes) == 2 else ""
        if about["network"] is not None:
            needs = "Needs NumPy alone: the model is in this file."
        elif about["file"] is not None:
            needs = f"The model is in {about['file']} beside this file, and asked through its own library."
        else:
            needs = f"The model is not in this file: {give}."
        head = _HEAD.format(
            what=self.what,
            proof="\n".join(_harmless(line) for line in self.proof.splitlines()),
            name=self.name,
            argument="model" if self.needs_model else "",
            classes=_harmless(", ".join(map(repr, classes))),
            favourable=_harmless(favourable),
            threshold=cut,
            declared=self.declared,
            needs=_harmless(needs),
        )
        facts = {**self.data, "model": {**about, "give": f"{self.name}(model) wants the model: {give}."}}
        text = json.dumps(facts, ensure_ascii=True).replace("\\", "\\\\").replace('"""', '\\"\\"\\"')
        source = Path(standalone.__file__).read_text(encoding="utf-8").split('"""\n', 1)[1]
        path.write_text(head + source.replace('json.loads("{}")', f'json.loads("""{text}""")'), encoding="utf-8")

    def function(self, subject: Subject) -> Callable[[Any], Any]:
        """What its owner hands over, made from the audited model: a function of a table that gives the scores."""
        codes = by_inputs(subject.schema, Encoding.identity(subject.schema, dtype=np.float64), [])
        whole = len(subject.schema.classes) > 2 and isinstance(subject.model, HasClassScores)

        def scores(table: Any) -> Any:
            people = standalone.inputs_of(standalone.tabled(table), codes)
            inputs = subject.encoding.encode(people)
            model: Any = subject.model
            return model.class_scores(inputs) if whole else model.scores(inputs)

        return scores


def _harmless(text: str) -> str:
    """Text from outside in a docstring: it ends none, and escapes nothing."""
    return "".join(" " if not one.isprintable() else one for one in text).replace("\\", "/").replace('"', "'")


def script_of(
    model: Guard | GroupThresholds, classes: list[Any], *, network: bool = False, about: About | None = None
) -> Script:
    """The facts about a model: in the file itself, in one beside it, or handed over as a function of a frame."""
    schema = model.schema
    if network:
        assert isinstance(model.model, Network)  # noqa: S101 - asked for networks alone
        about = embedded(model.model, schema, model.encoding, classes)
    elif about is None:
        speaks = {"link": None, "order": list(range(len(classes))), "speaks": schema.favourable_index}
        gives = "the value" if not classes else f"the probability of {classes[schema.favourable_index]!r}"
        give = f"a function of a frame that gives {gives if len(classes) < 3 else 'the probabilities of all classes'}"
        columns = list(table_columns(schema))
        about = asked(schema, classes, form="frame", columns=columns, read=speaks, give=give)
    data = _facts(about, schema, classes)
    if isinstance(model, GroupThresholds):
        cuts = [twin_cuts(schema.attributes[column]) for column in model.coding.twins.columns]
        what = "A model with a threshold of its own for every group."
        proof = f"It uses protected values directly: {model.coding.words}."
        declared = "It needs everybody's protected values."
        return Script("Thresholded", what, proof, declared, {**data, "cuts": cuts, "shifts": model.by_twin.tolist()})
    names, twins = twin_columns(schema, model.subject_twins)
    data |= {
        "columns": names,
        "twins": twins,
        "weights": model.weights.tolist(),
        "tau": model.tau,
        "margin": ROUNDING,
        "size": least_size(model.tau),
        "shift": model.shift,
        "rules": None if model.twin_rules is None else _rules(model.twin_rules, schema),
    }
    what = "A guarded model: scores held close to the average over a person's twins."
    declared = (
        "Nobody needs to declare a protected value: whoever has none,\nor one that is not in the schema, gets the "
        f"average over twins. One decision costs {model.m} scores of the model."
    )
    return Script("Guarded", what, model.proof, declared, data)


def tree_script(tree: dict[str, Any], schema: Schema, encoding: Encoding, classes: list[Any]) -> Script:
    """A decision tree on unprotected inputs alone, with its nodes in the file itself."""
    about = by_inputs(schema, encoding, classes, network=tree)
    same = all(isinstance(part, Unseen) or part == Numeric(int(part.columns[0])) for part in encoding.parts)
    words = fill(f"It decides: {tree_words(tree, schema, encoding)}.", 118) if same else ""
    asks = {int(column) for i in schema.protected_columns for column in encoding.parts[i].columns} & set(
        tree["feature"]
    )
    if not asks:
        words = f"No split asks for a protected attribute: all twins of a person get one score.\n{words}"
    return Script("PlainModel", "A decision tree.", words, "", _facts(about, schema, classes))


def _facts(about: About, schema: Schema, classes: list[Any]) -> dict[str, Any]:
    rule = schema.rule
    return {
        "model": about,
        "classes": classes,
        "favourable": rule.favourable,
        "threshold": rule.threshold,
        "protected": protected_facts(schema),
    }


def _rules(rules: TwinRules, schema: Schema) -> dict[str, Any]:
    """The rules about twins, and the attributes that they look at."""
    return {
        "programs": list(rules.programs),
        "twins": {column: values.tolist() for column, values in rules.twins.items()},
        "seen": {column: attribute_facts(schema.attributes[column]) for column in rules.seen},
    }
