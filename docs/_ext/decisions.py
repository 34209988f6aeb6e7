"""The chart "which approximation for my data": questions, answers, and what was measured."""

from html import escape

import results

BOX, GAP, WIDTH = 70, 28, 860
FONT = "system-ui, -apple-system, 'Segoe UI', sans-serif"


def steps() -> list[tuple[str, str, str]]:
    """Question, approximation if yes, and the measured reason for it."""
    value = results.look_up
    blocks = "blocks#3 / covtype / RBF / 2"
    equal = "Nyström at equal error, covtype, float32"

    def accuracy(method: str) -> str:
        return value(f"local covtype / {method} / 2 / accuracy")

    return [
        (
            "Up to about 6,000 rows?",
            "the exact kernel",
            "A plain kernel: the result is that of scikit-learn.",
        ),
        (
            "Rows that are not vectors: strings, graphs, sets?",
            'Nystroem(landmarks="rpcholesky")',
            "Needs only kernel values. Chosen by default for objects.",
        ),
        (
            "Ridge or classes, and the score still rises with many more landmarks?",
            "Local",
            f"covtype, 464,810 rows: accuracy {accuracy('Local(RBF), 400 blocks')}, "
            f"Nyström with 1,000 landmarks {accuracy('Nyström, m = 1000')}.",
        ),
        (
            "A local kernel (large gamma), few columns, or little memory?",
            "MEKA",
            f"covtype, gamma 2, equal memory: error {value(f'{blocks} / MEKA')}, "
            f"Nyström {value(f'{blocks} / Nystroem k-means')}.",
        ),
        (
            "A polynomial or exponential dot product of many columns?",
            "TensorSketch, CRAFT",
            "Random features without kernel values; also for sparse rows.",
        ),
        (
            "A stream whose later rows differ from the first?",
            "RandomFourier",
            "Features do not depend on the rows, so no region is left out.",
        ),
        (
            "Everything else",
            "Nystroem",
            f"k-means centres: {value(f'peers / {equal} / scikit-learn Nystroem / ratio')} times "
            "as fast as scikit-learn's at equal error (covtype).",
        ),
    ]


def _text(x: float, y: float, text: str, **style) -> str:
    given = " ".join(f'{name.replace("_", "-")}="{value}"' for name, value in style.items())
    return f'<text x="{x}" y="{y}" {given}>{escape(text)}</text>'


def _box(x: float, y: float, width: float, fill: str, stroke: str) -> str:
    return (
        f'<rect x="{x}" y="{y}" width="{width}" height="{BOX}" rx="10" fill="{fill}" '
        f'stroke="{stroke}"/>'
    )


def _wrapped(text: str, width: int) -> list[str]:
    lines = [""]
    for word in text.split():
        if len(lines[-1]) + len(word) > width:
            lines.append("")
        lines[-1] = f"{lines[-1]} {word}".strip()
    return lines


def chart() -> str:
    """The chart as SVG: questions on the left from top to bottom, answers on the right."""
    found = steps()
    height = len(found) * (BOX + GAP) - GAP + 40
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
        f'font-family="{FONT}" role="img" aria-label="Which approximation for my data">',
        f'<rect width="{WIDTH}" height="{height}" rx="14" fill="#ffffff"/>',
    ]
    for i, (question, answer, reason) in enumerate(found):
        top = 20 + i * (BOX + GAP)
        middle = top + BOX / 2
        parts.append(_box(20, top, 300, "#eef3fa", "#2f6fb0"))
        lines = _wrapped(question, 33)
        for j, line in enumerate(lines):
            y = middle + 5 + 20 * (j - (len(lines) - 1) / 2)
            parts.append(_text(170, y, line, text_anchor="middle", font_size=15, fill="#1c2733"))
        parts.append(_box(410, top, 430, "#fdf3e4", "#e08a1e"))
        parts.append(_text(425, top + 23, answer, font_size=15, font_weight="bold", fill="#7a4300"))
        for j, line in enumerate(_wrapped(reason, 56)):
            parts.append(_text(425, top + 42 + 16 * j, line, font_size=12.5, fill="#3a3f47"))
        last = i == len(found) - 1
        parts.append(
            f'<path d="M320 {middle} H404 m-8 -5 l8 5 l-8 5" fill="none" stroke="#5a6270" '
            'stroke-width="1.5"/>'
        )
        parts.append(
            _text(362, middle - 7, "" if last else "yes", text_anchor="middle", font_size=13,
                  fill="#5a6270")
        )  # fmt: skip
        if not last:
            parts.append(
                f'<path d="M170 {top + BOX} v{GAP - 4} m-5 -8 l5 8 l5 -8" fill="none" '
                'stroke="#5a6270" stroke-width="1.5"/>'
            )
            parts.append(_text(182, top + BOX + 19, "no", font_size=13, fill="#5a6270"))
    return "\n".join([*parts, "</svg>"]) + "\n"
