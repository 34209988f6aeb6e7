"""A corpus of tables as people have them, each with what must happen to it."""

import io
import re
import zipfile

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
from table_examples import column, lines

from gramian.tables import Preparation, open_table, plan, preparation_code

NAN = float("nan")
LETTERS = "abcdefghijklmnopqrstuvwxyz"


TEXTS = ["red", "green", "blue"]

# What one column beside a number is used as, and what is said about it.
ROLES = {
    "words": (column("c", TEXTS * 10), "category", "'c' encoded as categories"),
    "booleans": (column("c", ["true", "False"] * 15), "category", "'c' encoded as categories"),
    "yes-no": (column("c", ["yes", "no"] * 15), "category", "encoded"),
    "quoted-lines": (column("c", ['"two\nlines"', "one"] * 10), "category", "encoded"),
    "names": (column("c", [f"n{i:03}" for i in range(30)]), "", "'c': it is an identifier"),
    "numbered": (column("id", [7 * i % 31 for i in range(30)]), "", "'id': it is an identifier"),
    **{
        name: (column(name, range(1000, 1030)), "", f"'{name}': it is an identifier")
        for name in ("ID", "Nr", "No", "Index", "Kunden-Nr", "Customer ID", "orderNo", "userID")
    },
    "customer_id": (column("customer_id", range(100, 130)), "", "is an identifier"),
    "years": (column("year", range(1990, 2020)), "number", None),
    "repeated-ids": (column("id", [1, 2, 3] * 10), "number", None),
    "constant-number": (column("c", [7] * 20), "", "'c': it has the same value in every row"),
    "constant-text": (column("c", ["x"] * 20), "", "has the same value in every row"),
    "empty": (column("c", [""] * 20), "", "'c': it is empty"),
    "sentences": (
        column("c", [f"this is sentence number {i} of them" for i in range(20)]),
        "", "'c': it is free text",
    ),
    "many-values": (
        column("c", [a + b for a in LETTERS for b in "xyz"] * 2), "", "text with 78 distinct values"
    ),
    "days": (column("c", [f"2024-01-{i + 1:02}" for i in range(28)]), "", "'c': it holds dates"),
    "german-days": (column("c", [f"{i + 1}.02.2024" for i in range(28)]), "", "holds dates"),
    "american-days": (column("c", [f"02/{i + 1:02}/2024" for i in range(28)]), "", "holds dates"),
    "moments": (column("c", [f"2024-01-05 {i % 24:02}:30:00" for i in range(28)]), "", "dates"),
    "moments-z": (column("c", [f"2024-01-05T{i % 24:02}:30:00Z" for i in range(28)]), "", "dates"),
    "zip-codes": (column("c", ["01234", "99999", "12345"] * 10), "number", None),
}  # fmt: skip


@pytest.mark.parametrize("name", ROLES)
def test_roles(tmp_path, name):
    data, use, said = ROLES[name]
    (tmp_path / "t.csv").write_bytes(data)
    table = open_table(tmp_path / "t.csv")
    planned = plan(table)
    found = planned.preparation
    other = table.names[1]
    uses = {"number": found.numbers, "category": found.categories, "date": found.dates}
    assert [kind for kind, names in uses.items() if other in names] == ([use] if use else [])
    notes = " ".join(planned.notes)
    assert said is None or said in notes
    assert bool(notes) == (said is not None)
    assert np.isfinite(found.fit_transform(planned.table)).all()


def test_first_columns_that_number_the_rows(tmp_path):
    text = ["n,x,y", *(f"{i + 1},{i * i % 7},{i * i % 5}" for i in range(30))]
    (tmp_path / "t.csv").write_bytes(lines(*text))
    planned = plan(open_table(tmp_path / "t.csv"))
    assert planned.preparation.numbers == ["x", "y"] and "numbers the rows" in planned.notes[0]
    (tmp_path / "u.csv").write_bytes(lines("n,y", *(f"{i},{i * i}" for i in range(30))))
    assert plan(open_table(tmp_path / "u.csv"), target="y").preparation.numbers == ["n"]


@pytest.mark.parametrize("name", ["names", "days", "many-values", "constant-number", "numbered"])
def test_columns_are_used_when_asked(tmp_path, name):
    (tmp_path / "t.csv").write_bytes(ROLES[name][0])
    table = open_table(tmp_path / "t.csv")
    planned = plan(table, include=[table.names[1]])
    X = planned.preparation.fit_transform(table)
    assert len(planned.preparation.names) == 2 and X.shape[1] == len(planned.preparation.columns)
    assert X.shape[1] == {"names": 31, "days": 8, "many-values": 79}.get(name, 2)


# Cells that stand for no value.
MARKERS = ["", "NA", "N/A", "?", "null", "-", "nan", "NaN", "None", "#N/A", " NA", "n/a", "NULL"]


