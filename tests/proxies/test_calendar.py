from __future__ import annotations

import pytest

from fairbits.proxies.periods import dated_periods, in_time_order


@pytest.mark.parametrize(
    "ordered",
    [
        ("1", "2", "9", "10", "12"),
        ("-3", "-1", "0", "2.5", "11"),
        ("Jan", "Feb", "Apr", "Aug", "Dec"),
        ("january", "February", "March", "october"),
        ("Nov 2024", "Dec 2024", "Jan 2025", "Apr 2025"),
        ("11/2024", "01/2025", "02/2025"),
        ("Q3 2024", "Q4 2024", "Q1 2025", "Q2 2025"),
        ("2024-Q4", "2025-Q1", "2025-Q2"),
        ("W1", "W2", "W10", "W51"),
        ("2024-W52", "2025-W1", "2025-W10"),
        ("2024-12", "2025-01", "2025-02"),
        ("before", "later", "nan", "²"),
        ("", "1", "x"),
    ],
)
def test_periods_stand_in_the_order_of_time(ordered):
    assert tuple(in_time_order(sorted(ordered))) == ordered
    assert tuple(in_time_order(sorted(ordered, reverse=True))) == ordered


def test_dates_of_many_days_are_taken_by_month_or_year():
    few = [f"2025-01-{day:02d}" for day in range(1, 29)]
    assert dated_periods([*few, None]) == [*few, None]
    many = [
        f"{month}-{day:02d} 00:00:00.000"
        for month in ("2024-01", "2024-02", "2025-01", "2025-02")
        for day in range(1, 28)
    ]
    found = dated_periods([None, *many])
    assert found[:2] == [None, "2024-01"]
    assert len(set(found)) == 5
    decades = [f"{year}-{month:02d}-01" for year in range(1990, 2020) for month in range(1, 13)]
    assert set(map(len, map(str, dated_periods(decades)))) == {4}


def test_what_is_no_date_is_kept():
    for texts in (["2025-01", "2025-02"], ["x", None], [None, None], [], ["2025-01-011"]):
        assert dated_periods(texts) == texts
