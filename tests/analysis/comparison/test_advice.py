"""The advice: the rule, on made-up results; its sentences; and its code, which is run as it is."""

import contextlib
import io
import re
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.datasets import load_diabetes, load_iris, make_moons
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

from gramian import RBF, KernelRidge, KernelRidgeClassifier, Local, Nystroem, compare
from gramian.analysis.comparison import Baseline, Measurement, data, words
from gramian.analysis.comparison.gamma import FARTHEST, REACH, search
from gramian.analysis.comparison.tasks import Score, scored
from gramian.analysis.report import views
from gramian.analysis.report.page import page

X, Y = load_iris(return_X_y=True)


@cache
def scored_base():
    return compare(X, Y, approximations="nystroem uniform", sizes=[5], repeats=1, random_state=0)


@cache
def plain_base():
    return compare(X, approximations="nystroem uniform", sizes=[5], repeats=1, random_state=0)


def kernel(score=None, seconds=1.0, *, error=0.01, nbytes=10, size=5, spread=0.02, exact=False):
    """A result as compare would have measured it."""
    base = scored_base() if score is not None else plain_base()
    result = replace(
        base.exact if exact else base.approximations[0],
        error=error, seconds=seconds, seconds_all=seconds, nbytes_all=nbytes,
        score=score, standard_error=spread,
    )  # fmt: skip
    if exact:
        return result
    made = clone(result.approximation).set_params(n_components=size)
    model = result.model and clone(result.model).set_params(kernel=made)
    return replace(result, size=size, approximation=made, model=model)


def other(name, score, seconds=1.0, spread=0.02):
    model = next(b.model for b in scored_base().baselines if b.name == name)
    return Baseline(name, seconds, seconds, score, spread, model)


def advised(results, baselines=(), budget=10**9, base=None, **settings):
    base = base or scored_base()
    settings = {**base.settings, "memory budget": budget, **settings}
    return replace(base, results=list(results), baselines=list(baselines), settings=settings)


@pytest.mark.slow
def test_the_fastest_within_one_standard_error_is_recommended():
    results = [
        kernel(0.90, 5.0, spread=0.03),  # the best
        kernel(0.88, 2.0, size=6),  # within one error of it, and the fastest that is
        kernel(0.88, 3.0, size=7),
        kernel(0.869, 1.0, size=8, spread=0.5),  # its own error does not count
    ]
    found = advised(results)
    assert found.best is found.winner is results[1]
    assert "6 features" in found.recommendation and "of the 3 candidates" in found.recommendation
    assert "0.900" in found.recommendation


@pytest.mark.slow
def test_the_exact_kernel_is_a_candidate_like_any_other():
    results = [kernel(0.90, 5.0), kernel(0.89, 1.0, exact=True)]
    found = advised(results)
    assert found.best is results[1]
    assert "Use the exact kernel" in found.recommendation
    assert "Exact(" in found.code and "approximation =" not in found.code
    assert advised([results[0], replace(results[1], seconds_all=6.0)]).best is results[0]


def test_times_are_those_of_all_rows():
    slow = replace(kernel(0.9, exact=True), seconds=0.1, seconds_all=50.0)
    fast = replace(kernel(0.9), seconds=0.2, seconds_all=2.0)
    assert advised([fast, slow]).best is fast


def test_memory_decides_only_when_it_is_scarce():
    small, large = kernel(0.9, 2.0, nbytes=10), kernel(0.9, 1.0, nbytes=1000, size=9)
    assert advised([small, large]).best is large  # though the other takes less
    scarce = advised([small, large], budget=100)
    assert scarce.best is small
    assert "1 candidate needs more than the memory budget of 100 B" in scarce.recommendation
    better = kernel(0.99, 1.0, nbytes=1000)  # cannot be used, so it sets no standard either
    assert advised([small, better], budget=100).best is small
    none = advised([small, large], budget=1)
    assert none.best is small
    assert "Nothing fits in the memory budget of 1 B" in none.recommendation


