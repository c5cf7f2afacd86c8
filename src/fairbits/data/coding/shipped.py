"""The people of the tables that ship: what each attribute is called and what its codes mean, by table."""

from __future__ import annotations

from fairbits.data.coding.raw import OWN_DECADE, listed, range_labels, rules
from fairbits.domain import Attribute, Category, Integer, Schema

JOB = listed(
    "admin.,unknown,unemployed,management,housemaid,entrepreneur,student,blue-collar,self-employed,retired,"
    "technician,services"
)
BANK_MARITAL = listed("married,divorced,single")
BANK_EDUCATION = listed("unknown,secondary,primary,tertiary")
CONTACT = listed("unknown,telephone,cellular")
MONTH = listed("jan,feb,mar,apr,may,jun,jul,aug,sep,oct,nov,dec")
OUTCOME = listed("unknown,other,failure,success")
YES = ("no", "yes")


def _balance() -> tuple[str, ...]:
    """Floor of the balance in steps of 50 euros; everything beyond either end is in the end's code."""
    below = [f"−{-code * 50:,} to −{-code * 50 - 49:,}" for code in range(-20, 0)]
    below[0] = "−951 and under"
    return (*below, *range_labels(50, 0, 179, top=True))


BANK = Schema(
    attributes=(
        Integer(name="age", low=1, high=9, labels=range_labels(10, 1, 9, top=True), protected=True),
        Category(name="job", labels=JOB),
        Category(name="marital", labels=("married", "divorced or widowed", "single")),
        Category(name="education", labels=BANK_EDUCATION),
        Category(name="default", labels=YES),
        Integer(name="balance", low=-20, high=179, labels=_balance()),
        Category(name="housing_loan", labels=YES),
        Category(name="personal_loan", labels=YES),
        Category(name="contact", labels=CONTACT),
        Integer(name="day", low=1, high=31),
        Integer(name="month", low=0, high=11, labels=MONTH),
        Integer(
            name="duration",
            low=0,
            high=99,
            labels=tuple(f"{text} s" for text in range_labels(10, 0, 99, top=True)),
        ),
        Integer(name="campaign", low=1, high=63),
        # The paper's list of domains says −1 to 39 here, but its table holds 0 and 1 only.
        Category(name="never_contacted", labels=("no", "yes")),
        Integer(name="previous_contacts", low=0, high=1, labels=("none", "one or more")),
        Category(name="previous_outcome", labels=OUTCOME),
    ),
    target="subscribed",
    classes=("no", "yes"),
    plausible=rules(
        OWN_DECADE,
        'job = "retired" -> age not in {"10–19", "20–29", "30–39"}',
        'job = "student" -> age <= 4',
        'marital != "single" -> age != "10–19"',
        'education = "tertiary" -> age != "10–19"',
    ),
)


# The lists of adult.names, in its order. "?" comes last, so that the published domains keep their codes.
WORKCLASS = listed("Private,Self-emp-not-inc,Self-emp-inc,Federal-gov,Local-gov,State-gov,Without-pay,Never-worked,?")
EDUCATION = listed(
    "Bachelors,Some-college,11th,HS-grad,Prof-school,Assoc-acdm,Assoc-voc,9th,7th-8th,12th,Masters,1st-4th,10th,"
    "Doctorate,5th-6th,Preschool"
)
MARITAL = listed("Married-civ-spouse,Divorced,Never-married,Separated,Widowed,Married-spouse-absent,Married-AF-spouse")
OCCUPATION = listed(
    "Tech-support,Craft-repair,Other-service,Sales,Exec-managerial,Prof-specialty,Handlers-cleaners,"
    "Machine-op-inspct,Adm-clerical,Farming-fishing,Transport-moving,Priv-house-serv,Protective-serv,Armed-Forces,?"
)
RELATIONSHIP = listed("Wife,Own-child,Husband,Not-in-family,Other-relative,Unmarried")
RACE = listed("White,Asian-Pac-Islander,Amer-Indian-Eskimo,Other,Black")
SEX = listed("Female,Male")
COUNTRY = listed(
    "United-States,Cambodia,England,Puerto-Rico,Canada,Germany,Outlying-US(Guam-USVI-etc),India,Japan,Greece,South,"
    "China,Cuba,Iran,Honduras,Philippines,Italy,Poland,Jamaica,Vietnam,Mexico,Portugal,Ireland,France,"
    "Dominican-Republic,Laos,Ecuador,Taiwan,Haiti,Columbia,Hungary,Guatemala,Nicaragua,Scotland,Thailand,Yugoslavia,"
    "El-Salvador,Trinadad&Tobago,Peru,Hong,Holand-Netherlands,?"
)


