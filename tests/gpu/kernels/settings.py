"""Settings of Hypothesis: the number of cases, which are the same each time."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

PROPERTIES = settings(
    max_examples=150,
    deadline=None,
    derandomize=True,
    suppress_health_check=[
        HealthCheck.too_slow,
        HealthCheck.filter_too_much,
        HealthCheck.function_scoped_fixture,
    ],
)
