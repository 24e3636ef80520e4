"""How long the property tests run: a quick profile that never surprises, and a long one for `make fuzz`."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

CHECKS = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example]

settings.register_profile(
    "quick", derandomize=True, deadline=None, max_examples=10, database=None, suppress_health_check=CHECKS
)
settings.register_profile("long", deadline=None, max_examples=600, suppress_health_check=CHECKS)
settings.load_profile("quick")
