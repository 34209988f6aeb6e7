"""Kernel matrices that are never stored whole: exact (Gram) or in factors (Factors)."""
