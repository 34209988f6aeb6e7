"""Rows in files: every format gives what the array does, inside the budget, with clear errors."""

import os
import pickle
import tracemalloc

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

import gramian
from gramian import (
    MEKA,
    RBF,
    ArrayRows,
    Exact,
    FileRows,
    FunctionKernel,
    KernelKMeans,
    KernelPCA,
    KernelRidge,
    KernelRidgeClassifier,
    MemoryBudgetError,
    Nystroem,
    RandomFourier,
    as_rows,
    config_context,
    open_rows,
    relative_error,
)
from gramian.rows import Walk
from gramian.rows.files import formats
from gramian.rows.files import rows as file_rows
from gramian.tables import open_table
from gramian.tables.sources import check_name
from gramian.testing import check_rows
from gramian.testing.examples import example_rows

NAMES = ["a", "b", "c", "d", "e"]


def table(X, **more):
    return pa.table({**dict(zip(NAMES, X.T, strict=False)), **more})


def write(folder, ending, X, **more):
    """X in a file of any format, cut so that blocks must span row groups and batches."""
    path = folder / f"rows{ending}"
    if ending == ".npy":
        np.save(path, X)
    elif ending == ".parquet":
        pa.parquet.write_table(table(X, **more), path, row_group_size=37)
    elif ending == ".arrow":
        with pa.ipc.new_file(path, table(X).schema) as file:
            file.write_table(table(X), max_chunksize=41)
    elif ending == ".feather":
        pa.feather.write_feather(table(X, **more), path, chunksize=23)  # compressed
    elif ending == ".csv.gz":
        table(X, **more).to_pandas().to_csv(path, index=False)
    else:
        tab = pa.csv.WriteOptions(delimiter="\t" if ending == ".tsv" else ",")
        pa.csv.write_csv(table(X, **more), path, tab)
    return path


ENDINGS = [".npy", ".parquet", ".arrow", ".feather", ".csv", ".csv.gz", ".tsv"]
every_ending = pytest.mark.parametrize("ending", ENDINGS)


@pytest.fixture(name="X")
def numbers(rng):
    return rng.standard_normal((500, 5))


@pytest.fixture
def small_batches(monkeypatch):
    monkeypatch.setattr(file_rows, "BATCH_BYTES", 40 * 29)  # 29 rows of 5 doubles


