"""The record that travels: a claim with its witness and provenance, sealed by a digest."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from attngeom.errors import FormatError
from attngeom.files import check_header
from attngeom.streams import as_plain, iterate_json
from attngeom.version import __version__


@dataclass(frozen=True)
class Certificate:
    """A claim, the witness that proves it and where it came from, all JSON values (or long arrays of them).

    ``claim["kind"]`` names what is claimed: "layer" (what one attention layer can compute), "dimension", "laws" (what
    gradient flow conserves) or "learning-coefficient". The file carries a digest of its content, so that accidental
    damage is seen even where the mathematics would survive it.

    >>> record = Certificate({"kind": "dimension", "dimension": 3}, {}, {"seed": 0}).to_json()
    >>> Certificate.from_json(record).to_json() == record
    True
    """

    claim: Mapping[str, Any]
    witness: Mapping[str, Any]
    provenance: Mapping[str, Any]

    @property
    def digest(self) -> str:
        """SHA-256 of the claim, witness and provenance, independent of the order of keys and of white space."""
        digest = hashlib.sha256()
        for piece in iterate_json(vars(self), canonical=True):
            digest.update(piece.encode())
        return digest.hexdigest()

    def to_json(self) -> dict[str, Any]:
        """The JSON object of the file format."""
        return dict(as_plain(self.sealed()))

    def sealed(self) -> dict[str, Any]:
        """The JSON object of the file format, in which long arrays may stand."""
        provenance = {"version": __version__, **self.provenance}
        sealed = Certificate(self.claim, self.witness, provenance)
        return {
            "format": "attngeom/certificate",
            "version": 1,
            "claim": dict(self.claim),
            "witness": dict(self.witness),
            "provenance": {**provenance, "sha256": sealed.digest},
        }

    @classmethod
    def from_json(cls, record: Any, name: str = "certificate") -> Certificate:
        """Read the JSON object of the file format; FormatError unless it is complete and matches its digest."""
        check_header(record, "certificate", name)
        expected = {"format", "version", "claim", "witness", "provenance"}
        if set(record) != expected:
            odd = sorted(set(record) ^ expected)[0]
            raise FormatError(f"{name}: key {str(odd)[:40]!r} is missing or unknown; {sorted(expected)} are required")
        claim, witness, provenance = record["claim"], record["witness"], record["provenance"]
        if not all(isinstance(part, dict) for part in (claim, witness, provenance)):
            raise FormatError(f"{name}: claim, witness and provenance must be JSON objects")
        found = cls(claim, witness, {key: value for key, value in provenance.items() if key != "sha256"})
        if provenance.get("sha256") != found.digest:
            raise FormatError(f"{name}: the digest does not match the content; the file was altered or damaged")
        return found
