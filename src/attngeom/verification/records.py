"""The record that travels: a claim with its witness and provenance, sealed by a digest."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from attngeom.errors import FormatError
from attngeom.files import check_header
from attngeom.network.architecture import Architecture
from attngeom.streams import as_plain, iterate_json
from attngeom.verification.reading import describe_claimed
from attngeom.version import __version__

NEWEST = 2


@dataclass(frozen=True)
class Certificate:
    """A claim, the witness that proves it and where it came from, all JSON values (or long arrays of them).

    ``claim["kind"]`` names what is claimed: "layer" (what one attention layer can compute), "layers" (several of them),
    "heads", "uniqueness" (of given heads), "functions" (whether two networks are one), "dimension", "laws" (what
    gradient flow conserves), "learning-coefficient" or "network" (a program).
    Version 2 has named points (:mod:`attngeom.exact.points`) where version 1 has NumPy seeds, and says every field of
    an architecture; both are read. The file carries a digest of its content, so that accidental damage is seen even
    where the mathematics would survive it.

    >>> record = Certificate({"kind": "dimension", "dimension": 3}, {}, {"seed": 0}).to_json()
    >>> Certificate.from_json(record).to_json() == record
    True
    """

    claim: Mapping[str, Any]
    witness: Mapping[str, Any]
    provenance: Mapping[str, Any]
    version: int = NEWEST

    @property
    def digest(self) -> str:
        """SHA-256 of the claim, witness and provenance, independent of the order of keys and of white space."""
        digest = hashlib.sha256()
        content = {"claim": self.claim, "witness": self.witness, "provenance": self.provenance}
        for piece in iterate_json(content, canonical=True):
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
            "version": self.version,
            "claim": dict(self.claim),
            "witness": dict(self.witness),
            "provenance": {**provenance, "sha256": sealed.digest},
        }

    @classmethod
    def from_json(cls, record: Any, name: str = "certificate") -> Certificate:
        """Read the JSON object of the file format; FormatError unless it is complete and matches its digest."""
        check_header(record, "certificate", name, NEWEST)
        expected = {"format", "version", "claim", "witness", "provenance"}
        if set(record) != expected:
            odd = sorted(set(record) ^ expected)[0]
            raise FormatError(f"{name}: key {str(odd)[:40]!r} is missing or unknown; {sorted(expected)} are required")
        claim, witness, provenance = record["claim"], record["witness"], record["provenance"]
        if not all(isinstance(part, dict) for part in (claim, witness, provenance)):
            raise FormatError(f"{name}: claim, witness and provenance must be JSON objects")
        rest = {key: value for key, value in provenance.items() if key != "sha256"}
        certificate = cls(claim, witness, rest, record["version"])
        if provenance.get("sha256") != certificate.digest:
            raise FormatError(f"{name}: the digest does not match the content; the file was altered or damaged")
        return certificate

    def check_version(self) -> None:
        """Version 2 says every field of an architecture, and names points; only a transcript has a NumPy seed."""
        if self.version == 1:
            if "point" in _keys(self.witness):
                raise FormatError("a named point in a certificate of version 1 found; version 2 has them")
            return
        given = self.claim.get("architecture")
        if isinstance(given, Mapping):
            said = describe_claimed(Architecture.from_json(given))
            odd = next((str(key) for key in {**said, **given} if key not in given or said.get(key) != given[key]), None)
            if odd is not None:
                raise FormatError(f"architecture key {odd[:40]!r} is missing or not written out; {given!r:.80} found")
        if "seed" in _keys(self.witness):
            raise FormatError("a seed in a certificate of version 2 found; named points are required")


def _keys(witness: Mapping[str, Any]) -> set[str]:
    """The keys of a witness and of its two bounds, those of transcripts left out."""
    parts = [witness, *(witness.get(bound) for bound in ("lower", "upper"))]
    return {key for part in parts if isinstance(part, Mapping) and part.get("method") != "krylov" for key in part}