class TestReading:
    @every_ending
    @pytest.mark.parametrize("n", [1, 7, 300])
    def test_the_laws(self, tmp_path, X, ending, n):
        path = write(tmp_path, ending, X[:n])
        rows = open_rows(path)
        assert isinstance(rows, FileRows)
        check_rows(rows, X[:n])
        check_rows(pickle.loads(pickle.dumps(rows)), X[:n])

    @pytest.mark.parametrize("dtype", [np.float64, np.float32, np.uint8, ">i4"])
    def test_npy_files_column_by_column(self, tmp_path, rng, dtype, small_batches):
        X = rng.integers(0, 9, (300, 5)).astype(dtype)
        np.save(tmp_path / "x.npy", np.asfortranarray(X))
        check_rows(open_rows(tmp_path / "x.npy"), X)
        rows, target = open_rows(tmp_path / "x.npy", target=3, columns=[4, 0])
        check_rows(rows, X[:, [4, 0]])
        assert_array_equal(target, X[:, 3])

    def test_npy_files_are_read_in_stretches(self, tmp_path, rng, monkeypatch):
        X = rng.standard_normal((3000, 100))
        np.save(tmp_path / "x.npy", X)
        rows, read = open_rows(tmp_path / "x.npy"), []
        fill = formats._fill

        def noted(file, offset, out):
            read.append(len(out))
            fill(file, offset, out)

        monkeypatch.setattr(formats, "_fill", noted)
        numbers = np.array([5, 6, 6, 20, 900, 901, 2999])
        assert_array_equal(rows.take(numbers), X[numbers])
        assert read == [16, 2, 1]  # with what lies close between

    @every_ending
    def test_the_laws_with_small_batches(self, tmp_path, X, ending, small_batches):
        check_rows(open_rows(write(tmp_path, ending, X)), X)

    @pytest.mark.parametrize("ending", [".npy", ".parquet", ".arrow", ".feather"])
    def test_float32_stays(self, tmp_path, X, ending):
        single = X.astype(np.float32)
        check_rows(open_rows(write(tmp_path, ending, single)), single)
        asked = open_rows(write(tmp_path, ending, X), dtype="float32")
        check_rows(asked, single)
        assert open_rows(write(tmp_path, ending, single), dtype="float64").dtype == np.float64

    @pytest.mark.parametrize("dtype", ["int16", "int64", "bool"])
    def test_other_numbers_become_float64(self, tmp_path, rng, dtype):
        X = rng.integers(0, 2, (40, 3)).astype(dtype)
        for ending in (".npy", ".parquet", ".feather", ".csv"):
            check_rows(open_rows(write(tmp_path, ending, X)), X)

    @pytest.mark.parametrize("dtype", ["uint8", "int8", "float16"])
    def test_bytes_and_half_precision_become_float32(self, tmp_path, rng, dtype):
        X = rng.integers(0, 100, (40, 3)).astype(dtype)
        for ending in (".npy", ".parquet", ".feather"):
            check_rows(open_rows(write(tmp_path, ending, X)), X.astype(np.float32))

    def test_columns_of_several_types(self, tmp_path):
        frame = pd.DataFrame({"i": [1, 2], "f": np.float32([0.5, 1.5]), "b": [True, False]})
        frame.to_parquet(tmp_path / "x.parquet")
        frame.to_csv(tmp_path / "x.csv", index=False)
        decimal = pa.array([1, 2], pa.decimal128(5, 2))
        pa.feather.write_feather(pa.table({"i": decimal}), tmp_path / "x.feather")
        for ending in (".parquet", ".csv"):
            check_rows(open_rows(tmp_path / f"x{ending}"), frame.to_numpy(dtype=float))
        check_rows(open_rows(tmp_path / "x.feather"), [[1.0], [2.0]])

    @pytest.mark.slow
    def test_whole_numbers_that_get_fractions_later(self, tmp_path):
        X = np.append(np.arange(200_000), 0.5)[:, None]
        np.savetxt(tmp_path / "x.csv", X, fmt="%g", header="a", comments="")
        assert os.path.getsize(tmp_path / "x.csv") > 2**20, "types are guessed from less"
        assert_array_equal(open_rows(tmp_path / "x.csv").collect(), X)
        X = np.column_stack((X, X))
        np.savetxt(tmp_path / "x.csv", X, fmt="%g", header="a,b", comments="", delimiter=",")
        _, y = open_rows(tmp_path / "x.csv", target="b")
        assert_array_equal(y, X[:, 1])

    @every_ending
    def test_only_what_is_needed_is_chosen(self, tmp_path, X, ending, small_batches):
        rows = open_rows(write(tmp_path, ending, X))
        numbers = np.array([3, 3, 40, 41, 42, 499])
        for chosen in (numbers, numbers[::-1], np.arange(100, 400)):
            some = rows.choose(chosen)
            check_rows(some, X[chosen])
            again = np.arange(len(chosen))[1::2]
            check_rows(some.choose(again), X[chosen[again]])
        assert rows.take([]).shape == (0, 5)
        with pytest.raises(IndexError, match="from 0 to 499; got 2 to 500"):
            rows.take([2, 500])

    def test_parquet_reads_only_the_row_groups_it_needs(self, tmp_path, X, monkeypatch):
        rows = open_rows(write(tmp_path, ".parquet", X))
        read = []
        original = pa.parquet.ParquetFile.iter_batches

        def noted(self, batch_size, row_groups, **options):
            read.extend(row_groups)
            return original(self, batch_size, row_groups=row_groups, **options)

        monkeypatch.setattr(pa.parquet.ParquetFile, "iter_batches", noted)
        assert_array_equal(rows.take([400, 2]), X[[400, 2]])
        assert read == [0, 400 // 37]

    @pytest.mark.slow
    @pytest.mark.parametrize("ending", [".npy", ".parquet", ".csv"])
    def test_parts_follow_each_other(self, tmp_path, X, ending, small_batches):
        for i, part in enumerate(np.array_split(X, 3)):
            write(tmp_path, ending, part).rename(tmp_path / f"part-{i}{ending}")
        (tmp_path / "_SUCCESS").touch()
        (tmp_path / ".part-0.crc").touch()
        parts = sorted(tmp_path.glob(f"part-*{ending}"))
        check_rows(open_rows(tmp_path), X)
        check_rows(open_rows([str(part) for part in parts]), X)
        check_rows(open_rows(parts[::-1][:2]), np.concatenate(np.array_split(X, 3)[:0:-1]))
        assert "and 2 more" in repr(open_rows(tmp_path))

    def test_parts_may_have_their_columns_in_another_order(self, tmp_path, X):
        for i, names in enumerate((["a", "b"], ["b", "a"])):
            table(X).select(names).to_pandas().to_parquet(tmp_path / f"{i}.parquet")
        check_rows(open_rows(tmp_path), np.concatenate((X[:, :2], X[:, :2])))

    def test_parts_of_several_number_types(self, tmp_path, rng):
        X = rng.integers(0, 9, (10, 2))
        np.save(tmp_path / "0.npy", X.astype(np.uint16))
        np.save(tmp_path / "1.npy", X.astype(np.float32))
        check_rows(open_rows(tmp_path), np.concatenate((X, X)).astype(float))


class TestColumns:
    @pytest.mark.slow
    @every_ending
    def test_by_name_or_number(self, tmp_path, X, ending):
        path = write(tmp_path, ending, X)
        named = ending != ".npy"
        rows = open_rows(path, columns=["d", "a"] if named else [3, 0])
        check_rows(rows, X[:, [3, 0]])
        assert rows.names == (["d", "a"] if named else None)
        check_rows(open_rows(path, drop=[1, "c" if named else 2]), X[:, [0, 3, 4]])
        rows, y = open_rows(path, target="e" if named else 4)
        check_rows(rows, X[:, :4])
        assert_array_equal(y, X[:, 4])
        rows, y = open_rows(path, target=4, columns=[0, 4], drop=1)
        check_rows(rows, X[:, :1])

    @pytest.mark.parametrize("ending", [".parquet", ".feather", ".csv"])
    def test_a_target_may_be_text(self, tmp_path, X, ending):
        labels = np.where(X[:, 0] > 0, "yes", "no")
        path = write(tmp_path, ending, X, label=labels)
        rows, y = open_rows(path, target="label")
        assert_array_equal(y, labels)
        model = KernelRidgeClassifier().fit(rows, y)
        assert_array_equal(model.predict(rows), KernelRidgeClassifier().fit(X, labels).predict(X))

    def test_class_numbers_stay_whole(self, tmp_path, X):
        path = write(tmp_path, ".csv", X, label=np.arange(500) % 3)
        assert open_rows(path, target="label")[1].dtype.kind == "i"

    @pytest.mark.slow
    def test_an_index_is_no_data(self, tmp_path, X):
        frame = pd.DataFrame(X, columns=NAMES, index=np.arange(500)[::-1])
        frame.to_parquet(tmp_path / "x.parquet")
        frame.to_csv(tmp_path / "x.csv")
        for path in (tmp_path / "x.parquet", tmp_path / "x.csv"):
            assert open_rows(path).names == NAMES
            check_rows(open_rows(path), X)
        path = tmp_path / "x.parquet"
        check_rows(open_rows(path, columns=["__index_level_0__"]), np.arange(500.0)[::-1, None])

    def test_the_first_line_of_a_csv(self, tmp_path):
        path = tmp_path / "x.csv"
        path.write_text("1.5,2\n3,4\n")
        assert open_rows(path).shape == (2, 2)
        assert open_rows(path).names is None
        assert open_rows(path, header=True).names == ["1.5", "2"]
        check_rows(open_rows(path, columns=[1]), [[2.0], [4.0]])
        path.write_text("0,1\n3,4\n")  # as pandas writes columns without names
        assert open_rows(path).names == ["0", "1"]
        check_rows(open_rows(path, header=False), [[0.0, 1.0], [3.0, 4.0]])
        path.write_bytes("\ufeffx,y\r\n3,4\r\n".encode())
        assert open_rows(path).names == ["x", "y"]

    def test_names_are_those_of_a_frame(self, tmp_path, X):
        path = write(tmp_path, ".parquet", X)
        frame = pd.DataFrame(X, columns=NAMES)
        for model in (KernelKMeans(3, random_state=0), Nystroem(n_components=9, random_state=0)):
            model.fit(path)
            assert list(model.feature_names_in_) == NAMES
            assert model.n_features_in_ == 5
            expected = model.transform(frame)
            assert_array_equal(model.transform(path), expected)
            assert_array_equal(model.transform(open_rows(path)), expected)
            other = tmp_path / "other.parquet"
            frame[NAMES[::-1]].to_parquet(other)
            with pytest.raises(ValueError, match="same order"):
                model.transform(other)
            with pytest.raises(ValueError, match=r"unseen at fit time[\s\S]*x"):
                model.transform(pd.DataFrame(X, columns=[*NAMES[:4], "x"]))
            with pytest.raises(ValueError, match="yet now missing"):
                model.transform(open_rows(path, drop="b"))
            with pytest.warns(UserWarning, match="fitted with feature names"):
                model.transform(X)
        np.save(tmp_path / "x.npy", X)
        model = KernelPCA(2).fit(tmp_path / "x.npy")
        assert not hasattr(model, "feature_names_in_")
        assert model.n_features_in_ == 5
        with pytest.raises(ValueError, match="5 features as input"):
            model.transform(open_rows(tmp_path / "x.npy", drop=0))

    def test_names_reach_the_output(self, tmp_path, X):
        path = write(tmp_path, ".csv", X)
        pca = KernelPCA(2).set_output(transform="pandas").fit(path)
        assert list(pca.transform(path).columns) == ["kernelpca0", "kernelpca1"]


class TestLearning:
    """Learners and approximations on files give exactly what they give on arrays.

    An exact matrix of rows in memory is computed in squares, half of whose entries are mirrored; of
    rows in files, in tiles of another shape, which may round differently.
    """

    X = example_rows(700, 5)
    y = np.arange(700) % 3 + 0.1 * X[:, 0]
    models = (
        KernelKMeans(3, random_state=0),
        KernelKMeans(3, kernel=Nystroem(RBF(0.1), 40), random_state=0),
        KernelKMeans(3, kernel=MEKA(RBF(0.1), 40, n_blocks=3), random_state=0),
        KernelRidge(0.1, kernel=RBF("median"), random_state=0),
        KernelRidge(0.1, kernel=Exact(RBF(0.1)), solver="iterative", random_state=0),
        KernelRidge(0.1, kernel=RandomFourier(RBF(0.1), 40), random_state=0),
        KernelPCA(3, kernel=Nystroem("laplacian", 40, landmarks="rpcholesky"), random_state=0),
        Nystroem(RBF(0.1), 40, random_state=0),
        MEKA(RBF(0.1), 40, n_blocks=3, random_state=0),
    )

    @pytest.mark.slow
    @pytest.mark.parametrize("model", models)
    @pytest.mark.parametrize("ending", [".npy", ".parquet"])
    def test_as_on_the_array(self, tmp_path, model, ending, monkeypatch, small_batches):
        path = write(tmp_path, ending, self.X)
        numbers = np.arange(50, 90)
        expected = outputs(clone(model).fit(self.X, self.y), self.X[numbers])
        assert isinstance(as_rows(path), ArrayRows), "small files are read once"
        fits = [clone(model).fit(path, self.y)]
        monkeypatch.setattr(FileRows, "persist", lambda self: self)
        for threads in (1, 3):
            with config_context(n_threads=threads):
                fits.append(clone(model).fit(str(path), self.y))
        rounded = getattr(fits[0], "points_", None) is not None  # with an exact matrix
        for i, fitted in enumerate(fits):
            for name, values in outputs(fitted, as_rows(path).choose(numbers)).items():
                if rounded and i > 0:
                    assert_allclose(values, expected[name], rtol=1e-10, err_msg=name)
                else:
                    assert_array_equal(values, expected[name], err_msg=name)

    def test_errors_of_an_approximation(self, tmp_path):
        path = write(tmp_path, ".feather", self.X)
        approximation = Nystroem(RBF(0.1), 40, random_state=0).fit(path)
        for norm in ("fro", "trace"):
            assert relative_error(approximation, path, norm=norm) == relative_error(
                Nystroem(RBF(0.1), 40, random_state=0).fit(self.X), self.X, norm=norm
            )
        assert_array_equal(RBF(0.1)(path), RBF(0.1)(self.X))

    def test_a_function_of_rows(self, tmp_path):
        path = write(tmp_path, ".csv", self.X)
        kernel = FunctionKernel(lambda X, Y: X @ Y.T)
        fitted = KernelRidge(kernel=kernel).fit(path, self.y)
        expected = KernelRidge(kernel=kernel).fit(self.X, self.y)
        assert_allclose(fitted.predict(path), expected.predict(self.X), rtol=1e-10)
        letters = FunctionKernel(lambda a, b: float(a[0] == b[0]), pairwise=True)
        assert letters(["ab.csv", "cd.csv"], ["ax.csv"]).tolist() == [[1.0], [0.0]]

    @pytest.mark.parametrize("budget", [600, 5_000, 10**6])
    def test_blocks_keep_the_budget(self, tmp_path, budget):
        path = write(tmp_path, ".parquet", self.X)
        largest = []
        with config_context(memory_budget=budget, n_threads=2):
            rows = open_rows(path)
            assert (rows.persist() is rows) == (self.X.nbytes > budget // 2)
            total = rows.sum(lambda x: largest.append(len(x)) or x.sum(axis=0))
        np.testing.assert_allclose(total, self.X.sum(axis=0))
        assert 2 * 4 * 40 * max(largest) <= max(budget, 2 * 4 * 40)
        with config_context(memory_budget=100), pytest.raises(MemoryBudgetError, match="one row"):
            rows.sum(np.sum)

    def test_results_depend_on_neither_batches_nor_threads(self, tmp_path, rng, monkeypatch):
        X = rng.standard_normal((20_000, 5))
        pa.parquet.write_table(table(X), tmp_path / "x.parquet", row_group_size=3001)
        rows = open_rows(tmp_path / "x.parquet")
        expected = ArrayRows(X).sum(lambda x: x.T @ x)
        for size in (1000, 10**5, 10**7):
            monkeypatch.setattr(file_rows, "BATCH_BYTES", size)
            for threads in (1, 2, 5):
                with config_context(n_threads=threads):
                    assert_array_equal(rows.sum(lambda x: x.T @ x), expected)

    def test_few_batches_are_read_ahead(self, tmp_path, rng, monkeypatch):
        X = rng.standard_normal((20_000, 5))
        np.save(tmp_path / "x.npy", X)
        rows = open_rows(tmp_path / "x.npy")
        monkeypatch.setattr(gramian.rows.arrays, "CACHE_BYTES", 1)
        monkeypatch.setattr(file_rows, "BATCH_BYTES", 1000)
        read, done, ahead = [], [], []
        original = FileRows._pieces

        def noted(self, numbers):
            for piece in original(self, numbers):
                read.append(len(piece))
                yield piece

        monkeypatch.setattr(FileRows, "_pieces", noted)

        def work(x):
            done.append(len(x))
            ahead.append(sum(read) - sum(done))
            return x.sum()

        with config_context(n_threads=2):
            rows.sum(work)
        assert sum(done) == 20_000
        assert max(ahead) <= 6 * 256

    @pytest.mark.slow
    @pytest.mark.parametrize("kind", ["memmap", "npy", "parquet"])
    def test_a_fit_never_holds_all_rows(self, tmp_path, rng, kind):
        X = rng.standard_normal((20_000, 100))
        path = tmp_path / f"x.{kind}"
        if kind == "parquet":
            columns = {str(i): X[:, i] for i in range(100)}
            pa.parquet.write_table(pa.table(columns), path, row_group_size=400)
        else:
            path = tmp_path / "x.npy"
            np.save(path, X)
        data = np.load(path, mmap_mode="r") if kind == "memmap" else path
        kernel = Nystroem(RBF(0.005), 10, landmarks="uniform")
        with config_context(memory_budget="4MB", n_threads=2):
            assert isinstance(as_rows(data), ArrayRows if kind == "memmap" else FileRows)
            for learner in (
                KernelRidge(1.0, kernel),
                KernelKMeans(3, kernel=kernel, init=[0, 1, 2], max_iter=4, tol=0.1),
            ):
                tracemalloc.start()
                learner.fit(data, X[:, 0])
                peak = tracemalloc.get_traced_memory()[1]
                tracemalloc.stop()
                assert peak < X.nbytes / 2, learner


class TestErrors:
    @pytest.mark.slow
    @every_ending
    def test_values_that_are_no_numbers(self, tmp_path, X, ending, small_batches):
        for bad in (np.nan, np.inf):
            X[432, 2] = bad
            path = write(tmp_path, ending, X)
            column = "2" if ending == ".npy" else "'c'"
            with pytest.raises(ValueError, match=rf"rows{ending}.* row 432, column {column}"):
                open_rows(path).collect()
            with pytest.raises(ValueError, match=r"row 432"):
                open_rows(path).take([1, 432, 3])
            with pytest.raises(ValueError, match=r"row 432"):
                open_rows(path).choose(np.arange(430, 440)).collect()
            with pytest.raises(ValueError, match=r"row 432"):
                KernelKMeans(2).fit(path)
            assert_array_equal(open_rows(path).take([431, 5]), X[[431, 5]])

    def test_missing_values(self, tmp_path, X):
        frame = pd.DataFrame(X, columns=NAMES)
        frame["c"] = pd.array([None if i == 77 else i for i in range(500)], dtype="Int64")
        frame.to_parquet(tmp_path / "x.parquet", row_group_size=50)
        frame.to_feather(tmp_path / "x.feather")
        frame.to_csv(tmp_path / "x.csv", index=False)
        for ending in (".parquet", ".feather", ".csv"):
            path = tmp_path / f"x{ending}"
            with pytest.raises(ValueError, match=r"missing value.* row 77, column 'c'"):
                KernelPCA(2).fit(path)
            with pytest.raises(OSError, match=rf"x{ending}.*column 'c' has no value in row 77"):
                open_rows(path, target="c")

    @pytest.mark.parametrize("kind", [pa.bool_(), pa.null(), pa.float32(), pa.decimal128(5, 2)])
    def test_missing_values_of_every_type(self, tmp_path, kind):
        values = pa.array([None, None], kind)
        pa.feather.write_feather(pa.table({"a": [1, 2], "b": values}), tmp_path / "x.feather")
        with pytest.raises(ValueError, match=r"missing value.* row 0, column 'b'"):
            open_rows(tmp_path / "x.feather").collect()

    def test_the_row_is_counted_in_its_part(self, tmp_path, X):
        np.save(tmp_path / "0.npy", X)
        X[3, 1] = np.nan
        np.save(tmp_path / "1.npy", X)
        with pytest.raises(ValueError, match=r"1\.npy.* row 3, column 1"):
            open_rows(tmp_path).collect()

    @pytest.mark.parametrize("ending", [".parquet", ".feather", ".csv"])
    def test_columns_of_text(self, tmp_path, X, ending):
        path = write(tmp_path, ending, X, city=["Ulm"] * 500, day=["x", "y"] * 250)
        with pytest.raises(ValueError, match=r"must be numeric.*'city', 'day'.*drop="):
            KernelRidge().fit(path, X[:, 0])
        check_rows(open_rows(path, drop=["city", "day"]), X)

    @pytest.mark.slow
    def test_text_that_comes_late(self, tmp_path):
        lines = ["a"] + ["1"] * 700_000 + ["two"]
        (tmp_path / "x.csv").write_text("\n".join(lines))
        with pytest.raises(ValueError, match=r"x\.csv' has .*text.*'two' in line 700002"):
            open_rows(tmp_path / "x.csv")

    @pytest.mark.parametrize("ending", [".npy", ".parquet", ".arrow", ".feather"])
    def test_a_truncated_file(self, tmp_path, X, ending):
        path = write(tmp_path, ending, X)
        rows = open_rows(path)
        model = KernelKMeans(2, random_state=0).fit(X)
        before = dict(vars(model))
        path.write_bytes(path.read_bytes()[: os.path.getsize(path) // 2])
        with pytest.raises(OSError, match=rf"rows{ending}' could not be read"):
            open_rows(path)
        with pytest.raises(OSError, match=rf"rows{ending}' could not be read: it has changed"):
            model.fit(rows)
        assert vars(model) == before or all(vars(model)[k] is v for k, v in before.items())
        path.unlink()
        with pytest.raises(FileNotFoundError, match=f"no file .*rows{ending}"):
            rows.take([0])

    @every_ending
    def test_a_file_that_is_overwritten_in_a_pass(self, tmp_path, X, ending, small_batches):
        path = write(tmp_path, ending, X)
        rows, seen = open_rows(path), []

        def overwrite(block):
            seen.append(len(block))
            if len(seen) == 3:
                with path.open("r+b") as file:
                    file.write(path.read_bytes()[:10])
                os.utime(path, ns=(0, 0))
            return block.sum()

        with (
            gramian.config_context(n_threads=1, memory_budget=20_000),
            pytest.raises(OSError, match="it has changed since it was opened"),
        ):
            rows.sum(overwrite)
        assert sum(seen) == len(X)

    @pytest.mark.parametrize("ending", [".npy", ".parquet", ".arrow", ".feather"])
    def test_a_file_that_is_cut_in_a_pass(self, tmp_path, X, ending, small_batches):
        """A reader that maps the file into memory would end the process."""
        path = write(tmp_path, ending, X)
        rows = open_rows(path)

        def cut(block):
            os.truncate(path, 100)
            return block.sum()

        with (
            gramian.config_context(n_threads=1, memory_budget=20_000),
            pytest.raises(OSError, match=f"rows{ending}' could not be read"),
        ):
            rows.sum(cut)

    def test_a_link_that_leads_nowhere(self, tmp_path):
        for target in ("loop.csv", "nothing.csv"):
            link = tmp_path / "loop.csv"
            link.unlink(missing_ok=True)
            link.symlink_to(target)
            for read in (open_rows, open_table, lambda link: check_name(str(link))):
                with pytest.raises(
                    FileNotFoundError, match=f"is a link to '{target}', which leads to"
                ):
                    read(link)

    def test_an_svmlight_column_beyond_32_bits(self, tmp_path):
        (tmp_path / "huge.svm").write_text("1 4000000000:2\n0 1:1\n")
        with pytest.raises(OSError, match=r"as svmlight: it has a column number above 2147483647"):
            open_table(tmp_path / "huge.svm")

    @pytest.mark.parametrize("compression", ["uncompressed", "lz4"])
    def test_a_record_batch_that_does_not_fit(self, tmp_path, rng, compression):
        X, path = rng.standard_normal((60_000, 20)), tmp_path / "x.feather"

        def written(chunk):
            columns = pa.table({str(i): X[:, i] for i in range(20)})
            pa.feather.write_feather(columns, path, compression=compression, chunksize=chunk)
            return open_rows(path)

        with gramian.config_context(memory_budget="20MB"):
            with pytest.raises(MemoryBudgetError, match="at most 7000 rows in a batch"):
                written(60_000).sum(lambda x: x.sum())
            found = written(7000).sum(lambda x: x.sum(axis=0))
        assert_allclose(found, X.sum(axis=0))

    @pytest.mark.slow
    def test_a_row_group_that_does_not_fit(self, tmp_path, rng):
        """Readers hold a page of each column at once, however few rows they are asked for."""
        X = rng.standard_normal((4000, 600))
        columns = {str(i): column for i, column in enumerate(X.T)}
        pa.parquet.write_table(pa.table(columns), tmp_path / "rows.parquet")
        rows = open_rows(tmp_path / "rows.parquet")
        with gramian.config_context(memory_budget="50MB"):
            with pytest.raises(
                gramian.MemoryBudgetError,
                match=r"rows.parquet' takes \d+.* MB, more than a quarter of .* 50 MB. Its largest "
                r"row group has 4000 rows; write it with row groups of at most (\d+) rows",
            ) as refused:
                KernelKMeans(2, kernel=Nystroem(RBF(0.1), 10)).fit(rows)
            size = int(str(refused.value).split("row_group_size=")[1].split(" ")[0])
            pa.parquet.write_table(
                pa.table(columns), tmp_path / "small.parquet", row_group_size=size
            )
            small = open_rows(tmp_path / "small.parquet")
            before = pa.total_allocated_bytes()
            with gramian.config_context(n_threads=1):
                sizes = small._run(lambda _: pa.total_allocated_bytes() - before, (), Walk())
                peak = max(sizes)
            assert peak <= small._reading_bytes() <= 25e6
        with gramian.config_context(memory_budget="1GB"):
            assert_array_equal(rows.take([5, 3999]), X[[5, 3999]])

    @pytest.mark.parametrize("threads", [1, 3])
    def test_a_file_that_ends_in_the_middle_of_a_fit(self, tmp_path, X, threads, small_batches):
        path = write(tmp_path, ".parquet", X)
        rows = open_rows(path)
        state, data = path.stat(), bytearray(path.read_bytes())
        data[len(data) // 2 : len(data) // 2 + 2000] = bytes(2000)
        path.write_bytes(data)
        os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns))
        model = KernelKMeans(2, random_state=0).fit(X)
        before = dict(vars(model))
        with (
            config_context(n_threads=threads),
            pytest.raises(OSError, match=r"rows\.parquet' could not be read"),
        ):
            model.fit(rows)
        assert all(vars(model)[k] is v for k, v in before.items())

    def test_a_csv_that_lost_lines(self, tmp_path, X):
        path = write(tmp_path, ".csv", X)
        rows = open_rows(path)
        rows.files[0].n_rows = 501  # as if one more had been counted
        rows = FileRows(rows.files, NAMES, float)
        with pytest.raises(OSError, match="it ends after 500 of 501 requested rows"):
            rows.collect()

    def test_files_that_are_not_there_or_not_known(self, tmp_path, X):
        with pytest.raises(FileNotFoundError, match=r"no file or folder .*none\.parquet"):
            KernelKMeans(2).fit(tmp_path / "none.parquet")
        with pytest.raises(FileNotFoundError, match=r"none\.csv"):
            KernelKMeans(2).fit("none.csv")
        (tmp_path / "x.xlsx").touch()
        with pytest.raises(ValueError, match=r"x\.xlsx' is not one of the known formats.*\.npy"):
            as_rows(tmp_path / "x.xlsx")
        with pytest.raises(ValueError, match="has no files"):
            open_rows(tmp_path)
        with pytest.raises(ValueError, match="empty list"):
            open_rows([])
        with pytest.raises(ValueError, match="Expected 2D array, got scalar"):
            as_rows("no file")
        write(tmp_path, ".npy", X)
        write(tmp_path, ".csv", X)
        with pytest.raises(ValueError, match=r"several formats \(CSV, NumPy\)"):
            open_rows(tmp_path)
        for name in ("bad.parquet", "bad.arrow", "bad.npy", "bad.csv.gz"):
            (tmp_path / name).write_bytes(b"no such thing")
            with pytest.raises(OSError, match=f"{name}' could not be read"):
                open_rows(tmp_path / name)
        (tmp_path / "bad.csv").touch()
        with pytest.raises(OSError, match=r"bad\.csv' could not be read: it has no lines"):
            open_rows(tmp_path / "bad.csv")

    @pytest.mark.parametrize("data", [np.zeros(3), np.zeros((2, 2, 2)), np.zeros((2, 2), complex)])
    def test_arrays_that_are_no_rows(self, tmp_path, data):
        np.save(tmp_path / "x.npy", data)
        with pytest.raises(OSError, match=r"two dimensions.*it has shape"):
            open_rows(tmp_path / "x.npy")

    def test_too_few_rows(self, tmp_path, X):
        path = write(tmp_path, ".csv", X[:1])
        with pytest.raises(ValueError, match=r"1 sample\(s\).*minimum of 2 .*by KernelPCA"):
            KernelPCA(1).fit(path)
        path.write_text("a,b\n")
        with pytest.raises(ValueError, match=r"rows\.csv' has no rows"):
            open_rows(path)

    @pytest.mark.slow
    def test_options_that_fit_no_column(self, tmp_path, X):
        path = write(tmp_path, ".csv", X)
        for option in ("target", "columns", "drop"):
            for given in ("z", 5, -1):
                with pytest.raises(ValueError, match=f"{option} must name .*got {given!r}.*'a', "):
                    open_rows(path, **{option: given})
        with pytest.raises(ValueError, match=r"No column .* is left"):
            open_rows(path, drop=NAMES)
        with pytest.raises(ValueError, match=r"only once.*'a'"):
            open_rows(path, columns=["a", 0])
        with pytest.raises(ValueError, match="'float32' or 'float64'; got 'int8'"):
            open_rows(path, dtype="int8")
        path.write_text("a,b,a\n1,2,3\n")
        with pytest.raises(ValueError, match=r"only once.*'a'"):
            open_rows(path)
        check_rows(open_rows(path, columns="b"), [[2.0]])

    def test_parts_that_differ(self, tmp_path):
        (tmp_path / "0.csv").write_text("a,b\n1,2\n")
        (tmp_path / "1.csv").write_text("a,c\n1,2\n")
        with pytest.raises(ValueError, match=r"1\.csv' must have the columns of .*lacks 'b'"):
            open_rows(tmp_path)
        check_rows(open_rows(tmp_path, columns="a"), [[1.0], [1.0]])
        (tmp_path / "1.csv").write_text("3,4\n1,2\n")
        with pytest.raises(ValueError, match=r"1\.csv' must have the columns of"):
            open_rows(tmp_path)


def outputs(fitted, new):
    names = ("predict", "transform")
    return {name: getattr(fitted, name)(new) for name in names if hasattr(fitted, name)}
