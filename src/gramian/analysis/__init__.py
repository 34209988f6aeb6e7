"""What people look at: comparisons of approximations, and reports."""
