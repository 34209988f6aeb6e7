"""The role {measured}, and the fragments and pictures that the pages take from measured files."""

from pathlib import Path

import advantages
import charts
import results
from docutils import nodes
from sphinx.util.docutils import SphinxRole


class Measured(SphinxRole):
    """A number of benchmarks/RESULTS.md, by its place: section / key / ... / column."""

    def run(self):
        try:
            return [nodes.Text(results.look_up(self.text))], []
        except LookupError as error:
            message = self.inliner.reporter.error(f"{self.text}: {error}", line=self.lineno)
            return [self.inliner.problematic(self.rawtext, self.rawtext, message)], [message]


def missed() -> str:
    """The goals against other libraries that were missed, as a table."""
    (peers, *_) = results.measured()["peers"]
    shown = ["job", "contender", "ratio", "goal", "verdict"]
    at = [peers.columns.index(column) for column in shown]
    rows = [[row[i] for i in at] for row in peers.rows if "missed" in row[at[-1]]]
    lines = [shown, ["---", "---", "--:", "--:", "---"], *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def write(app):
    folder = Path(app.srcdir) / "generated"
    folder.mkdir(exist_ok=True)
    (folder / "advantages.md").write_text(advantages.table())
    (folder / "missed.md").write_text(missed())
    charts.draw_all(folder)


def setup(app):
    app.add_role("measured", Measured())
    app.connect("builder-inited", write)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
