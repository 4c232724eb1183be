"""Architecture → dimension: the parameters split into what the function sees and what each symmetry hides."""

from __future__ import annotations

from attngeom.dimensions.answer import LOSSES, Dimension, dimension, stated_dimension
from attngeom.dimensions.lower.search import INSTANT, REQUESTS
from attngeom.dimensions.statements import DimensionFormula
from attngeom.errors import InputError, SizeError
from attngeom.explore.controls import Choice, Number, State, Switch, Text
from attngeom.explore.drawings import stacked_bar
from attngeom.explore.lists import parse_integers
from attngeom.explore.markup import Html, Node, job_button, join, pairs, section, standing_line, table, tag
from attngeom.explore.view import Progress, View
from attngeom.files import to_json
from attngeom.models.counts.redundancy import redundancy
from attngeom.models.presets import PUBLISHED, published
from attngeom.network import Architecture, default_attention
from attngeom.network.attention import KINDS

MAX_WIDTH = 65536
MAX_LAYERS = 256
INSTANT_PARAMETERS = 3000
"""Networks beyond this are not computed while the page waits, be their dimension as small as it may."""
MAX_PROVEN = 20000
"""Dimensions beyond this are not computed from the page; theorems answer at every size."""
PARTS = {
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
    widths = parse_integers(state["widths"], "widths", MAX_LAYERS + 1)
    if max(widths) > MAX_WIDTH:
        raise SizeError(f"widths: {max(widths):,} given; at most {MAX_WIDTH:,} is shown here")
    heads = state["heads"]
    if state["attention"]:
        attention = parse_integers(state["attention"], "attention widths", MAX_LAYERS)
    else:
        attention = default_attention(widths, heads)
    value = parse_integers(state["value_width"], "value width", 1)[0] if state["value_width"] else None
    sizes = attention[0] if len(attention) == 1 else attention
    return Architecture(
        widths, sizes, state["tokens"], state["kind"], heads, value, state["residual"], state["causal"]
    )  # fmt: skip


def split(answer: Dimension) -> list[tuple[str, int, Node]]:
    """The parameters: what the function sees, then what each symmetry hides; what is between the bounds is unknown."""
    if answer.dimension is None:
        known = [(name, size) for name, size in answer.fiber.items() if size and name != "unexplained"]
        seen: list[tuple[str, int, Node]] = [("at most the dimension", answer.upper_bound, None)]
    else:
        known = [(name, size) for name, size in answer.fiber.items() if size]
        seen = [("dimension", answer.dimension, "of the set of functions")]
    return [*seen, *((LOSSES[name], size, None) for name, size in known)]


def show_answer(answer: Dimension) -> Html:
    """The card of one answer; the page of the view and of a proof show the same."""
    value = "unknown" if answer.dimension is None else f"{answer.dimension:,}"
    small = tag("small", f"of {answer.num_parameters:,} parameters")
    head = tag("div", value, " ", small, class_="number", id="dimension")
    standing = standing_line(answer.standing, answer.reason)
    bar = stacked_bar(split(answer), f"{answer.num_parameters:,} parameters split by symmetry")
    lower = "not computed" if answer.lower_bound is None else f"{answer.lower_bound:,}"
    prime = "" if answer.prime is None else f" mod {answer.prime}"
    facts: dict[str, Node] = {
        "fiber dimension": "unknown" if answer.fiber_dimension is None else f"{answer.fiber_dimension:,}",
        "proven bounds": f"lower {lower}, upper {answer.upper_bound:,}",
        "method": f"{answer.method}{prime}, seed {answer.seed}, {answer.seconds:.3f} s",
    }
    if answer.error_probability is not None:
        facts["error probability"] = f"at most {answer.error_probability:.1e} that random points hide a larger one"
    return join((section("Dimension", head, standing), section("Where the parameters go", bar), pairs(facts)))


def _show_formula(known: DimensionFormula | None) -> Html:
    if known is None:
        return section("Formula", tag("p", "no formula has a value here; ask for a proof", class_="reason"))
    checks = (
        tag("li", "✓ " if holds else "✗ ", text, None if holds else " (fails)")
        for text, holds in known.hypotheses.items()
    )
    words = f"{known.value:,} by {known.source}, {known.status}" + ("" if known.applies else "; it does not apply")
    return section("Formula", tag("p", words), tag("ul", *checks, class_="checks", aria_label="hypotheses"))


class DimensionView(View):
    """Controls of an architecture, or a published model by its configuration."""

    name = "dimension"

    def __init__(self) -> None:
        models = [("", "the architecture below"), *((name, name) for name in PUBLISHED)]
        kinds = [(name, name) for name in KINDS]
        self.controls = (
            Choice(
                name="model",
                label="Published model",
                options=models,
                hint="by its configuration alone",
            ),
            Choice(name="kind", only="model=", label="Kind of attention", default="lightning", options=kinds),
            Text(name="widths", only="model=", label="Widths", default="3,3,3", hint="d₀, …, d_l"),
            Text(
                name="attention",
                only="model=",
                label="Attention widths",
                default="2",
                hint="one is repeated; none: d / heads",
            ),
            Number(name="heads", only="model=", label="Heads", default="1", low=1, high=128),
            Text(name="value_width", only="model=", label="Value width", hint="none: d / heads", longest=10),
            Number(name="tokens", only="model=", label="Tokens", default="3", low=1, high=10**6),
            Switch(name="causal", only="model=", label="causal mask"),
            Switch(name="residual", only="model=", label="skip connection"),
            Choice(
                name="method", only="model=", label="How to prove", default="auto", options=[(m, m) for m in REQUESTS]
            ),
            Number(name="seed", only="model=", label="Seed", default="0", low=0, high=2**32 - 1),
        )
        self.jobs = {"prove": self.prove}
        self.downloads = {"config": self.config}

    def config(self, state: State) -> tuple[str, bytes]:
        """The configuration of a published model, for the command line."""
        if not state["model"]:
            raise InputError("no published model is chosen; choose one")
        return f"{state['model']}.json", to_json(dict(PUBLISHED[state["model"]])).encode()

    def answer(self, state: State) -> Dimension:
        """The answer at once: computed where it takes an instant, else by theorem, formula or count."""
        architecture, seed = architecture_of(state), state["seed"]
        stated = stated_dimension(architecture, seed=seed)
        small = stated.upper.value <= INSTANT and architecture.num_parameters <= INSTANT_PARAMETERS
        return dimension(architecture, seed=seed) if small else stated

    def show(self, state: State) -> Html:
        if state["model"]:
            return self._show_model(state["model"])
        answer = self.answer(state)
        prove = job_button("Prove it", "prove")
        note = f"at most {MAX_PROVEN:,} dimensions are computed here" if answer.upper.value > MAX_PROVEN else ""
        return join((show_answer(answer), _show_formula(answer.formula), tag("p", prove, " ", note)))

    def _show_model(self, name: str) -> Html:
        found = redundancy(published(name))
        hidden = [(PARTS[part], size) for part in PARTS if (size := found.part(part))]  # type: ignore[arg-type]
        seen: list[tuple[str, int, Node]] = [("dimension", found.dimension, "of the set of functions")]
        whole = stacked_bar([*seen, ("hidden by symmetries", found.total, None)], f"parameters of {name}")
        parts = stacked_bar([(part, size, None) for part, size in hidden], f"hidden parameters of {name}", "h")
        head = tag("div", f"{found.dimension:,} ", tag("small", f"of {found.parameters:,} parameters"), class_="number")
        share = f"{100 * found.total / found.parameters:.3g} % of the parameters are not seen by the function."
        link = tag("a", "Take its configuration", href=f"/dimension/download/config?model={name}")
        rows = [[PARTS[term.part], f"{term.count:,}", term.group, term.lemma] for term in found.terms]
        listed = tag("ul", *(tag("li", line) for line in found.hypotheses))
        return join(
            (
                section(name, head, standing_line(found.standing, found.reason)),
                section("Where the parameters go", tag("p", share), whole),
                section("The hidden parameters", parts),
                section("In detail", table(("part", "count", "group", "lemma"), rows)),
                section("Hypotheses", listed),
                tag("p", link),
            )
        )

    def prove(self, state: State, progress: Progress) -> Html:
        """Bounds that are computed, with their evidence."""
        architecture = architecture_of(state)
        stated = stated_dimension(architecture)
        if stated.upper.value > MAX_PROVEN and stated.standing != "theorem":
            raise SizeError(f"a dimension of up to {stated.upper.value:,}; at most {MAX_PROVEN:,} are computed here")
        answer = dimension(architecture, prove=True, method=state["method"], seed=state["seed"], progress=progress)
        return tag("div", tag("h2", "Proof"), show_answer(answer), id="proof")

    def command(self, state: State) -> str:
        if state["model"]:
            return f"attngeom model inspect {state['model']}.json"
        words = ["attngeom dim", f"--widths {state['widths']}"]
        words += [f"--attention {state['attention']}"] if state["attention"] else []
        words += [f"--tokens {state['tokens']}", f"--kind {state['kind']}"]
        words += [f"--heads {state['heads']}"] if state["heads"] > 1 else []
        words += [f"--value-width {state['value_width']}"] if state["value_width"] else []
        words += [f"--{name}" for name in ("residual", "causal") if state[name]]
        words += [f"--method {state['method']}"] if state["method"] != "auto" else []
        words += [f"--seed {state['seed']}"] if state["seed"] else []
        return " ".join([*words, "--prove"]).replace(", ", ",")

    def python(self, state: State) -> str:
        if state["model"]:
            return (
                "from attngeom.models.presets import published; from attngeom.models import redundancy; "
                f"print(redundancy(published({state['model']!r})))"
            )
        record = architecture_of(state).to_json()
        given = ", ".join(f"{name}={value!r}" for name, value in record.items())
        return f"import attngeom; print(attngeom.dimension(attngeom.Architecture({given}), prove=True))"


VIEW = DimensionView()
