"""Pictures of matrices as inline PNG images, in colours for light and dark pages."""

from __future__ import annotations

import base64
import struct
import zlib

import numpy as np

LEVELS = 64  # more would look the same and take more space
# From 0 to 1; from -1 to 1 the second runs backwards before it. Light pages, dark pages.
SEQUENTIAL = (
    ("#ffffff", "#d5e6f2", "#8fc0de", "#3d8dbf", "#12588f", "#08264d"),
    ("#1b1f26", "#173a5c", "#1f6699", "#3f9bc6", "#8accdf", "#f2fbfb"),
)
NEGATIVE = (
    ("#ffffff", "#f8ddc9", "#efae7e", "#d97a35", "#a34a0a", "#582200"),
    ("#1b1f26", "#4a2a12", "#854715", "#c47430", "#e9b27c", "#fdf3e6"),
)


def data_uri(matrix: np.ndarray, *, dark: bool, signed: bool) -> str:
    """Return a matrix with entries in [0, 1], or [-1, 1] if ``signed``, as a PNG data URI."""
    low = -1.0 if signed else 0.0
    levels = np.clip((matrix - low) / (1.0 - low), 0.0, 1.0) * (LEVELS - 1)
    png = _png(np.rint(levels).astype(np.uint8), palette(dark=dark, signed=signed))
    return "data:image/png;base64," + base64.b64encode(png).decode("ascii")


def palette(*, dark: bool, signed: bool) -> np.ndarray:
    """Return one colour per level, from the smallest value to the largest."""
    up = SEQUENTIAL[dark]
    stops = (*NEGATIVE[dark][:0:-1], *up) if signed else up
    rgb = np.array([[int(stop[i : i + 2], 16) for i in (1, 3, 5)] for stop in stops], dtype=float)
    at, where = np.linspace(0, 1, len(stops)), np.linspace(0, 1, LEVELS)
    return np.stack([np.interp(where, at, channel) for channel in rgb.T], axis=1).round()


def gradient(*, dark: bool, signed: bool) -> str:
    """Return the same colours as a CSS gradient."""
    stops = (*NEGATIVE[dark][:0:-1], *SEQUENTIAL[dark]) if signed else SEQUENTIAL[dark]
    return f"linear-gradient(to right, {', '.join(stops)})"


def _png(levels: np.ndarray, colours: np.ndarray) -> bytes:
    height, width = levels.shape
    header = struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)  # 8 bits, by palette
    lines = np.hstack([np.zeros((height, 1), np.uint8), levels])  # each begins with its filter: 0
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in (
            (b"IHDR", header),
            (b"PLTE", colours.astype(np.uint8).tobytes()),
            (b"IDAT", zlib.compress(lines.tobytes(), 9)),
            (b"IEND", b""),
        )
    )
