"""Recurrent mixers as programs: convolutions, gates and states of consecutive tokens, the first of them included."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from attngeom.models.mixers import DAMPING, INNER, LENGTH_EPS, RecurrentMixer
from attngeom.models.programs.parts import SeenVector, SublayerOutput
from attngeom.models.programs.units import UnitParts


class MixerParts(UnitParts):
    """What a mixer adds to the last of some consecutive tokens."""

    def mix(self, name: str, own: RecurrentMixer, tokens: Sequence[SeenVector], rows: int) -> SublayerOutput:
        """States from the first token on, and what the last one reads of them, one row for each place."""
        b = self.b
        tokens = [self.at_places(token) for token in tokens]
        y = self.seen_state(name, own, tokens) if own.has_keys else self.damped(name, own, tokens)
        line = self.linear(f"{name}.output_gate", tokens[-1], (own.heads, own.value_dim), own.bias)
        gate = self.activation(own.gating, line)
        y = b.multiply(y, gate) if own.gates_first else y
        y = self.gained(name, own, y)
        y = y if own.gates_first else b.multiply(y, gate)
        written = b.contract("phv,hdv->pd", y, b.parameter(f"{name}.output", (own.heads, rows, own.value_dim)))
        if own.output_bias:
            written = b.add(written, b.parameter(f"{name}.output_bias", (rows,)))
        return SublayerOutput(written)

    def seen_state(self, name: str, own: RecurrentMixer, tokens: Sequence[SeenVector]) -> int:
        """What the query of the last token reads of the state."""
        b, share = self.b, own.heads // own.groups
        query = self.spread(self.activation("silu", self.convolved(name, own, "query", tokens)), share)
        state: int | None = None
        value = query
        for last in range(1, len(tokens) + 1):
            key = self.spread(self.activation("silu", self.convolved(name, own, "key", tokens[:last])), share)
            value = self.activation("silu", self.convolved(name, own, "value", tokens[:last]))
            state = self.written(name, own, tokens[last - 1], state, key, value)
        assert state is not None
        if own.corrects:
            query = b.multiply(self.direction(query), self.number(own.head_dim ** Fraction(-1, 2)))
        y = b.contract("pha,phav->phv", query, state)
        if own.rule == "ssd":
            y = b.add(y, b.contract("h,phv->phv", b.parameter(f"{name}.skip", (own.heads,)), value))
        return y

    def damped(self, name: str, own: RecurrentMixer, tokens: Sequence[SeenVector]) -> int:
        """The states of values, channel by channel, at the last token."""
        b, shape = self.b, own.channels["value"]
        speed = b.exp(b.parameter(f"{name}.damping", shape))
        if not self.acting:  # softplus(λ) is any positive number
            speed = b.formal("log", b.add(self.number(1), speed))
        y: int | None = None
        for last in range(1, len(tokens) + 1):
            value = self.convolved(name, own, "value", tokens[:last])
            gates = {
                part: b.sigmoid(
                    b.add(
                        b.contract("hcv,phv->phc", b.parameter(f"{name}.{part}", (*shape, own.value_dim)), value),
                        b.parameter(f"{name}.{part}_bias", shape),
                    )
                )
                for part in INNER
            }
            new = b.multiply(gates["input_gate"], value)
            if y is None:
                y = new
                continue
            decay = b.exp(b.multiply(b.contract("hc,phc->phc", speed, gates["recurrence_gate"]), self.number(-DAMPING)))
            share = b.root(b.subtract(self.number(1), b.multiply(decay, decay)))
            y = b.add(b.multiply(decay, y), b.multiply(share, new))
        assert y is not None
        return y

    def spread(self, x: int, share: int) -> int:
        """Rows of groups (places, G, a) for the heads of each."""
        return self.b.move([x], np.repeat(self.b.numbers([x])[0], share, axis=1))

    def convolved(self, name: str, own: RecurrentMixer, part: str, tokens: Sequence[SeenVector]) -> int:
        """The convolution of a map at the last of the tokens; zeros stand before the first one."""
        b, shape = self.b, own.channels[part]
        if not own.convolves:
            return self.linear(f"{name}.{part}", tokens[-1], shape, own.bias)
        taps = b.parameter(f"{name}.{part}_taps", (*shape, own.taps))
        total: int | None = None
        for back, token in enumerate(reversed(tokens[-own.taps :])):
            tap = b.move([taps], b.numbers([taps])[0][..., own.taps - 1 - back])
            row = self.linear(f"{name}.{part}", token, shape, own.bias)
            term = b.contract("hc,phc->phc", tap, row)
            total = term if total is None else b.add(total, term)
        assert total is not None
        if own.conv_bias:
            total = b.add(total, b.parameter(f"{name}.{part}_shift", shape))
        return total

    def written(
        self, name: str, own: RecurrentMixer, token: SeenVector, state: int | None, key: int, value: int
    ) -> int:
        """The state after a token."""
        b, heads = self.b, (own.heads,)
        if own.decays is not None:
            new = b.contract("pha,phv->phav", key, value)
            fixed = b.constant(np.array([Fraction(float(decay)) for decay in own.decays], dtype=object))
            return new if state is None else b.add(new, b.contract("phav,h->phav", state, fixed))
        # Of a bias of the map and the number that is added to it the sum acts. Inputs whose steps are above the least
        # one are an open set, where the derivative has the largest rank of the formula without it.
        line = self.linear(f"{name}.step", token, heads, own.bias and not self.acting)
        line = b.add(line, b.parameter(f"{name}.step_shift", heads))
        step = b.formal("log", b.add(self.number(1), b.exp(line)))
        strength = step
        if own.corrects:
            strength = b.sigmoid(self.linear(f"{name}.strength", token, heads, own.bias))
            strength = b.scale(strength, 2) if own.reflects else strength
            key = self.direction(key)
        if state is not None:
            speed = b.exp(b.parameter(f"{name}.decay", heads))
            state = b.contract("phav,ph->phav", state, b.exp(b.scale(b.contract("h,ph->ph", speed, step), -1)))
            if own.corrects:
                value = b.subtract(value, b.contract("pha,phav->phv", key, state))
        new = b.contract("pha,phv->phav", b.contract("ph,pha->pha", strength, key), value)
        return new if state is None else b.add(state, new)

    def direction(self, x: int) -> int:
        """x divided by the root of its squares and a small number, over the last axis."""
        b = self.b
        square = b.add(b.contract("pha,pha->ph", x, x), self.number(LENGTH_EPS))
        return b.contract("pha,ph->pha", x, b.inverse(b.root(square)))

    def gained(self, name: str, own: RecurrentMixer, y: int) -> int:
        """The norm of values (places, heads, v) over one head, or those of a group, times its gains."""
        if own.norm is None:
            return y
        b, shape = self.b, self.b.shape(y)
        parts = b.reshape(y, (shape[0], own.heads * own.value_dim // own.normed, own.normed))
        y = b.reshape(self.normalised(own.norm, parts), shape)
        gain = b.parameter(f"{name}.gain", own.gains)
        return b.multiply(y, b.reshape(gain, (own.value_dim,)) if own.shares_gains else gain)
