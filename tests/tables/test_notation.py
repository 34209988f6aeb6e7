"""How text tables are written: separators, signs of numbers, encodings, compression."""

import bz2
import gzip
import lzma
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from table_examples import column, lines

from gramian.rows.files.dialect import encoding_of
from gramian.tables import Preparation, open_table, plan

PLAIN = lines("a,b", "1.5,2", "2.5,3", "4,1")
VALUES = [[1.5, 2], [2.5, 3], [4, 1]]
EUROPE = lines("a;b", "1,5;2", "2,5;3", "4;1")

# Tables that are read: the file, the values of its columns a and b, and how it is written.
READ = {
    "commas.csv": (PLAIN, "comma-separated, decimal point, UTF-8"),
    "semicolons.csv": (EUROPE, "semicolon-separated, decimal comma"),
    "tabs.csv": (PLAIN.replace(b",", b"\t"), "tab-separated, decimal point"),
    "bars.csv": (PLAIN.replace(b",", b"|"), "bar-separated"),
    "tabs.tsv": (EUROPE.replace(b";", b"\t"), "tab-separated, decimal comma"),
    "semicolons-points.csv": (PLAIN.replace(b",", b";"), "semicolon-separated, decimal point"),
    "bom.csv": (b"\xef\xbb\xbf" + PLAIN, "UTF-8 with BOM"),
    "utf16.csv": (PLAIN.decode().encode("utf-16"), "UTF-16"),
    "utf16-be.csv": (b"\xfe\xff" + EUROPE.decode().encode("utf-16-be"), "decimal comma, UTF-16"),
    "utf16-without-bom.csv": (PLAIN.decode().encode("utf-16-le"), "UTF-16-LE"),
    "windows.csv": (PLAIN.replace(b"\n", b"\r\n"), "comma-separated"),
    "no-last-newline.csv": (PLAIN.rstrip(), "comma-separated"),
    "blank-lines.csv": (PLAIN.replace(b"\n", b"\n\n"), "comma-separated"),
    "gzip.csv.gz": (gzip.compress(PLAIN), "comma-separated"),
    "bzip.csv.bz2": (bz2.compress(EUROPE), "semicolon-separated"),
    "xz.csv.xz": (lzma.compress(PLAIN), "comma-separated"),
    "named-plainly.csv": (gzip.compress(PLAIN), "comma-separated"),
    "quotes.csv": (lines('"a","b"', '"1.5","2"', '"2.5","3"', '"4","1"'), "comma"),
    "single-quotes.csv": (lines("'a','b'", "'1.5','2'", "'2.5','3'", "'4','1'"), "quotes '"),
    "quoted-decimals.csv": (lines("a,b", '"1,5",2', '"2,5",3', "4,1"), "decimal comma"),
    "spaces.csv": (lines("a, b", "1.5, 2", " 2.5 ,3", "4,1 "), "comma-separated"),
    "excel-hint.csv": (b"sep=;\n" + EUROPE, "semicolon-separated, decimal comma"),
    "trailing-separator.csv": (lines("a,b,", "1.5,2,", "2.5,3,", "4,1,"), "comma"),
    "header-lacks-it.csv": (lines("a,b", "1.5,2,", "2.5,3,", "4,1,"), "comma"),
    "trailing-rows.csv": (PLAIN + b",\n,\n", "comma-separated"),
    "row-numbers.csv": (lines(",a,b", "0,1.5,2", "1,2.5,3", "2,4,1"), "comma-separated"),
    "of-r.csv": (lines("a,b", "r1,1.5,2", "r2,2.5,3", "r3,4,1"), "comma-separated"),
    "empty-column.csv": (lines("a,none,b", "1.5,,2", "2.5,,3", "4,,1"), "comma"),
    "plus-signs.csv": (lines("a,b", "1.5,+2", "2.5,+3", "4,+1"), "comma-separated"),
    "exponents.csv": (lines("a,b", "1.5e0,2", "25E-1,3", "4,1"), "comma-separated"),
    "euros.csv": (lines("a;b", "1,50 €;2", "2,50 €;3", "4 €;1"), "units €"),
    "dollars.csv": (lines("a,b", "$1.50,2", "$2.50,3", "$4,1"), "units $"),
    "latin-euros.csv": (lines("a;b", "1,50 €;2", "2,50 €;3", "4 €;1").decode().encode("cp1252"),
                        "units €, Latin-1"),
    "codes.csv": (lines("a,b", "EUR 1.5,2", "EUR 2.5,3", "EUR 4,1"), "units EUR"),
    "title.csv": (b"Sales 2024\n\n" + PLAIN, "comma-separated"),
    "title-and-separators.csv": (b"Verkauf;\n" + EUROPE, "semicolon-separated, decimal comma"),
    "white-space.csv": (lines("  a    b", "  1.5  2", "2.5\t3 ", "4 1"), "space-separated"),
    "white-space-16.csv": (lines("a  b", "1,5  2", "2,5  3", "4  1").decode().encode("utf-16"),
                           "space-separated, decimal comma, UTF-16"),
    "white-space-of-r.csv": (lines('"a" "b"', '"r  1" 1.5 2', '"r2" 2.5 3', '"r3" 4 1'), "space"),
    "percent.csv": (lines("a,b", "1.5%,2", "2.5%,3", "4%,1"), "units %"),
}  # fmt: skip


