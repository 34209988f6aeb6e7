"""Threads that are kept between walks."""

import threading

import pytest

from gramian.backend.threads import in_order


def test_a_walk_inside_a_walk_does_not_wait_for_its_own_threads():
    def inner(i):
        return sum(in_order(lambda j: i * j, range(6), 2, "inner"))

    assert list(in_order(inner, range(6), 2, "outer")) == [15 * i for i in range(6)]


@pytest.mark.parametrize("fails", [False, True])
def test_nothing_runs_on_after_a_walk_that_ends_early(fails):
    running, go = threading.Semaphore(0), threading.Event()

    def work(i):
        if i == 0:
            assert running.acquire(timeout=10)  # the next has begun
            if fails:
                raise ArithmeticError
            return i
        running.release()
        go.wait(0.05)
        done.append(i)
        return i

    done: list[int] = []
    walk = in_order(work, range(20), 2, "walk")
    if fails:
        with pytest.raises(ArithmeticError):
            next(walk)
    else:
        next(walk)
        walk.close()
    count = len(done)
    assert count >= 1
    assert not go.wait(0.1) and len(done) == count
