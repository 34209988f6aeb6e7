"""Fixtures of the losses."""

import pytest

from gramian.learners.losses.support_vectors import SupportVectors


@pytest.fixture
def without_libsvm(monkeypatch):
    """Leave support vector machines to the Newton and interior point methods."""
    monkeypatch.setattr(SupportVectors, "serves", lambda self, problem: False)
