#!/usr/bin/env python3
"""Writes the image fixtures of tests/io and what Pillow makes of them (NAME.rgb: rows of 8-bit RGB). Made once with Pillow 13.0.0."""
import io
import struct
import sys
import zlib

import numpy as np
from PIL import Image, ImageOps

rng = np.random.default_rng(7)


def picture(h, w):
    """Smooth colours with some noise, so that chroma upsampling and resampling have something to do."""
    y, x = np.mgrid[0:h, 0:w].astype(np.float64)
    planes = [127 + 120 * np.sin(x / 3 + c) * np.cos(y / (4 + c)) for c in range(3)]
    noise = rng.normal(0, 12, (h, w, 3))
    return np.clip(np.stack(planes, -1) + noise, 0, 255).astype(np.uint8)


def expect(name, data, orient=False):
    open(name, "wb").write(data)
    image = Image.open(io.BytesIO(data))
    image.load()
    if orient:
        open(name + ".upright.rgb", "wb").write(np.asarray(ImageOps.exif_transpose(image).convert("RGB")).tobytes())
    open(name + ".rgb", "wb").write(np.asarray(image.convert("RGB")).tobytes())


def save(name, image, fmt, **kw):
    out = io.BytesIO()
    image.save(out, fmt, **kw)
    expect(name, out.getvalue(), orient="exif" in kw)
    return out.getvalue()


def without_app14(data):
    at = data.index(b"\xff\xee")
    return data[:at] + data[at + 2 + struct.unpack(">H", data[at + 2:at + 4])[0]:]


def png(width, height, bits, colour, rows, interlace=0, extra=b""):
    def chunk(kind, body):
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, bits, colour, 0, 0, interlace)) + extra +
            chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


def adam7(samples):
    h, w = samples.shape[:2]
    out = b""
    for y0, x0, dy, dx in ((0, 0, 8, 8), (0, 4, 8, 8), (4, 0, 8, 4), (0, 2, 4, 4), (2, 0, 4, 2), (0, 1, 2, 2), (1, 0, 2, 1)):
        part = samples[y0::dy, x0::dx]
        if part.size:
            out += b"".join(b"\0" + row.tobytes() for row in part)
    return out


