"""How many cases hypothesis makes up: the same ones each time."""

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
