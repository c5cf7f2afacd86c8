"""Census income (UCI Adult): does a person earn more than 50,000 dollars a year?"""

from __future__ import annotations

from fairbits.data.coding.bins import range_labels
from fairbits.data.coding.raw import listed
from fairbits.domain import Category, Integer, Schema

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


SCHEMA = Schema(
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
)
