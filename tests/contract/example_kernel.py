"""A kernel from outside the package, as CONTRIBUTING says to write one."""

from gramian.kernels.distance import EuclideanKernel
from gramian.kernels.spectrum import Law, Mixing


class InverseMultiquadric(EuclideanKernel):
    """1 / sqrt(1 + gamma ||x - y||²)."""

    names = ("inverse_multiquadric",)

    def _scale(self):
        return self._gamma

    def _profile(self, u):
        u += 1.0
        u **= -0.5
        return u

    def spectrum(self):
        return [Law(mixings=(Mixing(self._gamma, 0.5),))]
