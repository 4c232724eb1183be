"""Ranks of programs: lower bounds mod p, symmetries found by linear algebra and proven node by node, the answer."""
