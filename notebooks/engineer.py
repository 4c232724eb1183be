"""For the engineer: two checkpoints, one function."""

import marimo

app = marimo.App()


@app.cell
def _():
    import marimo as mo

    import attngeom

    return attngeom, mo


@app.cell
def _():
    import tempfile
    from pathlib import Path

    from attngeom.demo import write_demo

    folder = write_demo(Path(tempfile.mkdtemp()))
    return (folder,)


@app.cell
def _(mo):
    mo.md(r"""
    # Two checkpoints

    The files `trained.safetensors` and `moved.safetensors` have no tensor in common.
    """)
    return


@app.cell
def _(attngeom, folder):
    first = attngeom.read_weights(folder / "trained.safetensors")
    second = attngeom.read_weights(folder / "moved.safetensors")
    first.plot()
    return first, second


@app.cell
def _(attngeom, first, second):
    found = attngeom.compare(first, second)
    assert found.same_function is True
    found
    return (found,)


@app.cell
def _(mo):
    mo.md(r"""
    Canonical forms: one representative for each function, so both files give the same weights, to rounding.
    """)
    return


@app.cell
def _(attngeom, first, second):
    import numpy as np

    forms = [attngeom.canonicalize(weights).weights.vector() for weights in (first, second)]
    gap = float(np.abs(forms[0] - forms[1]).max() / np.abs(forms[0]).max())
    assert gap < 1e-8
    gap
    return


@app.cell
def _(mo):
    mo.md(r"""
    A Hugging Face folder, without torch: the same function in other weights.
    """)
    return


@app.cell
def _(folder):
    from attngeom.models import compare, open_model

    same = compare(open_model(folder / "model"), open_model(folder / "model-moved"))
    assert same.same_function is True
    same
    return compare, open_model


@app.cell
def _(mo):
    mo.md(r"""
    One tensor is one percent too large. Which?
    """)
    return


@app.cell
def _(compare, folder, open_model):
    import json

    from safetensors.numpy import load_file

    state = load_file(folder / "model-moved" / "model.safetensors")
    name = "model.layers.1.self_attn.o_proj.weight"
    state[name] = state[name] * state[name].dtype.type(1.01)
    config = json.loads((folder / "model" / "config.json").read_text())
    wrong = compare(open_model(folder / "model"), open_model(state, config))
    assert wrong.same_function is False and name in wrong.reason
    wrong
    return


if __name__ == "__main__":
    app.run()
