"""Architecture → dimension: the parameters split into what the function sees and what each symmetry hides."""

from __future__ import annotations

from attngeom.dimensions.answer import LOSSES, Dimension, dimension, stated_dimension
from attngeom.dimensions.lower_bounds import REQUESTS
from attngeom.errors import InputError, SizeError
from attngeom.explore.controls import Control, State, parse_integers, write_options
from attngeom.explore.pages import math
from attngeom.explore.view import Download, Facts, Progress, json_file
from attngeom.limits.sizes import PAGE_LAYERS, PAGE_WIDTH
from attngeom.limits.work import DIMENSION_PROVEN_ANYWAY, PAGE_DIMENSION, PAGE_DIMENSION_PARAMETERS
from attngeom.models.counts.redundancy import redundancy
from attngeom.models.presets import PUBLISHED, published
from attngeom.models.symmetry.factor import PartName
from attngeom.network import Architecture, default_attention
from attngeom.network.attention import RULES

SET = "of the set of functions"
PARTS: dict[PartName, str] = {
    "query_key": "query-key",
    "value_output": "value-output",
    "key_bias": "key biases",
    "value_bias": "value biases",
    "norm": "gains and biases of norms",
    "hidden_units": "hidden units",
    "latents": "latents",
    "residual": "turns of the residual stream",
}


def architecture_of(state: State) -> Architecture:
    """The architecture that the controls describe."""
    widths = parse_integers(state["widths"], "widths", PAGE_LAYERS + 1)
    if max(widths) > PAGE_WIDTH:
        raise SizeError(f"widths: {max(widths):,} given; at most {PAGE_WIDTH:,} is shown here")
    heads, given = state["heads"], state["attention"]
    attention = parse_integers(given, "attention widths", PAGE_LAYERS) if given else default_attention(widths, heads)
    value = parse_integers(state["value_width"], "value width", 1)[0] if state["value_width"] else None
    sizes = attention[0] if len(attention) == 1 else attention
    flags = state["residual"], state["causal"]
    return Architecture(widths, sizes, state["tokens"], state["kind"], heads, value, *flags)


def split(answer: Dimension) -> list[tuple[str, int, str]]:
    """The parameters: what the function sees, then what each symmetry hides; what is between the bounds is unknown."""
    known = [(LOSSES[name], size, "") for name, size in answer.fiber.items() if size]
    if answer.dimension is None:
        known = [part for part in known if part[0] != LOSSES["unexplained"]]
        return [("at most the dimension", answer.upper_bound, ""), *known]
    return [("dimension", answer.dimension, SET), *known]


def answer_of(state: State) -> Dimension:
    """The answer at once: computed where it takes an instant, else by theorem, formula or count."""
    architecture, seed = architecture_of(state), state["seed"]
    stated = stated_dimension(architecture, seed=seed)
    small = stated.upper.value <= DIMENSION_PROVEN_ANYWAY and architecture.num_parameters <= PAGE_DIMENSION_PARAMETERS
    return dimension(architecture, seed=seed) if small else stated


def show(state: State) -> Facts:
    """The answer for an architecture, or the count of a published model."""
    if state["model"]:
        counts = redundancy(published(state["model"]))
        return {
            "model": state["model"],
            "found": counts,
            "parts": [("dimension", counts.dimension, SET), ("hidden by symmetries", counts.total, "")],
            "hidden": [(words, counts.part(part), "") for part, words in PARTS.items() if counts.part(part)],
            "terms": [(PARTS[term.part], f"{term.count:,}", math(term.group), term.lemma) for term in counts.terms],
        }
    answer = answer_of(state)
    beyond = PAGE_DIMENSION if answer.upper.value > PAGE_DIMENSION else None
    return {"answer": answer, "parts": split(answer), "is_proof": False, "beyond": beyond}


def prove(state: State, progress: Progress) -> Facts:
    """Bounds that are computed, with their evidence."""
    architecture = architecture_of(state)
    stated = stated_dimension(architecture)
    if stated.upper.value > PAGE_DIMENSION and stated.standing != "theorem":
        raise SizeError(f"a dimension of up to {stated.upper.value:,}; at most {PAGE_DIMENSION:,} are computed here")
    answer = dimension(architecture, prove=True, method=state["method"], seed=state["seed"], progress=progress)
    return {"answer": answer, "parts": split(answer), "is_proof": True}


def config(state: State) -> Download:
    """The configuration of a published model, for the command line."""
    if not state["model"]:
        raise InputError("no published model is chosen; choose one")
    return json_file(f"{state['model']}.json", PUBLISHED[state["model"]])


def command(state: State) -> str:
    if state["model"]:
        return f"attngeom model inspect {state['model']}.json"
    state = {**state, "widths": state["widths"].replace(" ", ""), "attention": state["attention"].replace(" ", "")}
    return f"attngeom dim{write_options(CONTROLS, state)} --prove"


def python(state: State) -> str:
    if state["model"]:
        names = "from attngeom.models.presets import published; from attngeom.models import redundancy"
        return f"{names}; print(redundancy(published({state['model']!r})))"
    given = ", ".join(f"{name}={value!r}" for name, value in architecture_of(state).to_json().items())
    return f"import attngeom; print(attngeom.dimension(attngeom.Architecture({given}), prove=True))"


NETWORK = "model="
KIND_NAMES = {name: name for name in RULES}
METHODS: dict[str, str] = {name: name for name in REQUESTS}
MODELS = {"": "the architecture below", **{name: name for name in PUBLISHED}}
CONTROLS = (
    Control("model", "Published model", "choice", options=MODELS, hint="by its configuration alone"),
    Control("kind", "Kind of attention", "choice", "lightning", "", NETWORK, options=KIND_NAMES, option="--kind"),
    Control("widths", "Widths", "text", "3,3,3", "d₀, …, d_l", NETWORK, option="--widths"),
    Control(
        "attention", "Attention widths", "text", "2", "one repeats; none: d / heads", NETWORK, option="--attention"
    ),
    Control("heads", "Heads", "number", "1", "", NETWORK, low=1, high=128, option="--heads"),
    Control("value_width", "Value width", "text", "", "none: d / heads", NETWORK, 10, option="--value-width"),
    Control("tokens", "Tokens", "number", "3", "", NETWORK, low=1, high=10**6, option="--tokens"),
    Control("causal", "causal mask", "switch", only=NETWORK, option="--causal"),
    Control("residual", "skip connection", "switch", only=NETWORK, option="--residual"),
    Control("method", "How to prove", "choice", "auto", "", NETWORK, options=METHODS, option="--method"),
    Control("seed", "Seed", "number", "0", only=NETWORK, option="--seed"),
)
JOBS = {"prove": prove}
DOWNLOADS = {"config": config}
