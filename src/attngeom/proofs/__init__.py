"""Certificates for third parties: brought to the newest version, checked by a lone file, exported to Coq."""
