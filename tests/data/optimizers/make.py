"""Writes keras.json or torch.json: weights and optimizer state after each of four steps with given gradients, in float64.

Usage: make.py keras|torch   (Keras 3.15 with JAX; torch 2.x). Both files hold the same start and gradients.
"""
import json
import os
import sys

import numpy as np

STEPS = 4
SHAPES = [(3, 5), (4,)]


def drawn():
    """Start and gradients: multiples of 1/64, exact in float32; the second gradient is large, so that clipping matters."""
    r = np.random.default_rng(7)
    draw = lambda shape, size: np.round(r.normal(0, size, shape) * 64) / 64
    start = [draw(s, 1) for s in SHAPES]
    return start, [[draw(s, 4 if step == 1 else 0.25) for s in SHAPES] for step in range(STEPS)]


CASES = {
    "sgd": ("sgd", dict(lr=0.1)),
    "momentum": ("momentum", dict(lr=0.1)),
    "nesterov": ("nesterov", dict(lr=0.1)),
    "rmsprop": ("rmsprop", dict(lr=0.01)),
    "rmsprop_momentum": ("rmsprop", dict(lr=0.01, momentum=0.9)),
    "rmsprop_centered": ("rmsprop", dict(lr=0.01, centered=True)),
    "rmsprop_both": ("rmsprop", dict(lr=0.01, momentum=0.8, centered=True, rho=0.95, epsilon=1e-3)),
    "adam": ("adam", dict(lr=0.01)),
    "adam_betas": ("adam", dict(lr=0.01, beta1=0.5, beta2=0.9, epsilon=1e-2)),
    "adamw": ("adamw", dict(lr=0.01)),
    "adagrad": ("adagrad", dict(lr=0.1)),
    "clip_norm": ("momentum", dict(lr=0.1, clip_norm=0.75)),
    "global_clip_norm": ("momentum", dict(lr=0.1, global_clip_norm=1.5)),
    "clip_value": ("adam", dict(lr=0.01, clip_value=0.25)),
    "sgd_decay": ("momentum", dict(lr=0.1, weight_decay=0.25)),
    "adam_decay": ("adam", dict(lr=0.01, weight_decay=0.25)),
    "rmsprop_decay": ("rmsprop", dict(lr=0.01, weight_decay=0.25)),
}


def keras_run(name, o, start, gradients):
    import keras

    names = dict(lr="learning_rate", beta1="beta_1", beta2="beta_2", clip_norm="clipnorm", clip_value="clipvalue",
                 global_clip_norm="global_clipnorm", ema="ema_momentum", accumulate="gradient_accumulation_steps")
    kw = {names.get(k, k): v for k, v in o.items()}
    if "ema" in o:
        kw["use_ema"] = True
    if name in ("momentum", "nesterov"):
        kw["momentum"] = 0.9
        kw["nesterov"] = name == "nesterov"
    make = dict(sgd="SGD", momentum="SGD", nesterov="SGD", rmsprop="RMSprop", adam="Adam", adamw="AdamW", adagrad="Adagrad")[name]
    opt = getattr(keras.optimizers, make)(**kw)
    weights = [keras.Variable(w, dtype="float64", name="p%d" % i) for i, w in enumerate(start)]
    opt.build(weights)
    out = []
    for g in gradients:
        opt.apply([keras.ops.convert_to_tensor(a, "float64") for a in g])
        slots = {}
        for v in opt.variables:
            for i in range(len(weights)):
                if "/p%d_" % i in v.path:
                    slots.setdefault(v.path.split("/p%d_" % i)[1], {})[i] = np.asarray(v.value).ravel().tolist()
        out.append(dict(weights=[np.asarray(w.value).ravel().tolist() for w in weights],
                        slots={k: [v[i] for i in range(len(weights))] for k, v in slots.items() if len(v) == len(weights)}))
    return out


def torch_run(name, o, start, gradients):
    import torch

    weights = [torch.nn.Parameter(torch.tensor(w, dtype=torch.float64)) for w in start]
    o = dict(o)
    clip = {k: o.pop(k) for k in ("clip_norm", "global_clip_norm", "clip_value") if k in o}
    if "beta1" in o:
        o["betas"] = (o.pop("beta1"), o.pop("beta2"))
    names = dict(epsilon="eps", rho="alpha")
    kw = {names.get(k, k): v for k, v in o.items()}
    if name in ("momentum", "nesterov"):
        kw["momentum"] = 0.9
        kw["nesterov"] = name == "nesterov"
    make = dict(sgd="SGD", momentum="SGD", nesterov="SGD", rmsprop="RMSprop", adam="Adam", adamw="AdamW", adagrad="Adagrad")[name]
    opt = getattr(torch.optim, make)(weights, **kw)
    ours = dict(momentum_buffer="momentum", square_avg="velocity", grad_avg="average_gradient", exp_avg="momentum", exp_avg_sq="velocity",
                sum="accumulator")
    out = []
    for g in gradients:
        for w, a in zip(weights, g):
            w.grad = torch.tensor(a, dtype=torch.float64)
        if "clip_value" in clip:
            torch.nn.utils.clip_grad_value_(weights, clip["clip_value"])
        if "global_clip_norm" in clip:
            torch.nn.utils.clip_grad_norm_(weights, clip["global_clip_norm"])
        if "clip_norm" in clip:
            for w in weights:
                torch.nn.utils.clip_grad_norm_([w], clip["clip_norm"])
        opt.step()
        slots = {}
        for w in weights:
            for k, v in opt.state[w].items():
                if k in ours and v is not None:
                    slots.setdefault(ours[k], []).append(v.numpy().ravel().tolist())
        out.append(dict(weights=[w.detach().numpy().ravel().tolist() for w in weights], slots=slots))
    return out


def main():
    which = sys.argv[1]
    start, gradients = drawn()
    cases = dict(CASES)
    if which == "keras":
        os.environ["KERAS_BACKEND"] = "jax"
        os.environ["JAX_ENABLE_X64"] = "1"
        import keras

        keras.config.set_floatx("float64")
        cases["ema"] = ("momentum", dict(lr=0.1, ema=0.75))
        cases["accumulate"] = ("adamw", dict(lr=0.01, accumulate=2))
    run = keras_run if which == "keras" else torch_run
    flat = lambda arrays: [a.ravel().tolist() for a in arrays]
    made = dict(shapes=SHAPES, start=flat(start), gradients=[flat(g) for g in gradients],
                cases=[dict(name=k, optimizer=n, options=o, steps=run(n, o, start, gradients)) for k, (n, o) in cases.items()])
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), which + ".json"), "w") as f:
        json.dump(made, f, separators=(",", ":"))
        f.write("\n")


main()