@pytest.mark.parametrize("marker", MARKERS)
def test_missing(tmp_path, marker):
    """Refused with counts and lines; filled or left out when asked."""
    text = ["a,kind,y", "1,u,1", f"{marker},u,2", "3,v,3", "5,,4", f"{marker},v,5", "3,u,"]
    path = tmp_path / "t.csv"
    path.write_bytes(lines(*text))
    table = open_table(path)
    planned = plan(table, target="y")
    assert planned.table.n_rows == 5 and planned.row_notes == ["left out 1 row without 'y'"]
    said = r"'a' 2 \(lines 3, 6\); 'kind' 1 \(line 5\)\. Fill.*--impute median.*--drop-missing"
    with pytest.raises(ValueError, match=said):
        planned.preparation.fit(planned.table)
    planned = plan(table, target="y", impute="median", scale="none")
    X = planned.preparation.fit_transform(planned.table)
    assert X.tolist() == [[1, 1, 0], [3, 1, 0], [3, 0, 1], [5, 1, 0], [3, 0, 1]]
    planned = plan(table, target="y", drop_missing=True, scale="none")
    X = planned.preparation.fit_transform(planned.table)
    assert X.tolist() == [[1, 1, 0], [3, 0, 1]]
    assert planned.row_notes[1] == "left out 3 rows with missing values"
    assert planned.table.numbers.tolist() == [0, 2]


@pytest.mark.parametrize(("how", "fill"), [("mean", 3.25), ("median", 2.5), ("most-frequent", 2)])
def test_imputation(tmp_path, how, fill):
    (tmp_path / "t.csv").write_bytes(lines("a,b", "2,1", "2,2", "3,3", "6,1", ",2"))
    X = Preparation(["a", "b"], impute=how, scale="none").fit_transform(tmp_path / "t.csv")
    assert X[4].tolist() == [fill, 2]