@pytest.mark.parametrize("name", READ)
def test_read(tmp_path, name):
    data, said = READ[name]
    (tmp_path / name).write_bytes(data)
    table = open_table(tmp_path / name)
    assert said in table.notation
    assert (table.n_rows, table.named) == (3, True)
    np.testing.assert_array_equal(table.column("a"), [row[0] for row in VALUES])
    np.testing.assert_array_equal(table.column("b"), [row[1] for row in VALUES])
    planned = plan(table, scale="none")
    assert planned.preparation.numbers == ["a", "b"]
    X = planned.preparation.fit_transform(planned.table)
    np.testing.assert_array_equal(X, VALUES)


THOUSANDS = {
    "points": (lines("x;a", "1;1.234,5", "2;12.345.678,25", "3;0,5"), ",", "."),
    "commas": (lines("x,a", '1,"1,234.5"', '2,"12,345,678.25"', "3,0.5"), ".", ","),
    "spaces": (lines("x;a", "1;1 234,5", "2;12 345 678,25", "3;0,5"), ",", " "),
    "hard-spaces": (
        lines("x;a", "1;1\u00a0234,5", "2;12\u00a0345\u00a0678,25", "3;0,5"), ",", "\u00a0"
    ),
    "swiss": (lines("x;a", "1;1'234.5", "2;12'345'678.25", "3;0.5"), ".", "'"),
    "whole-commas": (lines("x,a", '1,"1,234,500"', '2,"12,345,678"', "3,500"), ".", ","),
}  # fmt: skip


@pytest.mark.parametrize("name", THOUSANDS)
def test_thousands(tmp_path, name):
    data, decimal, thousands = THOUSANDS[name]
    (tmp_path / "t.csv").write_bytes(data)
    table = open_table(tmp_path / "t.csv")
    dialect = table.files[0].dialect
    assert (dialect.decimal, dialect.thousands) == (decimal, thousands)
    expected = [1234500, 12345678, 500] if "whole" in name else [1234.5, 12345678.25, 0.5]
    np.testing.assert_array_equal(table.column("a"), expected)


# Negative numbers as accountants write them, and what is said about them.
NEGATIVE = {
    "parentheses": (lines("x,a", '1,"(1,234.50)"', "2,3", "3,(2)"), "in parentheses"),
    "minus-last": (lines("x;a", "1;1.234,50-", "2;3", "3;2-"), "with a minus at the end"),
    "dollars": (lines("x,a", '1,"$(1,234.50)"', "2,$3", "3,($2)"), "in parentheses"),
    "percent": (lines("x,a", '1,"(1,234.50%)"', "2,3%", "3,(2)%"), "in parentheses"),
    "unicode": (lines("x,a", "1,\u22121234.5", "2,3", "3,\u22122"), ""),
}


@pytest.mark.parametrize("name", NEGATIVE)
def test_negative(tmp_path, name):
    data, said = NEGATIVE[name]
    (tmp_path / "t.csv").write_bytes(data)
    table = open_table(tmp_path / "t.csv")
    assert table.column("a").tolist() == [-1234.5, 3, -2]
    assert ("negative numbers " + said in table.notation) == bool(said)


def test_words_in_parentheses_are_no_numbers(tmp_path):
    (tmp_path / "t.csv").write_bytes(column("c", ["(u)", "v-", "w"] * 9))
    assert plan(open_table(tmp_path / "t.csv")).preparation.categories == ["c"]
    cells = [*range(20), "(7", "7)", "-7-"]
    (tmp_path / "t.csv").write_bytes(column("c", cells))
    with pytest.raises(ValueError, match=r"3 cells of text \('\(7' in line 22, '7\)' in line 23"):
        Preparation().fit_transform(tmp_path / "t.csv")


