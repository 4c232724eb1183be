"""Redundant dimensions by formula: of parts, of blocks, of whole models."""
