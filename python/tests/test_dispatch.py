"""scikit-learn and SciPy accept our arrays through the array API."""

from __future__ import annotations

import os

os.environ["SCIPY_ARRAY_API"] = "1"

import numpy as np
import pytest

import tenon as tn

ROOT = os.environ.get("TENON_SOURCE") or os.path.join(os.path.dirname(__file__), "..", "..")
if not os.path.isdir(os.path.join(ROOT, "build", "plugins", "python")):  # where they were fetched they must work
    pytest.importorskip("sklearn")
    pytest.importorskip("scipy")

import scipy.cluster.vq as vq
import scipy.integrate as integrate
import scipy.signal as signal
import scipy.special as special
import scipy.stats as stats
import sklearn
import sklearn.metrics as metrics
import sklearn.preprocessing as preprocessing

random = np.random.default_rng(0)
y, p = random.integers(0, 2, 50), random.integers(0, 2, 50)
X, x = random.normal(size=(50, 4)), random.normal(size=100)
f1, f2 = random.normal(size=50), random.normal(size=50)

CASES = {
    "sk.accuracy_score": lambda c: metrics.accuracy_score(c(y), c(p)),
    "sk.zero_one_loss": lambda c: metrics.zero_one_loss(c(y), c(p)),
    "sk.r2_score": lambda c: metrics.r2_score(c(f1), c(f2)),
    "sk.mean_squared_error": lambda c: metrics.mean_squared_error(c(f1), c(f2)),
    "sk.mean_absolute_error": lambda c: metrics.mean_absolute_error(c(f1), c(f2)),
    "sk.f1_score": lambda c: metrics.f1_score(c(y), c(p)),
    "sk.precision_score": lambda c: metrics.precision_score(c(y), c(p)),
    "sk.cosine_similarity": lambda c: metrics.pairwise.cosine_similarity(c(X)),
    # To other points: for those of X to each other it clears the diagonal through a reshaped view, which we do not have.
    "sk.euclidean_distances": lambda c: metrics.pairwise.euclidean_distances(c(X), c(X[:10] + 1)),
    "sk.rbf_kernel": lambda c: metrics.pairwise.rbf_kernel(c(X)),
    "sk.MinMaxScaler": lambda c: preprocessing.MinMaxScaler().fit_transform(c(X)),
    "sk.MaxAbsScaler": lambda c: preprocessing.MaxAbsScaler().fit_transform(c(X)),
    "sk.Normalizer": lambda c: preprocessing.Normalizer().fit_transform(c(X)),
    "sk.Binarizer": lambda c: preprocessing.Binarizer().fit_transform(c(X)),
    "sk.KernelCenterer": lambda c: preprocessing.KernelCenterer().fit_transform(c(X @ X.T)),
    "sp.zscore": lambda c: stats.zscore(c(x)),
    "sp.skew": lambda c: stats.skew(c(x)),
    "sp.kurtosis": lambda c: stats.kurtosis(c(x)),
    "sp.moment": lambda c: stats.moment(c(x), 2),
    "sp.gmean": lambda c: stats.gmean(c(np.abs(x))),
    "sp.hmean": lambda c: stats.hmean(c(np.abs(x))),
    "sp.variation": lambda c: stats.variation(c(x)),
    "sp.ttest_1samp": lambda c: stats.ttest_1samp(c(x), 0.0).statistic,
    "sp.pearsonr": lambda c: stats.pearsonr(c(f1), c(f2)).statistic,
    "sp.entropy": lambda c: stats.entropy(c(np.abs(x))),
    "sp.tmean": lambda c: stats.tmean(c(x)),
    "sp.sem": lambda c: stats.sem(c(x)),
    "sp.whiten": lambda c: vq.whiten(c(X)),
    "sp.logsumexp": lambda c: special.logsumexp(c(x)),
    "sp.softmax": lambda c: special.softmax(c(x)),
    "sp.log_softmax": lambda c: special.log_softmax(c(x)),
    "sp.trapezoid": lambda c: integrate.trapezoid(c(x)),
    "sp.simpson": lambda c: integrate.simpson(c(x)),
    "sp.cumulative_trapezoid": lambda c: integrate.cumulative_trapezoid(c(x)),
    "sp.detrend": lambda c: signal.detrend(c(x), type="constant"),
    "sp.rankdata": lambda c: stats.rankdata(c(x)),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", CASES)
def test_dispatch(name):
    with sklearn.config_context(array_api_dispatch=True):
        theirs, ours = CASES[name](np.asarray), CASES[name](tn.asarray)
    np.testing.assert_allclose(np.asarray(ours), np.asarray(theirs), rtol=1e-6, atol=1e-9)
