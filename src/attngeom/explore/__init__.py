"""A page to look at and play with, served on loopback, on the real engine: views, their state, their drawings.

A view is a table of controls and a function from their values to a page; the values live in the address, so a link
reproduces what is seen and windows share nothing. Long work runs in a process of its own that can be ended.
"""
