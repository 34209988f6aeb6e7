"""Contenders in turns, until the goals are decided."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from benchmarks.peers.record import Entry, JobRecord
from benchmarks.peers.worker import ContenderFailedError, Outcome

PAUSE = 0.1  # seconds, until threads of the call before stop waiting for work
JUDGED = 3  # so many results of each contender are looked at


class Player(Protocol):
    """A contender that can be called: in its own process, or in this one."""

    def first(self, seed: int) -> Outcome: ...

    def again(self, seed: int, judge: bool) -> Outcome: ...


@dataclass(frozen=True)
class Patience:
    """How many rounds there are: at least, where that is enough to decide, and at most."""

    least: int = 3
    enough: int = 5
    most: int = 25
    seconds: float = 10.0  # beyond these, no more than the least

    def is_over(self, rounds: int, seconds: float, decided: Callable[[], bool]) -> bool:
        if rounds < self.least:
            return False
        if rounds >= self.most or seconds > self.seconds:
            return True
        return rounds >= self.enough and decided()


def play(
    record: JobRecord,
    players: Mapping[str, Player],
    patience: Patience,
    decided: Callable[[], bool],
    pause: float = PAUSE,
) -> None:
    """First calls, which tell the memory, then rounds of all players; all goes into the record.

    Round i has seed i for everybody. Who fails is left out from then on.
    """
    for entry in _going(record, players):
        time.sleep(pause)
        outcome = attempt(entry, players[entry.contender].first, 0)
        if outcome is not None:
            entry.memory, entry.size, entry.work = outcome.memory, outcome.size, outcome.work
    start, turn = time.perf_counter(), 0
    while going := _going(record, players):
        rounds = len(going[0].seconds)
        if patience.is_over(rounds, time.perf_counter() - start, decided):
            return
        turn += 1
        for entry in going if turn % 2 else reversed(going):  # nobody always comes second
            time.sleep(pause)
            outcome = attempt(entry, players[entry.contender].again, turn, turn < JUDGED)
            if outcome is not None:
                entry.seconds.append(outcome.seconds)


def _going(record: JobRecord, players: Iterable[str]) -> list[Entry]:
    entries = (record.entry(name) for name in players)
    return [entry for entry in entries if not entry.problem]


def attempt(entry: Entry, call: Callable[..., Outcome | None], *arguments: Any) -> Outcome | None:
    """What a call gave; None where it failed, which the entry then says."""
    try:
        outcome = call(*arguments)
    except ContenderFailedError as error:
        entry.problem = f"failed, {error}"
        return None
    if outcome is not None and outcome.quality is not None:
        entry.qualities.append(outcome.quality)
    return outcome
