"""Bank marketing (UCI, Portugal): will a person subscribe to a term deposit?"""

from __future__ import annotations

from fairbits.data.coding.bins import range_labels
from fairbits.data.coding.raw import listed
from fairbits.domain import Category, Integer, Schema

JOB = listed(
    "admin.,unknown,unemployed,management,housemaid,entrepreneur,student,blue-collar,self-employed,retired,"
    "technician,services"
)
MARITAL = listed("married,divorced,single")
EDUCATION = listed("unknown,secondary,primary,tertiary")
CONTACT = listed("unknown,telephone,cellular")
MONTH = listed("jan,feb,mar,apr,may,jun,jul,aug,sep,oct,nov,dec")
OUTCOME = listed("unknown,other,failure,success")
YES = ("no", "yes")
RAW_COLUMNS = listed(
    "age,job,marital,education,default,balance,housing,loan,contact,day,month,duration,campaign,pdays,previous,"
    "poutcome,y"
)


def _balance() -> tuple[str, ...]:
    """Floor of the balance in steps of 50 euros; everything beyond either end is in the end's code."""
    below = [f"−{-code * 50:,} to −{-code * 50 - 49:,}" for code in range(-20, 0)]
    below[0] = "−951 and under"
    return (*below, *range_labels(50, 0, 179, top=True))


SCHEMA = Schema(
    attributes=(
        Integer(name="age", low=1, high=9, labels=range_labels(10, 1, 9, top=True), protected=True),
        Category(name="job", labels=JOB),
        Category(name="marital", labels=("married", "divorced or widowed", "single")),
        Category(name="education", labels=EDUCATION),
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
)