def _read_as(raw: tuple[str, ...], **other: str) -> tuple[str, ...]:
    """Labels for people: "?" is unknown, and a few raw spellings are mended."""
    mended = {"?": "unknown", **other}
    return tuple(mended.get(text, text) for text in raw)


CENSUS = Schema(
    attributes=(
        Integer(name="age", low=1, high=9, labels=range_labels(10, 1, 9, top=True), protected=True),
        Category(name="workclass", labels=_read_as(WORKCLASS)),
        # The paper's domain ends at 39 (800,000); the data go on to 74.
        Integer(name="fnlwgt", low=0, high=74, labels=range_labels(20_000, 0, 74)),
        Category(name="education", labels=_read_as(EDUCATION)),
        Category(name="marital_status", labels=_read_as(MARITAL)),
        Category(name="occupation", labels=_read_as(OCCUPATION)),
        Category(name="relationship", labels=_read_as(RELATIONSHIP)),
        Category(name="race", labels=_read_as(RACE), protected=True),
        Category(name="sex", labels=_read_as(SEX), protected=True),
        Integer(name="capital_gain", low=0, high=99, labels=range_labels(1000, 0, 99)),
        # The paper's domain ends at 39 (3,999 dollars); the data go on to 43.
        Integer(name="capital_loss", low=0, high=43, labels=range_labels(100, 0, 43)),
        Integer(name="hours_per_week", low=0, high=99),
        # The paper's domain ends at 39; one person comes from the 41st country of the list.
        Category(
            name="native_country",
            labels=_read_as(
                COUNTRY,
                **{
                    "South": "South (as in the source)",
                    "Columbia": "Colombia",
                    "Hong": "Hong Kong",
                    "Trinadad&Tobago": "Trinidad and Tobago",
                    "Holand-Netherlands": "Netherlands",
                    "Outlying-US(Guam-USVI-etc)": "Outlying US (Guam, USVI, …)",
                },
            ),
        ),
    ),
    target="income",
    classes=("<=50K", ">50K"),
    plausible=rules(
        OWN_DECADE,
        'relationship = "Husband" -> sex = "Male"',
        'relationship = "Wife" -> sex = "Female"',
        'marital_status in {"Married-civ-spouse", "Divorced"} or relationship = "Husband" -> age != "10–19"',
        'marital_status = "Widowed" -> age >= 3',
        'relationship = "Own-child" -> age <= 5',
        'education in {"Bachelors", "Prof-school", "Assoc-acdm", "Assoc-voc", "Masters", "Doctorate"} -> age >= 2',
    ),
)


MONTHS = ("september", "august", "july", "june", "may", "april")
#: Ends of the paper's domains for the six bills and the six payments, in units of 10,000; the data fill them exactly.
BILLS = ((-16, 96), (-6, 98), (-15, 166), (-17, 89), (-8, 92), (-33, 96))
PAYMENTS = (87, 168, 89, 62, 42, 52)
UNIT = 10_000

# UCI documents −1 and the delays; −2 and 0 are the dataset's author's later explanation.
_EARLY = ("nothing spent (−2)", "paid in full (−1)", "revolving credit used (0)")
_LATE = ("1 month late", *(f"{n} months late" for n in range(2, 8)), "8 months late or more")


def _status(month: str) -> Attribute:
    """Nobody is one month late in May and April: label encoding closes the gap, so their codes end at 9.

    (The paper states 0–10 for all six months; no row has a code 10 in these two.)
    """
    late = _LATE[1:] if month in ("may", "april") else _LATE
    labels = (*_EARLY, *late)
    return Integer(name=f"status_{month}", low=0, high=len(labels) - 1, labels=labels)


def _money(low: int, high: int) -> tuple[str, ...]:
    """Labels of amounts in units of 10,000 New Taiwan dollars, cut towards zero (so code 0 covers both signs)."""
    below = [f"−{-code * UNIT + UNIT - 1:,} to −{-code * UNIT:,}" for code in range(low, 0)]
    zero = ["−9,999 to 9,999" if low < 0 else "0–9,999"]
    return (*below, *zero, *range_labels(UNIT, 1, high))