def test_without_a_target_the_fastest_below_the_error_asked_for():
    results = [
        kernel(None, 3.0, error=0.001),
        kernel(None, 2.0, error=0.04, size=6),
        kernel(None, 1.0, error=0.06, size=7),
        kernel(None, 9.0, error=0.0, exact=True),
    ]
    found = advised(results, base=plain_base())
    assert found.best is results[1]
    assert "4.0% error, and the fastest below 5%" in found.recommendation
    assert advised(results, base=plain_base(), **{"max error": 0.1}).best is results[2]
    assert advised(results, base=plain_base(), **{"max error": 0.01}).best is results[0]
    inexact = advised(results[:3], base=plain_base(), **{"max error": 1e-4})
    assert inexact.best is results[0]
    assert "still above 0.01%" in inexact.recommendation
    fast = [*results[:3], replace(results[3], seconds_all=0.1)]
    assert advised(fast, base=plain_base()).best is fast[3]


def test_a_model_without_a_kernel_can_win():
    results = [kernel(0.80, 1.0)]
    boosted = other("Gradient boosting", 0.90, 5.0)
    found = advised(results, [boosted, other("Dummy", 0.3, 0.0)])
    assert found.winner is boosted and found.best is results[0]
    assert found.recommendation.startswith("Use gradient boosting instead of a kernel")
    assert "HistGradientBoostingClassifier(" in found.code and "Nystroem" not in found.code
    assert "Nystroem(" in found.code_of(found.best)
    assert words.worth(found)[0] == "No: gradient boosting is better"
    level = advised(results, [other("Linear model", 0.79, 0.5)])
    assert words.worth(level)[0] == "No: a linear model is as good, and faster"
    slower = advised(results, [other("Gradient boosting", 0.81, 5.0)])
    assert slower.winner is slower.best and words.worth(slower)[0] == "Yes"
    assert "gradient boosting 0.810" in slower.recommendation
    hopeless = advised(results, [other("Dummy", 0.79, 0.0)])
    assert hopeless.recommendation.startswith("Nothing here predicts the target")


@pytest.mark.slow
def test_the_baselines_are_those_of_scikit_learn():
    assert [b.name for b in scored_base().baselines] == [
        "Gradient boosting",
        "Linear model",
        "Dummy",
    ]
    assert scored_base().baselines[2].score == pytest.approx(1 / 3, abs=0.02)
    kinds = [type(b.model).__name__ for b in scored_base().baselines]
    assert kinds == ["HistGradientBoostingClassifier", "RidgeClassifierCV", "DummyClassifier"]
    assert compare(X, Y, sizes=[5], repeats=1, baselines=False).baselines == []


# Every sentence is about the same choice.

scores = st.sampled_from([0.5, 0.6, 0.62, 0.63, 0.9])
times = st.sampled_from([0.1, 1.0, 2.0, 30.0])


@st.composite
def comparisons(draw):
    base = draw(st.sampled_from([scored_base(), plain_base()]))
    has_target = base is scored_base()
    kernels = [
        kernel(
            draw(scores) if has_target else None,
            draw(times),
            error=draw(st.sampled_from([0.001, 0.04, 0.3])),
            nbytes=draw(st.sampled_from([10, 1000])),
            size=5 + i,
        )
        for i in range(draw(st.integers(1, 3)))
    ]
    if draw(st.booleans()):
        exact = kernel(draw(scores) if has_target else None, draw(times), nbytes=180000, exact=True)
        kernels.append(replace(exact, error=0.0))
    names = ["Gradient boosting", "Linear model", "Dummy"] if has_target else []
    baselines = [other(name, draw(scores), draw(times)) for name in names]
    return advised(kernels, baselines, draw(st.sampled_from([1, 100, 10**6])), base=base)


