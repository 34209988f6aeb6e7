"""``gramian compare``: its code, run as it is printed, gives the score of its report."""

import re

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from gramian.command import main


def orders(n=160):
    """A table as a spreadsheet writes it in Europe: an identifier, dates, text, gaps."""
    rng = np.random.default_rng(0)
    age, site = rng.integers(18, 80, n), rng.choice(["nord", "süd", "ost"], n)
    member, days = rng.choice(["yes", "no"], n), rng.integers(0, 700, n)
    price = 10 * np.sin(age / 10) + 3 * (site == "nord") + np.sin(days / 58) + rng.normal(0, 1, n)
    kind = np.where(price > np.median(price), "high", "low")
    lines = ["order id;joined;age;site;member;price;kind"]
    for i in range(n):
        shown = [
            f"A{i:05d}",
            str(np.datetime64("2021-01-01") + days[i]),
            "" if i % 17 == 0 else str(age[i]),
            "NA" if i % 31 == 0 else site[i],
            member[i],
            "" if i == 5 else f"{price[i]:.3f}".replace(".", ","),
            kind[i],
        ]
        lines.append(";".join(shown))
    return "\n".join(lines) + "\n"


CASES = {
    "regression": ["--target", "price", "--exclude", "kind", "--impute", "median"],
    "with dates": ["--target", "price", "--exclude", "kind", "--impute", "mean",
                   "--include", "joined", "--no-baselines"],
    "rows dropped": ["--target", "price", "--exclude", "kind", "--drop-missing"],
    "classification": ["--target", "kind", "--exclude", "price", "--impute", "most-frequent",
                       "--scale", "none", "--exclude", "joined", "--no-baselines"],
    "part of the rows": ["--target", "kind", "--exclude", "price", "--impute", "median",
                         "--max-rows", "120", "--no-baselines"],
    "clusters": ["--n-clusters", "3", "--exclude", "price", "--impute", "median"],
    "clusters of a part": ["--n-clusters", "3", "--exclude", "price", "--impute", "median",
                           "--max-rows", "100"],
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_the_printed_code_gives_the_reported_score(case, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "orders.csv").write_text(orders(), encoding="utf-8")
    options = ["--sizes", "20", "40", "--approximation", "nystroem", "--repeats", "1"]
    assert main(["compare", "orders.csv", *CASES[case], *options]) == 0
    out = capsys.readouterr().out
    code = re.search(r"^(import|from) .*?(?=^(kernel|report) )", out, flags=re.S | re.M)[0]
    for name in ("age", "site", "open_table", "Preparation"):
        assert name in code
    assert ("prepare.fit(table.choose(np.sort(train)))" in code) == ("--target" in CASES[case])
    advice = next(line for line in out.splitlines() if line.startswith("advice"))
    with threadpool_limits(1):
        exec(compile(code, "code", "exec"), {})
    name, score = capsys.readouterr().out.strip().split(": ")
    report = (tmp_path / "orders.report.html").read_text(encoding="utf-8")
    if case.startswith("clusters"):
        assert f"Share of variance {score}" in report
    else:
        assert f"{name} {score} ±" in advice
        assert f"{name} {score} ±" in report
    # The report names what is done to the columns.
    assert "How the table was prepared" in report
    steps = re.search(r'<ul class="steps">.*?</ul>', report)[0]
    assert "site" in steps


@pytest.mark.slow
def test_standard_input_has_a_name_in_the_code(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in.csv").write_text(
        "a,b,c\n" + "".join(f"{i},{i % 7},{i % 2}\n" for i in range(40))
    )
    with open(tmp_path / "in.csv") as file:
        monkeypatch.setattr("sys.stdin", file)
        options = ["--target", "c", "--sizes", "5", "--approximation", "nystroem", "--repeats", "1"]
        assert main(["compare", "-", *options, "--no-baselines"]) == 0
    out = capsys.readouterr().out
    assert '# stdin.csv: what came from standard input\ntable = open_table("stdin.csv")' in out


def test_clusters_of_a_data_set_that_has_a_target(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    options = ["--n-clusters", "3", "--sizes", "5", "--approximation", "nystroem", "--repeats", "1"]
    assert main(["compare", "iris", *options]) == 0
    assert "explained_variance(" in capsys.readouterr().out
