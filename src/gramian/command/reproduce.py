"""``gramian reproduce``: measure the figures and tables of the papers and compare."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

from gramian import experiments
from gramian.backend.wording import counted
from gramian.backend.writing import whole_file
from gramian.command import arguments
from gramian.command.errors import UsageError
from gramian.command.results import check_free
from gramian.command.screen import Screen, visible
from gramian.experiments import trials
from gramian.experiments.outcomes import numbers_beside

LIST = "list"


def add_options(parser: arguments.Parser) -> None:
    parser.add_argument(
        "what",
        metavar="WHAT",
        nargs="*",
        help="all (the default), a paper (003), or a figure, table or theorem (003/figure-1); "
        "list prints the names and runs nothing",
    )
    group = parser.add_argument_group("experiments")
    group.add_argument(
        "--quick",
        action="store_true",
        help="fewer runs, on data that ships with scikit-learn, in about three minutes; without "
        "it, the papers' data sets are read from the folder in GRAMIAN_DATA",
    )
    group.add_argument(
        "--rows",
        type=int,
        metavar="N",
        help="number of deformed digits for 003/figure-2 and 003/rank-restricted; default: 100000",
    )
    group.add_argument(
        "--cache",
        metavar="FOLDER",
        help="folder for measured numbers, so that nothing is measured twice; default: the user's "
        "cache folder",
    )
    group.add_argument(
        "--processes",
        type=int,
        default=1,
        metavar="N",
        help="processes that measure at once, each on its own share of the cores; default: 1",
    )
    group.add_argument(
        "--breaks",
        action="store_true",
        help="instead, break the methods on purpose, on small data, and print which verdicts "
        "notice it; fails if one does not",
    )
    output = parser.add_argument_group("output")
    output.add_argument(
        "--output",
        "-o",
        metavar="FILE",
        default="reproduction.html",
        help="the report; the numbers are written next to it as .json; default: reproduction.html",
    )
    output.add_argument(
        "--summary",
        metavar="FILE",
        help="also write the verdicts, or with --breaks the table, as Markdown; must end in .md",
    )
    output.add_argument("--force", action="store_true", help="replace existing files")
    arguments.add_run(parser, device=True, seed=False)


def run(args: Namespace, screen: Screen) -> None:
    if LIST in args.what:
        _list([name for name in args.what if name != LIST], screen)
        return
    summary = Path(args.summary).expanduser() if args.summary else None
    if summary:
        if summary.suffix.lower() != ".md":
            raise UsageError(f"The summary {str(summary)!r} must end in .md.")
        check_free(summary, "--summary", force=args.force)
    if args.breaks:
        _break(args.what or ["all"], screen, summary)
        return
    path = Path(args.output).expanduser()
    if path.suffix.lower() != ".html":
        raise UsageError(f"The output {str(path)!r} must end in .html.")
    for each in (path, numbers_beside(path)):
        check_free(each, "--output", force=args.force)
    check_device(args.what or ["all"], args.device)
    if args.device != "cpu" and args.processes > 1:
        raise UsageError(f"--device {args.device} is used by one process: leave out --processes.")
    with screen.timed():
        found = experiments.reproduce(
            args.what or ["all"],
            quick=args.quick,
            rows=args.rows,
            cache=args.cache,
            processes=args.processes,
            callback=lambda outcome: _show(outcome, screen),
        )
    found.report(path)
    screen.line("report", f"→ {path}")
    screen.line("numbers", f"→ {numbers_beside(path)}")
    _write(found.summary(), summary, screen)
    missing = [each for each in found.outcomes if each.reproduced is None]
    if missing:
        raise UsageError(
            f"{len(missing)} of {counted(len(found.outcomes), 'experiment')} could not be run. "
            f"{missing[0].name}: {missing[0].reason} Try --quick, which needs no data."
        )


def check_device(names: list[str], device: str) -> None:
    """Refuse a device for experiments that run on the CPU only."""
    chosen = experiments.find(names)
    others = [each.name for each in chosen if not each.takes_device]
    if device != "cpu" and others:
        able = [each.name for each in experiments.EXPERIMENTS if each.takes_device]
        raise UsageError(
            f"--device {device} is for {' and '.join(able)}; got {counted(len(others), 'other')}, "
            f"such as {others[0]}. These compare with dense matrices on the CPU."
        )


def _write(text: str, path: Path | None, screen: Screen) -> None:
    if path is not None:
        with whole_file(path) as file:
            file.write(text.encode("utf-8"))
        screen.line("summary", f"→ {path}")


def _break(names: list[str], screen: Screen, summary: Path | None) -> None:
    def show(trial: trials.Trial) -> None:
        said = f"{trial.experiment:<22}{trial.broken:<36}{trial.noticed or 'NOT NOTICED'}"
        screen.print(visible(said))

    with screen.timed():
        found = trials.table(names, show)
    missed = [each for each in found if each.noticed is None]
    screen.line("breaks", f"{len(found)} tried, {len(found) - len(missed)} noticed")
    _write(trials.markdown(found), summary, screen)
    if missed:
        named = ", ".join(f"{each.experiment} ({each.broken})" for each in missed)
        raise UsageError(f"{counted(len(missed), 'break')} went unnoticed: {named}.")


def _list(names: list[str], screen: Screen) -> None:
    found = experiments.find(names or ["all"])
    screen.table(["name", "title"], [[each.name, each.title] for each in found])


def _show(outcome: experiments.Outcome, screen: Screen) -> None:
    said = f"{outcome.name:<22}{outcome.word:<13}"
    screen.print(visible(said + (outcome.verdict or outcome.reason)))