def test_words_with_spaces_between_are_one_column(tmp_path):
    (tmp_path / "t.csv").write_bytes(lines("full name", "John Smith", "Jane Doe"))
    assert open_table(tmp_path / "t.csv").names == ["full name"]
    (tmp_path / "t.csv").write_bytes(lines("amount", "1 234", "12 345", "1 000 000"))
    assert open_table(tmp_path / "t.csv").column("amount").tolist() == [1234, 12345, 1000000]
    (tmp_path / "t.csv").write_bytes(lines("amount", "1 234", "12 345"))
    assert open_table(tmp_path / "t.csv").column("amount").tolist() == [1234, 12345]
    (tmp_path / "u.dat").write_bytes(lines("a  b", "1  2", "3  4"))
    assert open_table(tmp_path / "u.dat").names == ["a", "b"]


def test_a_long_table_with_white_space(tmp_path):
    """Longer than what is rewritten at a time; line numbers are those of the file."""
    text = ["a   b", *(f"  {i}   {i % 7}" for i in range(3000)), "3000   NA", "", "3001   5"]
    (tmp_path / "t.csv").write_bytes(lines(*text))
    table = open_table(tmp_path / "t.csv")
    assert table.column("a").tolist() == list(range(3002))
    with pytest.raises(ValueError, match=r"'b' 1 \(line 3002\)"):
        Preparation().fit(table)
    assert table.lines([3001]) == [3004]


def test_ambiguous_notation_can_be_given(tmp_path):
    (tmp_path / "t.csv").write_bytes(lines("x;a", "1;1,234", "2;2,345"))
    assert open_table(tmp_path / "t.csv").column("a")[0] == 1.234
    assert open_table(tmp_path / "t.csv", decimal=".").column("a")[0] == 1234
    (tmp_path / "t.csv").write_bytes(lines("d;a", "01.02.2024;1.234", "02.02.2024;2.345"))
    assert open_table(tmp_path / "t.csv").column("a")[0] == 1.234
    assert open_table(tmp_path / "t.csv", decimal=",").column("a")[0] == 1234
    (tmp_path / "u.csv").write_bytes(lines("a b,c", "1 2,3", "4 5,6"))
    assert open_table(tmp_path / "u.csv").names == ["a b", "c"]
    assert open_table(tmp_path / "u.csv", separator=" ").names == ["a", "b,c"]
    (tmp_path / "v.csv").write_bytes(lines("ü,b", "1,2").decode().encode("latin-1"))
    assert open_table(tmp_path / "v.csv").names[0] == "ü"
    assert open_table(tmp_path / "v.csv", encoding="cp437").names[0] == "ⁿ"


@pytest.mark.parametrize(
    ("chunks", "encoding"),
    [
        ([b"a,b", b"1,2"], "utf-8"),
        ([b"abc", "ü".encode()[:1], "ü".encode()[1:]], "utf-8"),  # cut in the middle
        ([b"abc", b"\xfc"], "cp1252"),
        ([b"abc", b"\xfcx", b"\x90"], "latin-1"),
        ([b"\xef\xbb\xbfa"], "utf-8-sig"),
        (["añb".encode("utf-16")], "utf-16"),
    ],
)
def test_encodings(chunks, encoding):
    assert encoding_of(iter(chunks)) == encoding


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(
    rows=st.lists(
        st.tuples(*[st.floats(-1e6, 1e6).map(lambda v: round(v, 2))] * 3), min_size=2, max_size=8
    ),
    separator=st.sampled_from(",;\t|"),
    decimal=st.sampled_from(".,"),
    thousands=st.sampled_from(["", " ", ".", ","]),
    named=st.booleans(),
)
def test_any_notation_is_read_as_it_was_written(rows, separator, decimal, thousands, named):
    """Numbers with two digits after the decimal sign leave no doubt what the signs are."""
    assume(thousands != decimal)

    def cell(value):
        text = f"{value:,.2f}".translate({ord(","): thousands, ord("."): decimal})
        return f'"{text}"' if separator in text else text

    text = [separator.join(map(cell, row)) for row in rows]
    text = [separator.join("abc"), *text] if named else text
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "t.csv"
        path.write_bytes(lines(*text))
        table = open_table(path)
        assert (table.named, table.n_rows) == (named, len(rows))
        found = [table.column(name) for name in table.names]
    np.testing.assert_array_equal(np.transpose(found), rows)
