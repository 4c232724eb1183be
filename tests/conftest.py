"""Shared settings: derandomised hypothesis, so that a failure on one machine fails on every machine."""

from hypothesis import HealthCheck, settings

settings.register_profile(
    "attngeom", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True
)
settings.load_profile("attngeom")
