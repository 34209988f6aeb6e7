"""Fixtures, names of the cases, and the rule that no test is left out where all parts are there."""

import gc
import os
import re
from contextlib import contextmanager
from pathlib import Path

import hypothesis
import numpy as np
import pytest
from sklearn.base import BaseEstimator

import gramian

hypothesis.settings.register_profile("gramian", deadline=None, max_examples=30, derandomize=True)
hypothesis.settings.load_profile("gramian")

# Doctests are collected from every module, but files of one name cannot be imported twice.
collect_ignore_glob = ["*conftest.py"]


def pytest_make_parametrize_id(config, val, argname):
    """Estimators and functions by what they are, on one line, and the same in every worker."""
    if isinstance(val, BaseEstimator) or callable(val):
        name = getattr(val, "__name__", None) or " ".join(repr(val).split())
        return re.sub(r" at 0x[0-9a-fA-F]+", "", name)
    return None


@pytest.fixture(scope="module")
def few_objects():
    """For tests that call the garbage collector: spare it what tests before them imported."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(optionalhook=True)  # without pytest-xdist there is one process
def pytest_xdist_make_scheduler(config, log):
    """Hand out tests in pieces: messages take time, and neighbours share fixtures."""
    from xdist.scheduler import LoadGroupScheduling

    class Pieces(LoadGroupScheduling):
        def _split_scope(self, nodeid):
            group = super()._split_scope(nodeid)
            if group != nodeid:
                return group
            if not hasattr(self, "pieces"):
                self.pieces = {name: f"piece {i // 4}" for i, name in enumerate(self.collection)}
            return self.pieces[nodeid]

    return Pieces(config, log) if config.getoption("dist") == "loadgroup" else None


@pytest.hookimpl(tryfirst=True)  # before xdist reads the marks
def pytest_collection_modifyitems(items):
    """Mark the tests of the one cluster and of the one browser; each group runs in one worker."""
    for item in items:
        used = {*getattr(item, "fixturenames", ())}
        params = getattr(item, "callspec", None) and item.callspec.params
        for name, needed in (
            ("cluster", "running" in used or (params or {}).get("scheduler") == "cluster"),
            ("browser", "browser" in used),
        ):
            if needed:
                item.add_marker(name)
                item.add_marker(pytest.mark.xdist_group(name))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item):
    """Spare the time to format tracebacks of expected failures, which nobody sees."""
    style = item.config.option.tbstyle
    if item.get_closest_marker("xfail"):
        item.config.option.tbstyle = "native"
    try:
        return (yield)
    finally:
        item.config.option.tbstyle = style


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def pytest_sessionfinish(session, exitstatus):
    """What becomes of skipped tests.

    With GRAMIAN_ALLOW_SKIPS=0 they are failures: all parts should be there. Their names go to the
    file that GRAMIAN_SKIPPED names, for ``pytest @FILE`` to run them once the parts are there.
    """
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    skipped = reporter.stats.get("skipped", []) if reporter else []
    if skipped and os.environ.get("GRAMIAN_ALLOW_SKIPS") == "0":
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
    if reporter and "GRAMIAN_SKIPPED" in os.environ:
        names = "".join(f"{without_group(report.nodeid)}\n" for report in skipped)
        Path(os.environ["GRAMIAN_SKIPPED"]).write_text(names, encoding="utf-8")


@pytest.fixture
def full_disk():
    """Files that may have no more than some bytes, inside a ``with`` block: as on a full disk."""
    resource = pytest.importorskip("resource")

    @contextmanager
    def limited(most):
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, before[1]))
        try:
            yield
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)

    return limited


def without_group(name):
    """Return the name of a test as pytest takes it, without the group that xdist adds to it."""
    test, _, group = name.rpartition("@")
    return test if test and "]" not in group else name


@pytest.fixture(autouse=True)
def the_same_draws_in_every_run():
    """A test passes always or never: estimators without ``random_state`` draw from this state."""
    np.random.seed(0)  # noqa: NPY002, the global state is what they use


@pytest.fixture(autouse=True)
def settings_as_they_were():
    before = gramian.get_config()
    yield
    gramian.set_config(**before)
