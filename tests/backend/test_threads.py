"""Threads that are kept between walks."""

import os
import threading
from contextlib import nullcontext

import pytest

from gramian.backend import threads
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


CPUS = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set()


@pytest.mark.skipif(len(CPUS) < 2, reason="there are no two CPUs that threads can be placed on")
class TestEachThreadHasACPUOfItsOwn:
    """While a walk uses all CPUs: the kernel may wake both of two threads on one of them."""

    def together(self, workers, work):
        """What ``work`` returns in so many threads at the same time."""
        meet = threading.Barrier(workers)
        return list(in_order(lambda i: (meet.wait(10), work())[1], range(workers), workers, "walk"))

    def placed(self):
        return os.sched_getaffinity(0)

    @pytest.fixture(autouse=True)
    def woken(self):
        """Threads are placed once they have started."""
        self.together(len(CPUS), self.placed)

    def test_during_a_walk(self):
        places = self.together(len(CPUS), self.placed)
        assert sorted(map(sorted, places)) == [[cpu] for cpu in sorted(CPUS)]

    @pytest.mark.parametrize("stop", [1, 20])
    def test_but_not_after_it_nor_after_a_failure(self, stop):
        walk = in_order(lambda i: 1 // (i - 10), range(stop), len(CPUS), "walk")
        with pytest.raises(ZeroDivisionError) if stop > 10 else nullcontext():
            list(walk)
        pool = threads._pools[len(CPUS)]
        assert {*map(frozenset, map(os.sched_getaffinity, pool.threads))} == {frozenset(CPUS)}

    def test_threads_started_inside_may_go_anywhere(self):
        inner = self.together(len(CPUS), lambda: self.together(2, self.placed))
        assert inner == [[CPUS, CPUS]] * len(CPUS)

    def test_another_number_of_threads_may_go_anywhere(self):
        more = len(CPUS) + 1
        self.together(more, self.placed)
        assert self.together(more, self.placed) == [CPUS] * more
