"""``attngeom fingerprint``: one line that all weights of a function share."""

from __future__ import annotations

from attngeom.canonical import fingerprint
from attngeom.cli.options import IgnoredSeed, Json, WeightsPath
from attngeom.cli.output import print_answer, titled
from attngeom.interop import read_weights


def fingerprint_command(weights: WeightsPath, json: Json = False, seed: IgnoredSeed = 0) -> None:
    """Print the fingerprint of exact weights: the digest of their canonical form, the same on the whole orbit.

    A folder of a model, or of a LoRA adapter, has one as well: see attngeom model fingerprint --help.
    """
    answer = fingerprint(read_weights(weights))
    print_answer(json, answer.to_json(), titled(answer.rows()))
