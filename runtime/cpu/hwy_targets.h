// The instruction sets that Highway's kernel files are compiled for. Included before <hwy/foreach_target.h>.
#pragma once

#ifdef TANDEM_ONE_HIGHWAY_TARGET
#define HWY_COMPILE_ONLY_STATIC
#else
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4)  // CPUs without AVX2 make do with SSE2
#endif
