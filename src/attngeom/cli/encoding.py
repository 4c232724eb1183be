"""Output in any encoding: what a terminal cannot show is written in plain letters instead of failing."""

from __future__ import annotations

import codecs
from typing import TextIO

PLAIN = {
    "→": "->", "↦": "|->", "⇒": "=>", "⇔": "<=>", "≤": "<=", "≥": ">=", "≠": "!=", "≈": "~", "±": "+-", "−": "-",
    "×": "x", "⊗": "(x)", "⊕": "(+)", "·": "*", "∘": "o", "…": "...", "–": "-", "—": "-", "’": "'", "“": '"', "”": '"',
    "√": "sqrt", "∞": "inf", "∈": "in", "∀": "for all", "Σ": "Sum", "Π": "Prod", "Λ": "Lambda", "ᵀ": "^T", "⁻": "^-",
    "⁰": "^0", "¹": "^1", "²": "^2", "³": "^3", "⁴": "^4", "⁵": "^5", "⁶": "^6", "⁷": "^7", "⁸": "^8", "⁹": "^9",
    "₀": "_0", "₁": "_1", "₂": "_2", "₃": "_3", "α": "alpha", "β": "beta", "γ": "gamma", "δ": "delta", "ε": "eps",
    "θ": "theta", "λ": "lambda", "μ": "mu", "ν": "nu", "ρ": "rho", "σ": "sigma", "τ": "tau", "φ": "phi", "ω": "omega",
    "‖": "|", "§": "section ", "✓": "yes", "✗": "no", "│": "|", "─": "-", "╭": "+", "╮": "+", "╰": "+", "╯": "+",
}  # fmt: skip
HANDLER = "attngeom-plain"


def _plain(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    wrong = error.object[error.start : error.end]
    return "".join(PLAIN.get(letter, f"\\u{ord(letter):04x}") for letter in wrong), error.end


codecs.register_error(HANDLER, _plain)


def make_printable(*streams: TextIO) -> None:
    """Let streams take every text, whatever their encoding: also halves of characters, as file names can have them."""
    for stream in streams:
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors=HANDLER)
