"""The differential of all coefficients of one lightning layer, written out: an oracle for ranks of one layer."""

import numpy as np

from attngeom.layer.coefficients import expand_matrices
from attngeom.network.weights import Head


def coefficient_jacobian(weights):
    """The differential of all coefficients of one lightning layer, over the domain of the weights: columns are weights.

    Rows are the coefficients of x_2^{(k,l)} x_1^{(m)} (which determine the layer if t ≥ 2), or for one token of
    x^{(k,l,m)}, of every output row.
    """
    domain, kind = weights.domain, 0 if weights.architecture.tokens == 1 else 1
    columns = []
    for head in weights.layers[0]:
        for letter, tensor in head.tensors.items():
            for index in np.ndindex(*tensor.shape):
                unit = domain.zeros(tensor.shape)
                unit[index] = domain.one
                columns.append(expand_matrices(*_varied(head, letter, unit, domain), domain)[kind].ravel())
    return np.stack(columns, axis=1)


def _varied(head, letter, unit, domain):
    """(Ȧ, V) or (A, V̇) along one tensor, with A = Kᵀ Q and V the value map: the other derivative is zero."""
    if letter in "QK":
        left, right = (head.K, unit) if letter == "Q" else (unit, head.Q)
        return domain.matmul(left.T, right), head.value_matrix(domain)
    varied = Head(head.Q, head.K, unit if letter == "V" else head.V, unit if letter == "O" else head.O)
    return head.attention_matrix(domain), varied.value_matrix(domain)