@given(comparisons())
def test_no_sentence_contradicts_the_code(found):
    winner, said, code = found.winner, found.recommendation, found.code
    if isinstance(winner, Measurement):
        made = f"Nystroem({found.kernel_source}, {winner.size},"
        assert ("Exact(" if winner.is_exact else made) in code
    else:
        assert f"{type(winner.model).__name__}(" in code and "RBF(" not in code
    assert code == found.code_of(winner)
    if getattr(winner, "name", "") == "Dummy":
        assert "Nothing here predicts" in said
    else:
        assert f"Use {words.described(winner)}" in said
    assert len(re.findall(r"\bUse ", said)) <= 1
    # What is chosen fits, unless nothing does; nothing that fits is as good and faster.
    budget = found.settings["memory budget"]
    fitting = [r for r in found.results if r.nbytes_all <= budget]
    assert not fitting or getattr(winner, "nbytes_all", 0) <= budget
    for result in [*fitting, *found.baselines] if winner.score is not None else []:
        assert result.score < winner.score or result.seconds_all >= winner.seconds_all
    # Nothing else on the page gives advice of its own.
    beside = [views.block_sentence(found), views.spectrum_sentence(found)]
    beside += [views.gamma_sentence(found), found.affordable[1]]
    if found.baselines:
        answer, _ = words.worth(found)
        assert answer.startswith("Yes") is isinstance(winner, Measurement)
    for sentence in beside:
        assert not re.search(r"\b(suits?|[Tt]ry|[Uu]se|better|should)\b", sentence)


def test_the_page_has_the_code_of_the_winner_and_of_the_best_kernel():
    kernels = [kernel(0.8), kernel(0.5, exact=True)]
    found = advised(kernels, [other("Gradient boosting", 0.95)])
    text = page(found)
    assert "HistGradientBoostingClassifier(" in text and "<details>" in text
    assert "Which kernel, if you want one?" in text
    kernel_wins = page(advised(kernels, [other("Gradient boosting", 0.4)]))
    assert "HistGradientBoostingClassifier(" not in kernel_wins and "<details>" not in kernel_wins


# gamma.


def test_the_search_goes_on_while_the_best_lies_at_the_edge():
    for peak in (-7, -2, 0, 1, 2, 5):
        best, tried = search(1.0, lambda gamma, at=peak: Score(-abs(np.log2(gamma) - at), 0.1))
        assert best == peak
        assert all(peak + step in tried for step in range(-REACH, REACH + 1))
    best, tried = search(3.0, Score)  # better and better: there is an end to it
    assert best == FARTHEST and max(tried) == FARTHEST + REACH
    assert search(1.0, lambda gamma: Score(-np.inf))[0] == 0  # no model at all


def test_the_search_ends_on_a_plateau():
    """Of values within one standard error of the best, the nearest to the start is chosen."""

    def rising(gamma):  # by a little with each step, and from 2 to 3 by much
        power = np.log2(gamma)
        return Score(0.001 * power + (0.2 if power >= 3 else 0.0), 0.01)

    best, tried = search(1.0, rising)
    assert best == 0 and sorted(tried) == [-2, -1, 0, 1, 2]
    best, tried = search(4.0, rising)
    assert best == 1 and max(tried) == 3


@pytest.mark.slow
def test_gamma_is_chosen_and_in_the_code():
    points, classes = make_moons(200, noise=0.1, random_state=0)
    options = {"sizes": [40], "approximations": "nystroem k-means", "repeats": 1,
               "random_state": 0, "baselines": False}  # fmt: skip
    found = compare(points, classes, **options, kernel=RBF(0.1))
    assert found.kernel.gamma == 0.1 and found.settings["gamma"] == "as given"
    chosen = compare(points, classes, **options)
    assert "by cross-validation" in chosen.settings["gamma"]
    assert f"RBF({chosen.kernel.gamma!r})" in chosen.code
    assert chosen.best.score > 0.95
    own = next(view for view in chosen.structure.gammas if view.factor == 1)
    assert own.score > max(view.score for view in chosen.structure.gammas) - 0.03
    ruled = compare(points, classes, **options, kernel=RBF("median"))
    assert ruled.settings["gamma"] == "from the rule 'median'"
    assert "gamma" in compare(points, **options).settings


def test_standard_errors_of_scores():
    rng = np.random.default_rng(0)
    truth, missed = rng.standard_normal(400), 0.5 * rng.standard_normal(400)
    error = scored("R²", truth, truth + missed).standard_error
    drawn = [rng.integers(0, 400, 400) for _ in range(300)]
    again = np.std([scored("R²", truth[i], (truth + missed)[i]).value for i in drawn])
    assert error == pytest.approx(again, rel=0.2)
    right = np.arange(400) % 10 > 0
    assert scored("accuracy", right, np.ones(400, bool)).standard_error == pytest.approx(
        np.sqrt(0.9 * 0.1 / 400), rel=0.05
    )
    assert scored("accuracy", [1, 1, 0, 0], [1, 1, 0, 0]).standard_error > 0.1  # not certain


