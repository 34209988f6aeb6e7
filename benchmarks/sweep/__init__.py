"""gramian against scikit-learn at every size, from a thousand rows up."""
