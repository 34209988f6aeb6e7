"""Tables of arrays and archives, transformers in pipelines, models that remember."""

import sys
import zipfile

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.datasets import dump_svmlight_file
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import gramian
from gramian.tables import ArrayTable, Preparation, TableModel, open_table, plan

RNG = np.random.default_rng(0)
X = RNG.standard_normal((300, 5))
FRAME = pd.DataFrame(X, columns=list("abcde")).assign(kind=np.array(["u", "v", "w"])[:300 // 100]
                                                      .repeat(100))  # fmt: skip


@pytest.mark.parametrize("how", ["median", "mean", "most_frequent"])
@pytest.mark.parametrize("scale", ["standard", "minmax"])
def test_the_preparation_does_what_those_of_scikit_learn_do(how, scale):
    frame = FRAME.round(1).mask(RNG.random(FRAME.shape) < 0.1)
    if scale == "minmax":
        from sklearn.preprocessing import MinMaxScaler as Scaler
    else:
        Scaler = StandardScaler
    expected = make_column_transformer(
        (make_pipeline(SimpleImputer(strategy=how), Scaler()), list("abcde")),
        (make_pipeline(SimpleImputer(strategy="most_frequent"), OneHotEncoder()), ["kind"]),
        sparse_threshold=0,
    ).fit_transform(frame.astype({"kind": object}).where(frame.notna(), np.nan))
    prepare = Preparation(list("abcde"), ["kind"], impute=how.replace("_", "-"), scale=scale)
    np.testing.assert_allclose(prepare.fit_transform(frame), expected, atol=1e-12)


def test_in_a_pipeline():
    model = make_pipeline(Preparation(["a", "b"], ["kind"]), gramian.KernelRidge(0.1))
    model = clone(model).set_params(preparation__scale="minmax").fit(FRAME[:200], X[:200, 0])
    assert model[0].get_feature_names_out().tolist() == ["a", "b", "kind=u", "kind=v"]
    assert model.score(FRAME[:200], X[:200, 0]) > 0.9


def test_a_column_is_not_what_it_is_said_to_be():
    with pytest.raises(ValueError, match="'a' of the data frame has no dates"):
        Preparation(dates=["a"]).fit(FRAME)
    with pytest.raises(ValueError, match="no column 'f'"):
        Preparation(["f"]).fit(FRAME)
    with pytest.raises(ValueError, match="scale"):
        Preparation(["a"], scale="large").fit(FRAME)


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
@pytest.mark.parametrize("order", ["C", "F"])
def test_archives_are_read_block_by_block(tmp_path, save, order):
    save(tmp_path / "x.npz", X=np.asarray(X, order=order), y=X[:, 0])
    table = open_table(tmp_path / "x.npz")
    np.testing.assert_array_equal(table.target, X[:, 0])
    with gramian.config_context(memory_budget=20_000):
        rows = table.rows(table.names)
        assert not isinstance(rows.persist(), gramian.ArrayRows)
        np.testing.assert_allclose(rows.sum(lambda block: block.T @ block), X.T @ X)
        np.testing.assert_array_equal(rows.take([200, 3]), X[[200, 3]])
    np.testing.assert_array_equal(table.column("2"), X[:, 2])


def test_archives_that_are_cut_off(tmp_path):
    np.savez(tmp_path / "x.npz", X=X)
    with zipfile.ZipFile(tmp_path / "x.npz") as archive:
        data = archive.read("X.npy")
    with zipfile.ZipFile(tmp_path / "y.npz", "w") as archive:
        archive.writestr("X.npy", data[:-8])
    with pytest.raises(OSError, match=r"y\.npz.*takes .* bytes"):
        open_table(tmp_path / "y.npz")


@pytest.mark.parametrize("first", [0, 1])
def test_svmlight_files_are_read_block_by_block(tmp_path, first, monkeypatch):
    monkeypatch.setattr("gramian.tables.archives.LINES", 64)
    sparse = np.where(X > 0.5, X, 0.0)
    dump_svmlight_file(sparse, X[:, 0], str(tmp_path / "x.svm"), zero_based=first == 0)
    inside = open_table(tmp_path / "x.svm")
    with gramian.config_context(memory_budget=20_000):
        table = open_table(tmp_path / "x.svm")
        assert table.sparse and not isinstance(table, ArrayTable)
        rows = table.rows(table.names)
        np.testing.assert_allclose(rows.sum(lambda block: block.T @ block), sparse.T @ sparse)
        np.testing.assert_allclose(rows.take([299, 0, 100]), sparse[[299, 0, 100]])
    assert table.names == inside.names == [str(i + first) for i in range(5)]
    np.testing.assert_allclose(table.target, inside.target)
    np.testing.assert_allclose(table.column(str(2 + first)), sparse[:, 2])


def test_models_fill_gaps(tmp_path):
    frame = FRAME.mask(RNG.random(FRAME.shape) < 0.05)
    prepare = Preparation(list("abcde"), ["kind"], impute="median").fit(frame)
    model = gramian.KernelKMeans(3, random_state=0).fit(prepare.transform(frame))
    gramian.save(TableModel(model, prepare), tmp_path / "m")
    frame[:1].assign(a=None, kind=None).to_csv(tmp_path / "new.csv", index=False)
    loaded = gramian.load(tmp_path / "m")
    filled = frame[:1].assign(a=frame["a"].median(), kind=frame["kind"].mode()[0])
    np.testing.assert_allclose(loaded.rows(tmp_path / "new.csv").collect(),
                               prepare.transform(filled))  # fmt: skip


def test_large_tables_are_single(monkeypatch):
    monkeypatch.setattr("gramian.tables.planning.LARGE", 100)
    planned = plan(open_table("iris"))
    assert planned.preparation.fit_transform(planned.table).dtype == np.float32


SHEET = """<?xml version="1.0"?><worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/
2006/main"><sheetData>{}</sheetData></worksheet>""".replace("\n", "")
TYPES = """<?xml version="1.0"?><Types
 xmlns="http://schemas.openxmlformats.org/package/2006/content-types"><Default Extension="rels"
 ContentType="application/vnd.openxmlformats-package.relationships+xml"/><Override
 PartName="/xl/workbook.xml"
 ContentType="application/vnd.openxmlformats-officedocument.spreadsheetml.sheet.main+xml"/><Override
 PartName="/xl/worksheets/sheet1.xml"
 ContentType="application/vnd.openxmlformats-officedocument.spreadsheetml.worksheet+xml"/></Types>"""
OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
RELATIONS = """<?xml version="1.0"?><Relationships
 xmlns="http://schemas.openxmlformats.org/package/2006/relationships"><Relationship Id="rId1"
 Type="{}/{}" Target="{}"/></Relationships>"""
BOOK = f"""<?xml version="1.0"?><workbook
 xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main" xmlns:r="{OFFICE}"><sheets><sheet
 name="S" sheetId="1" r:id="rId1"/></sheets></workbook>"""


def write_excel(path, rows):
    def cell(value):
        if isinstance(value, str):
            return f'<c t="inlineStr"><is><t>{value}</t></is></c>'
        return f"<c><v>{value}</v></c>"

    text = "".join(f"<row>{''.join(map(cell, row))}</row>" for row in rows)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("[Content_Types].xml", TYPES)
        archive.writestr(
            "_rels/.rels", RELATIONS.format(OFFICE, "officeDocument", "xl/workbook.xml")
        )
        archive.writestr("xl/workbook.xml", BOOK)
        archive.writestr(
            "xl/_rels/workbook.xml.rels",
            RELATIONS.format(OFFICE, "worksheet", "worksheets/sheet1.xml"),
        )
        archive.writestr("xl/worksheets/sheet1.xml", SHEET.format(text))


def test_excel(tmp_path):
    pytest.importorskip("python_calamine")
    rows = [["a", "kind"], [1.5, "u"], [2.5, "v"], ["NA", "u"], [4, "v"]]
    write_excel(tmp_path / "t.xlsx", rows)
    table = open_table(tmp_path / "t.xlsx")
    with pytest.raises(ValueError, match=r"'a' 1 \(line 4\)"):
        Preparation().fit(table)
    planned = plan(table, impute="median", scale="none")
    X = planned.preparation.fit_transform(table)
    assert X.tolist() == [[1.5, 1, 0], [2.5, 0, 1], [2.5, 1, 0], [4, 0, 1]]


def test_excel_without_its_reader(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "python_calamine", None)
    write_excel(tmp_path / "t.xlsx", [["a"], [1]])
    with pytest.raises(ImportError, match=r'save the sheet as CSV.*pip install "gramian\[excel\]"'):
        open_table(tmp_path / "t.xlsx")


def test_a_view_teaches_what_its_rows_hold(tmp_path):
    """Entries, fills and scale come from the rows of the view; other rows are prepared alike."""
    lines = ["a,c", *(f"{i},{'uv'[i % 2]}" for i in range(9)), "1000,rare", ",rare"]
    (tmp_path / "t.csv").write_text("\n".join(lines))
    table = open_table(tmp_path / "t.csv")
    prepare = Preparation(["a"], ["c"], impute="median").fit(table.choose(np.arange(9)))
    assert prepare.columns == ["a", "c=u", "c=v"]
    X = prepare.transform(table)
    scale = np.arange(9).std()
    np.testing.assert_allclose(X[:, 0], (np.array([*range(9), 1000, 4]) - 4) / scale)
    assert X[9:, 1:].tolist() == [[0, 0], [0, 0]]
    prepare.fit(table.choose(np.array([0, 10, 10])))
    assert prepare.columns == ["a", "c=rare", "c=u"] and np.isfinite(prepare.transform(table)).all()
    prepare.fit(table.choose(np.array([10])))  # no value to learn a fill from
    assert np.isfinite(prepare.transform(table)).all()


def test_a_model_of_an_older_version(tmp_path, monkeypatch):
    preparation = Preparation(["2"]).fit("iris")
    model = TableModel(gramian.RBF(1.0), preparation)
    gramian.save(model, tmp_path / "new")
    assert gramian.load(tmp_path / "new").preparation.columns == ["2"]
    vars(preparation).clear()  # as they were before: other names for other things
    vars(preparation).update(scale=None, target=None, named=True, width=2, names=["2"], shift=None)
    monkeypatch.setattr(Preparation, "__getstate__", lambda self: dict(vars(self)))
    gramian.save(model, tmp_path / "old")
    with pytest.raises(gramian.ModelFileError, match=r"older version .* Fit the model again") as no:
        gramian.load(tmp_path / "old")
    assert "damaged" not in str(no.value)
