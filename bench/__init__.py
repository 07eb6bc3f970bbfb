"""Side-by-side measurements: this project against a2a-sdk, against its own server library bare, and as a gateway.

``python -m bench`` runs them. The figure is CPU time of the process under test per unit of work, never wall time:
on a shared machine only ratios taken in one run mean something.
"""
