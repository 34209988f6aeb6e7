"""The benchmark of ``tune``: that contenders see the same rows, and that wins are counted."""

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2]))  # the benchmarks are no installed package

from benchmarks.tuning import OURS, Result, drawn, keep, kept, measure, summary

BOOSTING = "gradient boosting"


def results(dataset, ours, theirs):
    for split, scores in enumerate(zip(ours, theirs, strict=True)):
        for contender, score in zip((OURS, BOOSTING), scores, strict=True):
            yield Result(dataset, split, contender, score, 1.0, 2.0)


def test_splits_are_repeatable_and_training_rows_are_not_tested():
    first, again, other = drawn("iris", 0), drawn("iris", 0), drawn("iris", 1)
    np.testing.assert_array_equal(first.X, again.X)
    assert not np.array_equal(first.X, other.X)
    assert len(first.X) == 105 and len(first.X_test) == 45


def test_a_contender_is_scored_on_its_test_rows():
    one = measure("diabetes", 0, "random forest")
    assert one.contender == "random forest" and 0.2 < one.score < 0.6 and one.seconds > 0


def test_wins_and_ties_are_counted():
    won = results("won", [0.9, 0.8], [0.8, 0.75])
    level = results("level", [0.80, 0.90], [0.9, 0.82])  # 0.85 and 0.86, one standard error 0.09
    lost = results("lost", [0.70, 0.71], [0.9, 0.92])
    said = summary([*won, *level, *lost])
    assert "beats gradient boosting on 1 of 3 sets" in said
    assert "is level with the best on 2 of 3 sets" in said
    assert "is strictly best on 1 of 3 sets" in said
    assert "**0.8500** ± 0.0500" in said and "**0.9100** ± 0.0100" in said
    assert "1 / 1" in said and "2 / 2" in said


def test_sets_that_somebody_is_missing_on_do_not_count():
    alone = [Result("alone", 0, OURS, 1.0, 1.0, 1.0)]
    said = summary([*alone, *results("both", [0.9], [0.8])])
    assert "beats gradient boosting on 1 of 1 sets" in said and "| alone" in said


def test_pieces_are_merged_and_a_second_measurement_replaces_the_first(tmp_path):
    pieces = list(results("a", [0.9, 0.8], [0.8, 0.75])) + list(results("b", [0.5], [0.6]))
    for one in pieces:
        keep(tmp_path, one)
    assert len(list(tmp_path.iterdir())) == 3
    assert sorted(kept(tmp_path)) == sorted(pieces)
    keep(tmp_path, pieces[0]._replace(score=0.1))
    assert len(kept(tmp_path)) == len(pieces) and 0.1 in {one.score for one in kept(tmp_path)}
