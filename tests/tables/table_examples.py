"""Text tables that the tests share."""


def lines(*texts):
    return ("\n".join(texts) + "\n").encode()


def column(name, cells):
    """A table with this column and a number x that goes with it."""
    return lines(f"x,{name}", *(f"{i * i % 17}.5,{cell}" for i, cell in enumerate(cells)))
