"""What an audit will tell and take: intervals, power and counts, against simulation."""

import json

import numpy as np
import pytest
from click.testing import CliRunner

import fairbits
from fairbits.audit import plan_audit
from fairbits.cli.app import app
from fairbits.measure import wilson
from fairbits.options import PlanOptions


@pytest.mark.parametrize(("rate", "wanted"), [(0.5, 0.03), (0.1, 0.02), (0.01, 0.01)])
def test_so_many_people_make_the_interval_so_narrow(rate, wanted):
    found = plan_audit(PlanOptions(rows=100, rate=rate, width=wanted))
    ends = wilson(round(rate * found.rows_needed), found.rows_needed)
    assert ends.high - ends.value <= 1.001 * wanted
    fewer = int(found.rows_needed * 0.9)
    ends = wilson(round(rate * fewer), fewer)
    assert ends.high - ends.value > wanted


def test_the_power_is_how_often_a_worse_model_fails():
    found = plan_audit(PlanOptions(rows=400, rate=0.2, rise=0.05))
    hits = np.random.default_rng(0).binomial(400, 0.25, 4_000)
    failed = np.mean([wilson(int(one), 400).low > 0.2 for one in hits])
    assert found.power == pytest.approx(failed, abs=0.02)
    better = plan_audit(PlanOptions(rows=400, rate=0.2, rise=found.noticed_rise))
    assert 0.8 <= better.power < 0.85


def test_a_model_and_its_table():
    found = fairbits.Audit.of("german").plan()
    assert (found.people, found.twins, found.questions, found.kind) == (1000, 16, 16_000, "statistical")
    assert found.rate == fairbits.Audit.of("german").measure().flip_rate.value
    assert found.seconds > 0
    assert found.requests is None


def test_the_command():
    said = CliRunner().invoke(app, ["plan", "--rows", "5000"], catch_exceptions=False)
    assert "5,000 people tell a flip rate of 50.0 % (assumed) to within ± 1.4 points" in " ".join(said.output.split())
    document = json.loads(CliRunner().invoke(app, ["plan", "german", "--rows", "10", "--json"]).output)
    assert document["people"] == 10
    assert isinstance(CliRunner().invoke(app, ["plan"]).exception, fairbits.FairbitsError)
    with pytest.raises(fairbits.FairbitsError, match="--width is 2"):
        PlanOptions(width=2)
    with pytest.raises(fairbits.FairbitsError, match=r"--confidence is 1; it must lie between 0 and 1, e\.g\. 0\.95"):
        PlanOptions(confidence=1)
