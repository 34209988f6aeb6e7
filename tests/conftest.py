"""Set-up of the tests: reproducible, and no test left out unseen where all parts are installed."""

import os

os.environ.setdefault("SCIPY_ARRAY_API", "1")  # before SciPy: scikit-learn's array API checks ask

# Programs for a GPU are run by Triton's interpreter; it asks when they are defined.
os.environ.setdefault("TRITON_INTERPRET", "1")

import hypothesis
import numpy as np
import pytest

import gramian

hypothesis.settings.register_profile("gramian", deadline=None, max_examples=30, derandomize=True)
hypothesis.settings.load_profile("gramian")


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def pytest_sessionfinish(session, exitstatus):
    """With GRAMIAN_ALLOW_SKIPS=0, a skipped test is a failure: all parts should be there."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    skipped = reporter.stats.get("skipped", []) if reporter else []
    if skipped and os.environ.get("GRAMIAN_ALLOW_SKIPS") == "0":
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.fixture(autouse=True)
def settings_as_they_were():
    before = gramian.get_config()
    yield
    gramian.set_config(**before)