REFUSED = {
    "text-cells": (
        column("c", [*range(20), "many", *range(20), "few"]),
        r"'c' 2 cells of text \('many' in line 22, 'few' in line 43\)",
    ),
    "ragged": (lines("a,b", "1,2", "3,4,5"), r"line 3: Expected 2 columns, got 3"),
    "short": (lines("a,b", "1,2", "3", "4,5"), r"line 3: Expected 2 columns, got 1"),
    "infinite": (lines("a,b", "1,2", "inf,3", "4,5"), "infinity"),
    "only-header": (lines("a,b"), "column names, but no rows"),
    "only-names": (lines("c,d", *(f"n{i},u" for i in range(20))), "'c' is an identifier; 'd' has"),
    "blank": (lines("", ",,", ""), "could not be read: it has no entries"),
    "twice": (lines("a,a", "1,2", "3,4"), "only once"),
    "gap-after-lines": (
        lines("a,b,c", '1,"two\nlines",3', '2,"one",', '4,"one",5'), r"'c' 1 \(line 4\)"
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_refused(tmp_path, name):
    data, said = REFUSED[name]
    (tmp_path / "t.csv").write_bytes(data)
    with pytest.raises((ValueError, OSError), match=said):
        Preparation().fit_transform(tmp_path / "t.csv")


def test_text_cells_are_gaps_when_asked(tmp_path):
    (tmp_path / "t.csv").write_bytes(REFUSED["text-cells"][0])
    planned = plan(open_table(tmp_path / "t.csv"), impute="median", scale="none")
    assert "'many' in line 22" in planned.notes[0] and "treated as missing" in planned.notes[0]
    assert planned.preparation.fit_transform(planned.table)[20, 1] == 9.5
    planned = plan(open_table(tmp_path / "t.csv"), drop_missing=True)
    assert planned.table.n_rows == 40


def test_text_cells_of_a_target_are_named(tmp_path):
    (tmp_path / "t.csv").write_bytes(REFUSED["text-cells"][0])
    planned = plan(open_table(tmp_path / "t.csv"), target="c")
    assert "'many' in line 22" in planned.notes[0]
    assert planned.row_notes == ["left out 2 rows without 'c'"]


def test_a_gap_in_a_row_that_is_left_out_is_none(tmp_path):
    (tmp_path / "t.csv").write_bytes(lines("a,y", "1,2", ",", "3,4", ",", "5,6"))
    planned = plan(open_table(tmp_path / "t.csv"), target="y", scale="none")
    assert planned.preparation.fit_transform(planned.table).tolist() == [[1], [3], [5]]


def test_quotes_far_down(tmp_path):
    """Of which the first part of the file shows none, be it known by its byte-order mark."""
    text = ["x,c", *["1.5,u"] * 190_000, '2.5,"two\nlines"', "3.5,v"]
    (tmp_path / "t.csv").write_bytes(b"\xef\xbb\xbf" + lines(*text))
    table = open_table(tmp_path / "t.csv")
    assert table.n_rows == 190_002 and set(table.facts["c"].entries) == {"u", "v", "two\nlines"}
    assert table.lines([190_001]) == [190_004]


FRAME = pa.table(
    {
        "x": [1.5, 2.5, None, 4.5],
        "c": ["u", "v", "u", None],
        "ok": [True, False, None, True],
        "d": pa.array([1, 2, 3, 400], pa.date32()),
        "price": ["$1", "$2", "$3", "$1,000.50"],
    }
)


def _parquet(path):
    pq.write_table(FRAME, path)


def _zip(path):
    file = io.BytesIO()
    pyarrow.csv.write_csv(FRAME, file)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("inside.csv", file.getvalue())


@pytest.mark.parametrize(
    ("name", "write"),
    [
        ("t.parquet", _parquet),
        ("t.feather", lambda path: pa.feather.write_feather(FRAME, path)),
        ("t.csv", lambda path: pyarrow.csv.write_csv(FRAME, path)),
        ("t.csv.zip", _zip),
        ("frame", None),
    ],
)
def test_every_format_gives_the_same(tmp_path, name, write):
    source = FRAME.to_pandas() if write is None else tmp_path / name
    if write:
        write(source)
    prepare = Preparation(["x", "price"], ["c", "ok"], ["d"], impute="median", scale="none")
    X = prepare.fit_transform(source)
    assert X[:, 0].tolist() == [1.5, 2.5, 2.5, 4.5]
    assert X[:, 1].tolist() == [1, 2, 3, 1000.5]
    assert X[:, 2].tolist() == [1, 2, 3, 400]
    assert X[:, 9:].tolist() == [[1, 0, 0, 1], [0, 1, 1, 0], [1, 0, 0, 1], [1, 0, 0, 1]]
    assert prepare.columns[9:] == ["c=u", "c=v", "ok=false", "ok=true"]


def test_dates_go_round(tmp_path):
    """Days of the same season, weekday and hour are alike in the parts that go round."""
    days = ["2023-07-03 12:00", "2028-07-03 12:00", "2023-01-01 00:00", "2023-12-31 23:59"]
    (tmp_path / "t.csv").write_bytes(lines("d,x", *(f"{day},{i}" for i, day in enumerate(days))))
    X = Preparation([], [], ["d"], scale="none").fit_transform(tmp_path / "t.csv")
    np.testing.assert_allclose(X[0, 1:3], X[1, 1:3], atol=0.02)  # the season
    np.testing.assert_allclose(X[2, 1:3], X[3, 1:3], atol=0.02)
    np.testing.assert_allclose(X[2, 5:], X[3, 5:], atol=0.01)  # the hour
    np.testing.assert_allclose(X[0, 3:5], X[1, 3:5], atol=1e-9)  # both are Mondays
    assert X[0, 0] == np.datetime64("2023-07-03").astype(int) + 0.5


def test_unknown_entries(tmp_path):
    for name, cells in (("old.csv", ["u", "v"] * 5), ("new.csv", ["u", "w", "w"])):
        (tmp_path / name).write_bytes(column("c", cells))
    prepare = Preparation(["x"], ["c"]).fit(tmp_path / "old.csv")
    prepare.set_params(scale="none").fit(tmp_path / "old.csv")
    found = prepare.transform(tmp_path / "new.csv").tolist()
    assert found == [[0.5, 1, 0], [1.5, 0, 0], [4.5, 0, 0]]
    new = open_table(tmp_path / "new.csv")
    assert prepare.unknown_entries(prepare.raw(new)) == {"c": 2}
    with pytest.raises(ValueError, match="'c' has 2 rows with a value that is none of the 2"):
        prepare.set_params(unknown="error").transform(new)


@pytest.mark.parametrize("how", [{}, {"impute": "median", "include": ["day"]}])
@pytest.mark.parametrize("target", ["y", None])
def test_the_code_does_the_same(tmp_path, monkeypatch, how, target):
    """With another notation, text, gaps, dates and an identifier."""
    monkeypatch.chdir(tmp_path)
    text = [f"{i};{i * i % 7},5;{'uvw'[i % 3]};{i % 28 + 1}.03.2024;{i % 4}" for i in range(30)]
    text += [";".join(("30", "" if how else "1,5", "u", "1.04.2024", "")), "31;2,5;v;2.04.2024;3"]
    (tmp_path / "t.csv").write_bytes(lines("id;size;kind;day;y", *text))
    planned = plan(open_table("t.csv"), target=target, drop_missing=not how, **how)
    X = planned.preparation.fit_transform(planned.table)
    imports, code = preparation_code(planned.table, planned.preparation, target)
    made = {}
    exec("\n".join([*imports, code]), made)
    np.testing.assert_array_equal(made["X"], X)
    assert target is None or made["y"].tolist() == planned.table.column("y").tolist()
    assert re.search(r'open_table\("t.csv", separator=";", decimal=","\)', code)
    assert ("complete" in code) == (target is not None or not how)
