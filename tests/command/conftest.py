"""Each test of the command runs in an empty folder, and may run the command in this process."""

import pytest

from gramian.command import main

collect_ignore = ["conftest.py"]  # has no doctests, and a module name that others share


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    """Each test runs in an empty folder of its own, and without named sets of others."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GRAMIAN_DATA", raising=False)
    return tmp_path


@pytest.fixture
def run(capsys):
    """Runs the command; gives what it printed, after a look at its exit status."""

    def command(text, *more, status=0):
        assert main([*text.split(), *more]) == status, capsys.readouterr().err
        out, err = capsys.readouterr()
        if status:
            assert out == "" or status == 2
            assert err.count("\n") == 1 and err.endswith("\n"), err
            assert err.startswith("gramian")
        return err if status else out

    return command
