"""Heart disease (UCI, Cleveland): does a person have heart disease of grade 2 or more?"""

from __future__ import annotations

from fairbits.data.coding.bins import range_labels
from fairbits.domain import Category, Integer, Schema

PAIN = ("typical angina", "atypical angina", "non-anginal", "asymptomatic")
SLOPE = ("upsloping", "flat", "downsloping")

SCHEMA = Schema(
    attributes=(
        Integer(name="age", low=1, high=7, labels=range_labels(10, 1, 7), protected=True),
        Category(name="sex", labels=("Female", "Male"), protected=True),
        Integer(name="chest_pain", low=1, high=4, labels=PAIN),
        Integer(name="resting_blood_pressure", low=94, high=200),
        Integer(name="cholesterol", low=126, high=564),
        Category(name="fasting_blood_sugar", labels=("120 mg/dl or less", "over 120 mg/dl")),
        Category(
            name="resting_ecg",
            labels=("normal", "ST-T wave abnormality", "left ventricular hypertrophy"),
        ),
        Integer(name="max_heart_rate", low=71, high=202),
        Category(name="exercise_angina", labels=("no", "yes")),
        Integer(name="st_depression", low=0, high=6, labels=tuple(f"{i}.0–{i}.9" for i in range(7))),
        Integer(name="st_slope", low=1, high=3, labels=SLOPE),
        Integer(name="vessels_coloured", low=0, high=3),
        # The source codes this 3, 6, 7 and the paper keeps it; no row has 4 or 5.
        Integer(
            name="thal",
            low=3,
            high=7,
            allowed=(3, 6, 7),
            labels=("normal", "4 (no such code)", "5 (no such code)", "fixed defect", "reversible defect"),
        ),
    ),
    target="disease",
    classes=("grade 0 or 1", "grade 2 or more"),
)