def bmp(width, height, bits, rows, compression=0, masks=b"", palette=b"", info=40):
    extra = masks + palette
    header = struct.pack("<IiiHHIIiiII", info, width, height, 1, bits, compression, len(rows), 2835, 2835, len(palette) // 4, 0)
    offset = 14 + len(header) + len(extra)
    return b"BM" + struct.pack("<IHHI", offset + len(rows), 0, 0, offset) + header + extra + rows


rgb = Image.fromarray(picture(23, 37))
gray = rgb.convert("L")
alpha = Image.fromarray(np.dstack([np.asarray(rgb), rng.integers(0, 256, (23, 37), dtype=np.uint8)]))
for name, sampling in (("444", 0), ("422", 1), ("420", 2)):
    save(f"rgb{name}.jpg", rgb, "JPEG", quality=90, subsampling=sampling)
save("one_pixel.jpg", rgb.crop((5, 5, 6, 6)), "JPEG")
save("gray.jpg", gray, "JPEG", quality=85)
save("progressive.jpg", rgb, "JPEG", quality=80, progressive=True)
save("low_quality.jpg", rgb, "JPEG", quality=10)
cmyk = Image.fromarray(np.dstack([picture(8, 8), rng.integers(0, 256, (8, 8), dtype=np.uint8)]), "CMYK")
adobe = save("cmyk_adobe.jpg", cmyk, "JPEG", quality=95, subsampling=0)
expect("cmyk_no_marker.jpg", without_app14(adobe))
ycck = adobe.replace(b"Adobe\0\x64\0\0\0\0\0", b"Adobe\0\x64\0\0\0\0\2")
assert ycck != adobe
expect("ycck_adobe.jpg", ycck)
for orientation in range(1, 9):
    exif = Image.Exif()
    exif[0x112] = orientation
    save(f"exif{orientation}.jpg", rgb.crop((0, 0, 11, 6)), "JPEG", quality=90, exif=exif)
exif6 = Image.Exif()
exif6[0x112] = 6
save("exif6.png", rgb.crop((0, 0, 11, 6)), "PNG", exif=exif6)
save("exif6.webp", rgb.crop((0, 0, 11, 6)), "WEBP", lossless=True, exif=exif6)

save("rgb.png", rgb, "PNG")
save("rgba.png", alpha, "PNG")
save("gray.png", gray, "PNG")
save("gray_alpha.png", alpha.convert("LA"), "PNG")
save("palette.png", rgb.convert("P", palette=Image.ADAPTIVE, colors=200), "PNG")
save("palette4.png", rgb.convert("P", palette=Image.ADAPTIVE, colors=13), "PNG")
save("palette_transparent.png", rgb.convert("P", palette=Image.ADAPTIVE, colors=50), "PNG", transparency=3)
save("one_bit.png", gray.convert("1"), "PNG")
g2 = rng.integers(0, 256, (5, 3), dtype=np.uint8)
expect("gray2.png", png(11, 5, 2, 0, b"".join(b"\0" + r.tobytes() for r in g2)))
expect("gray4.png", png(6, 5, 4, 0, b"".join(b"\0" + r.tobytes() for r in g2)))
g16 = rng.integers(0, 600, (9, 10)).astype(">u2")
expect("gray16.png", png(10, 9, 16, 0, b"".join(b"\0" + r.tobytes() for r in g16)))
expect("gray16_interlaced.png", png(10, 9, 16, 0, adam7(g16), 1))
c16 = rng.integers(0, 65536, (9, 10, 3)).astype(">u2")
expect("rgb16.png", png(10, 9, 16, 2, b"".join(b"\0" + r.tobytes() for r in c16)))
a16 = rng.integers(0, 65536, (9, 10, 4)).astype(">u2")
expect("rgba16.png", png(10, 9, 16, 6, b"".join(b"\0" + r.tobytes() for r in a16)))
expect("gray_alpha16.png", png(10, 9, 16, 4, b"".join(b"\0" + r[:, :2].tobytes() for r in a16)))
expect("rgb_interlaced.png", png(37, 23, 8, 2, adam7(np.asarray(rgb)), 1))
save("png_named.jpg", alpha, "PNG")

save("rgb24.bmp", rgb, "BMP")
save("gray8.bmp", gray, "BMP")
save("palette8.bmp", rgb.convert("P", palette=Image.ADAPTIVE, colors=70), "BMP")
save("one_bit.bmp", gray.convert("1"), "BMP")
save("rgba32.bmp", alpha, "BMP")
bgr = np.asarray(rgb)[:, :, ::-1]
rows = b"".join(r.tobytes() + b"\0" for r in bgr)
expect("top_down.bmp", bmp(37, -23, 24, rows))
words = rng.integers(0, 65536, (6, 5), dtype=np.uint16)
rows16 = b"".join(r.astype("<u2").tobytes() + b"\0\0" for r in words)
expect("bits555.bmp", bmp(5, 6, 16, rows16))
expect("bits565.bmp", bmp(5, 6, 16, rows16, 3, struct.pack("<III", 0xF800, 0x7E0, 0x1F)))
expect("bits32.bmp", bmp(5, 6, 32, rng.bytes(120)))
palette16 = b"".join(bytes(c) + b"\0" for c in rng.integers(0, 256, (16, 3), dtype=np.uint8))
expect("palette4.bmp", bmp(7, 5, 4, rng.bytes(20), palette=palette16))

save("lossy.webp", rgb, "WEBP", quality=80)
save("lossless.webp", rgb, "WEBP", lossless=True)
save("lossless_alpha.webp", alpha, "WEBP", lossless=True, exact=True)
save("lossy_alpha.webp", alpha, "WEBP", quality=70)
frames = [rgb, rgb.rotate(90), gray.convert("RGB")]
for name, fmt in (("animated.gif", "GIF"), ("animated.webp", "WEBP")):
    out = io.BytesIO()
    frames[0].save(out, fmt, save_all=True, append_images=frames[1:])
    open(name, "wb").write(out.getvalue())
print("made with Pillow", Image.__version__, file=sys.stderr)
open("bomb.png", "wb").write(png(50000, 50000, 8, 2, b"\0" * 1000))
