"""The complete surface in one topology, and input for it: whatever an operator is, it must not see how input is cut."""