DEFAULT = Schema(
    attributes=(
        Integer(name="limit_balance", low=1, high=100, labels=range_labels(UNIT, 1, 100)),
        Category(name="sex", labels=("Male", "Female"), protected=True),
        Category(
            name="education",
            labels=(
                "0 (undocumented)",
                "graduate school",
                "university",
                "high school",
                "others",
                "5 (undocumented)",
                "6 (undocumented)",
            ),
        ),
        Category(name="marriage", labels=("0 (undocumented)", "married", "single", "others")),
        Integer(name="age", low=2, high=7, labels=range_labels(10, 2, 7), protected=True),
        *(_status(month) for month in MONTHS),
        *(
            Integer(name=f"bill_{month}", low=low, high=high, labels=_money(low, high))
            for month, (low, high) in zip(MONTHS, BILLS, strict=True)
        ),
        *(
            Integer(name=f"paid_{month}", low=0, high=high, labels=_money(0, high))
            for month, high in zip(MONTHS, PAYMENTS, strict=True)
        ),
    ),
    target="default_next_month",
    classes=("no default", "default"),
    plausible=rules(OWN_DECADE),
)


# From the dataset's own documentation (DM: Deutsche Mark). The place in the tuple is the code.
WORDS = {
    "checking_status": ("below 0 DM", "0 to under 200 DM", "200 DM and over, or salary for a year", "no account"),
    "credit_history": (
        "no credits, or all paid back duly",
        "all credits at this bank paid back duly",
        "existing credits paid back duly till now",
        "delay in paying in the past",
        "critical account, or credits elsewhere",
    ),
    "purpose": (
        "car (new)",
        "car (used)",
        "furniture or equipment",
        "radio or television",
        "domestic appliances",
        "repairs",
        "education",
        "holiday",
        "retraining",
        "business",
        "others",
    ),
    "savings_status": (
        "below 100 DM",
        "100 to under 500 DM",
        "500 to under 1,000 DM",
        "1,000 DM and over",
        "unknown or none",
    ),
    "employment": ("unemployed", "under 1 year", "1 to under 4 years", "4 to under 7 years", "7 years and over"),
    "other_parties": ("none", "co-applicant", "guarantor"),
    "property_magnitude": ("real estate", "savings agreement or life insurance", "car or other", "unknown or none"),
    "other_payment_plans": ("bank", "stores", "none"),
    "housing": ("rent", "own", "for free"),
    "job": (
        "unemployed or unskilled, non-resident",
        "unskilled, resident",
        "skilled employee or official",
        "management, self-employed, highly qualified or officer",
    ),
    "own_telephone": ("none", "yes, in the customer's name"),
    "foreign_worker": ("yes", "no"),
}


def _category(name: str) -> Attribute:
    return Category(name=name, labels=WORDS[name])


GERMAN = Schema(
    attributes=(
        _category("checking_status"),
        Integer(name="duration", low=1, high=80),
        _category("credit_history"),
        _category("purpose"),
        Integer(name="credit_amount", low=1, high=200, labels=range_labels(100, 1, 200)),
        _category("savings_status"),
        _category("employment"),
        Integer(name="installment_commitment", low=1, high=4),
        # The source has no column for sex: "A92" reads "female, divorced, separated or married", and no single
        # woman is coded. A later study of the source (Grömping 2019) found single men under A92 as well.
        Category(name="sex", labels=("Male", "Female"), protected=True),
        _category("other_parties"),
        Integer(name="residence", low=1, high=4),
        _category("property_magnitude"),
        Integer(name="age", low=1, high=8, labels=range_labels(10, 1, 8), protected=True),
        _category("other_payment_plans"),
        _category("housing"),
        Integer(name="existing_credits", low=1, high=4),
        _category("job"),
        Integer(name="num_dependents", low=1, high=2),
        _category("own_telephone"),
        _category("foreign_worker"),
    ),
    target="risk",
    classes=("bad credit", "good credit"),
    plausible=rules(OWN_DECADE),
)


PAIN = ("typical angina", "atypical angina", "non-anginal", "asymptomatic")
SLOPE = ("upsloping", "flat", "downsloping")

HEART = Schema(
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
    plausible=rules(OWN_DECADE),
)


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


STUDENTS = Schema(
    attributes=tuple(_attribute(column, name) for column, name in NAMES.items()),
    target="result",
    classes=("fail", "pass"),
)
