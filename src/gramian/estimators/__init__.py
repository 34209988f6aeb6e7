"""What approximations and learners share as scikit-learn estimators."""
