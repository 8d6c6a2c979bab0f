#!/usr/bin/env python3
"""Makes the data sets of this folder. Needs numpy; the files were made with numpy 2.4."""
import gzip
import struct

import numpy as np

# Every type, byte order and memory order that .npy files come in: 0 to 5 (bool: 0 and 1 in turn), as 2 x 3.
arrays = {}
for kind in ["b1", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8"]:
    values = np.arange(6).reshape(2, 3)
    values = values % 2 if kind == "b1" else values
    for order in ["<"] if kind[1] == "1" else ["<", ">"]:
        for memory in "CF":
            name = f"{kind}_{'le' if order == '<' else 'be'}_{memory.lower()}"
            arrays[name] = np.array(values.astype(order + kind), order=memory)
arrays["cube_f"] = np.asfortranarray(np.arange(24, dtype=np.int16).reshape(2, 3, 4))
arrays["scalar"] = np.array(7, np.int32)
arrays["empty"] = np.zeros((0, 3), np.float32)
arrays["complex"] = np.zeros(2, np.complex64)
arrays["text"] = np.array(["ab", "c"])
np.savez("types.npz", **arrays)

images = (np.arange(3 * 4 * 5) * 3 % 256).astype(np.uint8).reshape(3, 4, 5)
# Seeds of the fuzzer.
for name, array in [
    ("plain.npy", np.arange(6, dtype="<f4").reshape(2, 3)),
    ("big_endian_fortran.npy", np.asfortranarray(np.arange(24, dtype=">i8").reshape(2, 3, 4))),
    ("scalar.npy", np.array(7, np.uint8)),
    ("half.npy", np.ones((1, 2, 1, 2), np.float16)),
]:
    np.save(name, array)
with open("version2.npy", "wb") as f:
    np.lib.format.write_array(f, np.arange(3, dtype=np.int16), version=(2, 0))

np.savez_compressed("digits.npz", x_train=images[:1], y_train=np.array([9]), x_test=images, y_test=np.array([2, 0, 1]))
np.savez(
    "parts.npz",
    x_train=100 + np.arange(60, dtype=np.uint8).reshape(3, 4, 5),
    y_train=np.array([2, 0, 1]),
    sample_weight=np.array([0.5, 1, 2]),
    x_test=np.arange(40, dtype=np.uint8).reshape(2, 4, 5),
    y_test=np.array([1, 0]),
)


def idx(array):
    return bytes([0, 0, 8, array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape) + array.tobytes()


def pack(name, data):
    with open(name, "wb") as f:
        f.write(gzip.compress(data, mtime=0))


with open("plain-images-idx3-ubyte", "wb") as f:
    f.write(idx(images))
pack("t10k-images-idx3-ubyte.gz", idx(images))
pack("t10k-labels-idx1-ubyte.gz", idx(np.array([2, 0, 1], np.uint8)))
pack("bomb-images-idx3-ubyte.gz", bytes([0, 0, 8, 3]) + struct.pack(">3I", 3000, 1000, 1000) + bytes(100000))
