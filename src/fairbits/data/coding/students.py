"""Student performance (UCI, two schools in Portugal): does a pupil pass the year?"""

from __future__ import annotations

from fairbits.domain import Attribute, Category, Integer, Schema

_NO_YES = ("no", "yes")
_EDUCATION = ("none", "up to 4th grade", "5th to 9th grade", "secondary", "higher")
_JOB = (("at_home", "at home"), ("health", "health care"), "other", ("services", "civil services"), "teacher")
_SCALE = ("1 (very low)", "2", "3", "4", "5 (very high)")

#: Text columns: raw texts in alphabetical order (label encoding), each with the words for people where they differ.
TEXTS: dict[str, tuple[str | tuple[str, str], ...]] = {
    "school": (("GP", "Gabriel Pereira"), ("MS", "Mousinho da Silveira")),
    "sex": (("F", "Female"), ("M", "Male")),
    "address": (("R", "rural"), ("U", "urban")),
    "famsize": (("GT3", "more than three"), ("LE3", "three or fewer")),
    "Pstatus": (("A", "apart"), ("T", "together")),
    "Mjob": _JOB,
    "Fjob": _JOB,
    "reason": (("course", "course preference"), ("home", "close to home"), "other", ("reputation", "reputation")),
    "guardian": ("father", "mother", "other"),
    **dict.fromkeys(
        ("schoolsup", "famsup", "paid", "activities", "nursery", "higher", "internet", "romantic"), _NO_YES
    ),
}
#: Number columns: lowest code and words, one for each code; ``failures`` is 0 to 3 in the source and 1 to 4 here.
NUMBERS: dict[str, tuple[int, tuple[str, ...]]] = {
    "Medu": (0, _EDUCATION),
    "Fedu": (0, _EDUCATION),
    "traveltime": (1, ("under 15 minutes", "15 to 30 minutes", "30 minutes to an hour", "over an hour")),
    "studytime": (1, ("under 2 hours", "2 to 5 hours", "5 to 10 hours", "over 10 hours")),
    "failures": (1, ("none", "once", "twice", "3 times or more")),
    "famrel": (1, ("1 (very bad)", "2", "3", "4", "5 (excellent)")),
    "freetime": (1, _SCALE),
    "goout": (1, _SCALE),
    "Dalc": (1, _SCALE),
    "Walc": (1, _SCALE),
    "health": (1, ("1 (very bad)", "2", "3", "4", "5 (very good)")),
}
#: Columns that stay as they are, with the paper's domains (the source says absences go to 93).
PLAIN = {"age": (15, 22), "absences": (0, 93), "G1": (0, 20), "G2": (0, 20)}
#: Label encoding counts from 0; the paper adds one here.
FROM_ONE = ("Mjob", "Fjob", "reason", "guardian")

#: raw column → our name, in the order of the table
NAMES = {
    "school": "school",
    "sex": "sex",
    "age": "age",
    "address": "address",
    "famsize": "family_size",
    "Pstatus": "parents",
    "Medu": "mother_education",
    "Fedu": "father_education",
    "Mjob": "mother_job",
    "Fjob": "father_job",
    "reason": "reason_for_school",
    "guardian": "guardian",
    "traveltime": "travel_time",
    "studytime": "study_time",
    "failures": "failures",
    "schoolsup": "school_support",
    "famsup": "family_support",
    "paid": "paid_classes",
    "activities": "activities",
    "nursery": "nursery",
    "higher": "wants_higher_education",
    "internet": "internet",
    "romantic": "romantic_relationship",
    "famrel": "family_relations",
    "freetime": "free_time",
    "goout": "going_out",
    "Dalc": "workday_alcohol",
    "Walc": "weekend_alcohol",
    "health": "health",
    "absences": "absences",
    "G1": "first_grade",
    "G2": "second_grade",
}


def _attribute(column: str, name: str) -> Attribute:
    protected = name in ("sex", "age")
    if column in PLAIN:
        low, high = PLAIN[column]
        return Integer(name=name, low=low, high=high, protected=protected)
    if column in NUMBERS:
        low, words = NUMBERS[column]
        return Integer(name=name, low=low, high=low + len(words) - 1, labels=words)
    texts = tuple(text if isinstance(text, str) else text[1] for text in TEXTS[column])
    if column in FROM_ONE:
        return Integer(name=name, low=1, high=len(texts), labels=texts)
    return Category(name=name, labels=texts, protected=protected)


SCHEMA = Schema(
    attributes=tuple(_attribute(column, name) for column, name in NAMES.items()),
    target="result",
    classes=("fail", "pass"),
)
