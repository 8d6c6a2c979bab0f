// The resamplers behind resize(), one file a family. Internal to io/.
#pragma once

#include "io/resize.h"

namespace tandem::io {

Pixels resize_pil(bool bicubic, PixelView, int height, int width, const Window&);
Pixels resize_nearest(PixelView, int height, int width, const Window&);
Pixels resize_cv(bool area, PixelView, int height, int width, const Window&);

}  // namespace tandem::io
