"""Writes schedules.json: learning rates of Keras' schedules at iterations 0..29, and ReduceLROnPlateau on given metrics (Keras 3.15, JAX)."""
import json
import os

os.environ["KERAS_BACKEND"] = "jax"
os.environ["JAX_ENABLE_X64"] = "1"
import keras
import numpy as np

keras.config.set_floatx("float64")
S = keras.optimizers.schedules
schedules = {
    "cosine": S.CosineDecay(0.1, 24, alpha=0.0),
    "cosine_warmup": S.CosineDecay(0.0, 20, alpha=0.1, warmup_target=0.1, warmup_steps=4),
    "cosine_from": S.CosineDecay(0.025, 20, alpha=0.1, warmup_target=0.1, warmup_steps=4),
    "exponential": S.ExponentialDecay(0.1, 6, 0.5),
    "staircase": S.ExponentialDecay(0.1, 6, 0.5, staircase=True),
    "polynomial": S.PolynomialDecay(0.1, 24, 0.01, power=2.0),
    "piecewise": S.PiecewiseConstantDecay([3, 11], [0.1, 0.01, 0.001]),
}
made = {"rates": {k: [float(s(i)) for i in range(30)] for k, s in schedules.items()}}

metrics = [1.0, 0.9, 0.95, 0.89999, 0.91, 0.92, 0.93, 0.8, 0.85, 0.85, 0.85, 0.85, 0.85, 0.85, 0.85, 0.85, 0.85, 0.85]
made["metrics"] = metrics
made["plateau"] = []
for mode, kw in [("min", dict(patience=2)), ("min", dict(patience=2, cooldown=2, factor=0.5)), ("max", dict(patience=3, min_delta=0.0)),
                 ("min", dict(patience=1, min_lr=0.004)), ("min", dict(patience=0, factor=0.5, cooldown=1))]:
    class Model:
        optimizer = keras.optimizers.SGD(0.1)
        metrics = []

    cb = keras.callbacks.ReduceLROnPlateau(monitor="m", mode=mode, **kw)
    cb.set_model(Model())
    cb.on_train_begin()
    rates = []
    for e, m in enumerate(metrics):
        cb.on_epoch_end(e, {"m": m})
        rates.append(float(np.asarray(cb.model.optimizer.learning_rate.value)))
    made["plateau"].append({"mode": mode, "options": kw, "rates": rates})

with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "schedules.json"), "w") as f:
    json.dump(made, f, separators=(",", ":"))
    f.write("\n")
