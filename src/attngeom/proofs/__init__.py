"""Certificates for third parties: brought to the newest version, checked by a lone file, exported to Coq."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attngeom.rooms import names_of, open_room

if TYPE_CHECKING:
    from attngeom.proofs.coq import check_coq, export_certificate, export_comparison, write_coq
    from attngeom.proofs.standalone import check_standalone

__all__ = ["check_coq", "check_standalone", "export_certificate", "export_comparison", "write_coq"]

_NAMES = names_of(
    {
        "coq": ("check_coq", "export_certificate", "export_comparison", "write_coq"),
        "standalone": ("check_standalone",),
    }
)
__getattr__, __dir__ = open_room(__name__, _NAMES)