# The code, run as it is.


def printed(found, result=None, **names):
    shown = io.StringIO()
    code = found.code if result is None else found.code_of(result)
    with contextlib.redirect_stdout(shown), threadpool_limits(1):
        exec(compile(code, "code", "exec"), names)
    return shown.getvalue().strip(), names


def agrees(found, result, said):
    return said == f"{found.score_name}: {result.score:.3f}"


@pytest.mark.slow
def test_the_code_gives_the_score_of_the_report():
    options = {"sizes": [10, 20], "approximations": ["nystroem uniform", "meka", "random fourier"]}
    diabetes, y = load_diabetes(return_X_y=True)
    cases = [(X, Y), (X, np.array(list("abc"))[Y]), (diabetes, y), (diabetes, np.c_[y, -y])]
    for rows, target in cases:
        found = compare(rows, target, **options, max_rows=140, random_state=3)
        for result in [*found.approximations[-3:], *found.others]:
            said, names = printed(found, result, X=rows, y=target)
            assert agrees(found, result, said)
        names["model"].fit(rows, target)  # the last line of the code says so


@pytest.mark.slow
def test_the_code_of_clusters_gives_their_share_of_variance():
    for most in (100, 4000):
        found = compare(X, n_clusters=3, sizes=[20], approximations=["bka", "nystroem uniform"],
                        max_rows=most, random_state=1)  # fmt: skip
        for result in found.results:
            assert agrees(found, result, printed(found, result, X=X)[0])


@pytest.mark.slow
def test_code_without_scores_and_of_files(tmp_path):
    for result in plain_base().results:
        printed(plain_base(), result, X=X)
    path = tmp_path / 'ro"ws.npy'
    np.save(path, X)
    from_file = compare(path, sizes=[5], approximations="nystroem uniform", repeats=1)
    assert from_file.data.source == str(path)
    printed(from_file)  # knows X itself
    scored_file = compare(path, Y, sizes=[5], approximations="nystroem uniform", repeats=1,
                          random_state=0, baselines=False)  # fmt: skip
    assert agrees(scored_file, scored_file.winner, printed(scored_file, y=Y)[0])


@pytest.mark.slow
def test_code_of_ones_own_learner_and_matrix():
    options = {"sizes": [20], "approximations": "nystroem uniform", "repeats": 1,
               "random_state": 0, "baselines": False}  # fmt: skip
    for learner in (KernelRidge(0.1), SVC()):
        found = compare(X, Y, learner=learner, **options)
        result = found.approximations[0]
        assert agrees(found, result, printed(found, result, X=X, y=Y)[0])
    found = compare(X, Y, **{**options, "approximations": Local(Nystroem(), n_blocks=3)})
    result = found.approximations[0]
    assert agrees(found, result, printed(found, result, X=X, y=Y)[0])
    K = RBF(0.5)(X)
    found = compare(K, Y, kernel="precomputed", **options)
    assert agrees(found, found.best, printed(found, X=K, y=Y)[0])


@pytest.mark.slow
def test_the_seed_of_the_code_is_that_of_the_repeat_in_the_middle():
    found = compare(X, Y, repeats=5, random_state=0, sizes=[3], approximations="random fourier",
                    baselines=False)  # fmt: skip
    sample = data.draw(found.kernel, data.read(found.kernel, X, Y, 4000, 0))
    result = found.approximations[0]
    every = []
    for seed in range(5):
        approximation = clone(result.approximation).set_params(random_state=seed)
        model = KernelRidgeClassifier("loo", approximation)
        model.fit(sample.rows.data, sample.target)
        every.append(model.score(sample.new_rows.data, sample.new_target))
    assert len(set(every)) > 2
    assert result.score == sorted(every)[2] == every[result.approximation.random_state]
