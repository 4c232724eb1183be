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
    A Hugging Face folder, without torch: which tensor is wrong?
    """)
    return


@app.cell
def _(folder):
    from attngeom.models import compare, open_model

    model = compare(open_model(folder / "model"), open_model(folder / "model-moved"))
    assert model.same_function is True
    print(model)
    return


if __name__ == "__main__":
    app.run()
