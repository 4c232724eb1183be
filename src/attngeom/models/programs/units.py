"""MLPs and experts as programs: activations, gates, clamps, routers."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from attngeom.models.programs.parts import Parts, SeenVector, SublayerOutput
from attngeom.models.specification import MLP, Experts

GELU_CUBIC, GELU_SCALE, QUICK = 0.044715, math.sqrt(2 / math.pi), 1.702


class UnitParts(Parts):
    """What hidden units add to a token."""

    def units(self, name: str, mlp: MLP, u: SeenVector, rows: int) -> SublayerOutput:
        """down(φ(gate) ∘ up), or down(φ(up))."""
        b = self.b
        up = self.linear(f"{name}.up", u, (mlp.width,), mlp.up_bias)
        if mlp.gated:
            gate = self.linear(f"{name}.gate", u, (mlp.width,), mlp.up_bias)
            if self.acting and mlp.limit is not None:
                # Acting rows are measured in limits, so that random ones reach them.
                gate, up = (b.multiply(x, self.number(mlp.limit)) for x in (gate, up))
            gate, up = self.limited(mlp, gate, up)
            one = mlp.activation == "swiglu_oai"
            hidden = b.multiply(self.activation(mlp.activation, gate), b.add(up, self.number(1)) if one else up)
        else:
            hidden = self.activation(mlp.activation, up)
        down = b.parameter(f"{name}.down", (rows, mlp.width))
        y = b.contract("pm,dm->pd", hidden, down)
        if mlp.down_bias:
            y = b.add(y, b.parameter(f"{name}.down_bias", (rows,)))
        return SublayerOutput(y, hidden, mlp.down_bias)

    def limited(self, mlp: MLP, gate: int, up: int) -> tuple[int, int]:
        """min(gate, limit) and up between −limit and limit."""
        if mlp.limit is None:
            return gate, up
        b, limit = self.b, self.number(mlp.limit)
        low = b.scale(b.maximum(b.scale(up, -1), b.scale(limit, -1)), -1)
        return b.scale(b.maximum(b.scale(gate, -1), b.scale(limit, -1)), -1), b.maximum(low, b.scale(limit, -1))

    def activation(self, name: str, x: int) -> int:
        b = self.b
        if name == "relu":
            return b.relu(x)
        if name == "relu2":
            positive = b.relu(x)
            return b.multiply(positive, positive)
        if name == "gelu":
            return b.gelu(x)
        if name == "tanh":
            return b.tanh(x)
        if name == "sigmoid":
            return b.sigmoid(x)
        if name == "gelu_tanh":
            cube = b.multiply(b.multiply(b.multiply(x, x), x), self.number(GELU_CUBIC))
            # (1 + tanh z)/2 = σ(2z).
            return b.multiply(x, b.sigmoid(b.multiply(b.add(x, cube), self.number(2 * GELU_SCALE))))
        slope = b.multiply(x, self.number(QUICK)) if name in ("quick_gelu", "swiglu_oai") else x
        return b.multiply(x, b.sigmoid(slope))

    def experts(self, name: str, part: Experts, u: SeenVector, rows: int) -> SublayerOutput:
        """The experts that run, weighted by the router, and the shared one."""
        b = self.b
        kept = self.routed(name, part, self.linear(f"{name}.router", u, (part.count,), part.router_bias))
        total = None
        for index in range(part.count):
            weight = b.move([kept], b.numbers([kept])[0][..., index : index + 1])
            if part.scales_inputs:
                scaled = replace(u, node=b.multiply(weight, u.node))
                term = self.units(f"{name}.{index}", part.expert, scaled, rows).node
            else:
                term = b.multiply(weight, self.units(f"{name}.{index}", part.expert, u, rows).node)
            total = term if total is None else b.add(total, term)
        assert total is not None
        if part.shared is not None:
            shared = self.units(f"{name}.shared", part.shared, u, rows).node
            if part.shared_gate:
                shared = b.multiply(b.sigmoid(self.linear(f"{name}.shared_gate", u, (1,), False)), shared)
            total = b.add(total, shared)
        return SublayerOutput(total)

    def routed(self, name: str, part: Experts, logits: int) -> int:
        """The weights of the experts, 0 for those that do not run."""
        b = self.b
        shares = b.softmax(logits, 1) if part.router == "softmax" else b.sigmoid(logits)
        scores = logits if part.router == "softmax" else shares
        kept = b.multiply(shares, self.chosen(part, scores)) if part.active < part.count else shares
        if part.normalised:
            kept = b.divide(kept, b.sum(kept, [1], keepdims=True))
        return kept if part.factor == 1.0 else b.multiply(kept, self.number(part.factor))

    def chosen(self, part: Experts, scores: int) -> int:
        """1 for the experts of the best groups that are the best of them, else 0.

        Scores have the order of the shares: for softmax they are the logits, whose gaps do not fade.
        """
        b = self.b
        if part.expert_groups > 1:
            size = part.count // part.expert_groups
            split = b.reshape(scores, (*b.shape(scores)[:-1], part.expert_groups, size))
            best = b.multiply(split, self.largest(split, min(size, 2 if part.router == "sigmoid" else 1)))
            groups = self.largest(b.sum(best, [-1]), part.active_groups)
            mask = b.move([groups], np.repeat(b.numbers([groups])[0], size, axis=-1))
            # What is kept is positive, and what is 0 in the whole region has no order.
            scores = b.multiply(self.positive(scores), mask)
        return self.largest(scores, part.active)

    def positive(self, x: int) -> int:
        """x − min x + 1 over the last axis."""
        b, order = self.b, self.b.order(x)
        last = b.move([order], b.numbers([order])[0][..., -1, :])
        return b.add(b.subtract(x, b.sum(b.multiply(last, x), [-1], keepdims=True)), self.number(1))

    def largest(self, x: int, count: int) -> int:
        """1 for the largest entries of the last axis, else 0."""
        order = self.b.order(x)
        numbers = self.b.numbers([order])[0][..., :count, :]
        return self.b.sum(self.b.move([order], numbers), [-2])
