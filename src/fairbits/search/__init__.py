"""The search for the people whose twins are treated most differently: strategies, and the oracle that answers them."""

from fairbits.search.budget import Budget, BudgetSpent, seconds_of
from fairbits.search.oracle import Oracle, Tally
from fairbits.search.problem import Problem
from fairbits.search.registry import DEFAULT, STRATEGIES, make_strategy
from fairbits.search.running import Settings, search_subject
from fairbits.search.strategy import Strategy
from fairbits.search.tasks import Plan, Task

__all__ = [
    "DEFAULT",
    "STRATEGIES",
    "Budget",
    "BudgetSpent",
    "Oracle",
    "Plan",
    "Problem",
    "Settings",
    "Strategy",
    "Tally",
    "Task",
    "make_strategy",
    "search_subject",
    "seconds_of",
]
