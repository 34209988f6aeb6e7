"""The states of NumPy's random generators, as plain values and back.

NumPy takes any state that it is given, and some crash the process or never return a number. So a
state that was read is compared with one that NumPy made.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

Random: TypeAlias = np.random.Generator | np.random.RandomState

NAMES = ("MT19937", "PCG64", "PCG64DXSM", "Philox", "SFC64")

# The numbers of a state are from 0 to below these; numbers of other names are below 2**128.
_BELOW = {
    "pos": 625,  # in the 624 words of MT19937; 624 is their end
    "buffer_pos": 5,  # in the four words of Philox
    "has_uint32": 2,
    "has_gauss": 2,
    "uinteger": 2**32,
}
MOST_POOL = 64  # words; NumPy's default is 4, and time grows with the square
MOST_WORDS = 1024  # of entropy, and of keys


def plain(random: Any) -> dict[str, Any] | None:
    """Return the name, state and seeds of a generator; None if it is not one of NumPy's own."""
    old = isinstance(random, np.random.RandomState)
    bits = random._bit_generator if old else random.bit_generator
    name = type(bits).__name__
    if name not in NAMES:
        return None
    # The seed sequence, from which children are spawned; RandomState has none.
    seeds = None if old else bits.seed_seq
    seeds = seeds if isinstance(seeds, np.random.SeedSequence) else None
    return {
        "generator": name,
        "old": old,
        "state": random.get_state(legacy=False) if old else bits.state,
        "seeds": None if seeds is None else seeds.state,
    }


def made(name: str, old: bool, state: dict[str, Any], seeds: object) -> Random:
    """Return the generator that ``plain`` described."""
    bits = getattr(np.random, NAMES[NAMES.index(name)])(_sequence(seeds))
    random: Any = np.random.RandomState(bits) if old else np.random.Generator(bits)
    _check(state, random.get_state(legacy=False) if old else bits.state)
    _check_moves(name, state["state"])
    if old:
        random.set_state(state)
    else:
        bits.state = state
    return random


def _check(state: object, like: object, name: str = "state") -> None:
    """Check a state, or a part of one, against one of a working generator."""
    if isinstance(like, dict):
        if not isinstance(state, dict) or state.keys() != like.keys():
            raise ValueError(f"the {name} of a random generator must have {', '.join(like)}")
        for key, part in like.items():
            _check(state[key], part, key)
    elif isinstance(like, np.ndarray):
        if not isinstance(state, np.ndarray) or (state.dtype, state.shape) != (
            like.dtype,
            like.shape,
        ):
            raise ValueError(
                f"the {name} of a random generator must be {like.size} numbers of {like.dtype}"
            )
    elif isinstance(like, int):
        below = _BELOW.get(name, 2**128)
        if type(state) is not int or not 0 <= state < below:
            raise ValueError(f"the {name} of a random generator must be from 0 to {below - 1}")
    elif type(state) is not type(like) or (isinstance(like, str) and state != like):
        raise ValueError(f"the {name} of a random generator must be like {like!r}")


def _check_moves(name: str, state: dict[str, Any]) -> None:
    """Refuse states that give 0 forever: drawing a number below a bound would not end."""
    if name == "MT19937" and not (state["key"][0] >> 31 or state["key"][1:].any()):
        raise ValueError("the state of a random generator must not be 0")
    if name.startswith("PCG64") and state["inc"] % 2 == 0:
        raise ValueError("the inc of a random generator must be odd")


def _sequence(seeds: object) -> np.random.SeedSequence | None:
    if seeds is None:
        return None
    if not isinstance(seeds, dict) or seeds.keys() != np.random.SeedSequence(0).state.keys():
        raise ValueError("the state of a seed sequence must have entropy and keys")
    entropy = seeds["entropy"]
    for words in ([entropy] if type(entropy) is int else entropy, seeds["spawn_key"]):
        if len(words) > MOST_WORDS or any(int(word) != word or word < 0 for word in words):
            raise ValueError(
                f"the entropy and the spawn_key of a seed sequence must be at most {MOST_WORDS} "
                "numbers from 0 on"
            )
    pool, spawned = seeds["pool_size"], seeds["n_children_spawned"]
    if type(pool) is not int or not 4 <= pool <= MOST_POOL:
        raise ValueError(f"the pool_size of a seed sequence must be from 4 to {MOST_POOL}")
    if type(spawned) is not int or not 0 <= spawned < 2**32:
        raise ValueError("the n_children_spawned of a seed sequence must be from 0 to 2**32 - 1")
    return np.random.SeedSequence(**seeds)
