"""
My table has numbers and categories
===================================

A ``ColumnTransformer`` scales the numbers and encodes the categories; the result goes to any
learner. (``gramian ridge houses.csv --target price --one-hot --scale standard`` does the same from
the command line.)
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.linear_model import Ridge
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from gramian import RBF, KernelRidge

rng = np.random.default_rng(0)
n = 1200
houses = pd.DataFrame(
    {
        "area": rng.gamma(8, 14, n),
        "age": rng.uniform(0, 90, n),
        "district": rng.choice(["centre", "river", "hill", "station"], n),
    }
)
level = houses.district.map({"centre": 1.5, "river": 1.2, "hill": 1.1, "station": 0.8})
decay = 0.75 + 0.25 * np.cos(houses.age / 14)  # old houses are worth more again
price = houses.area * level * decay * np.exp(0.1 * rng.standard_normal(n))

columns = make_column_transformer(
    (StandardScaler(), ["area", "age"]), (OneHotEncoder(), ["district"])
)
tables = train_test_split(houses, price, random_state=0)
linear = make_pipeline(columns, Ridge())
curved = make_pipeline(columns, KernelRidge("loo", kernel=RBF(0.15)))
for model in (linear, curved):
    model.fit(tables[0], tables[2])
    print(f"{type(model[-1]).__name__:12} R² on unseen houses: {model.score(*tables[1::2]):.3f}")

# %%
# What the models believe about a house of 110 m², by age and district:

figure, panels = plt.subplots(1, 2, figsize=(10, 3.8), sharey=True)
ages = np.linspace(0, 90, 60)
for axes, model, title in zip(panels, (linear, curved), ("linear", "kernel ridge")):
    for district in ("centre", "river", "hill", "station"):
        house = pd.DataFrame({"area": 110.0, "age": ages, "district": district})
        axes.plot(ages, model.predict(house), label=district)
    axes.set(title=title, xlabel="age")
panels[0].set_ylabel("price")
panels[1].legend(ncols=2, fontsize=9)
