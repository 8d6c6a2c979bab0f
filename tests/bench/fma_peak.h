// What a bare loop of independent f32 multiply-adds reaches on this machine now.
#pragma once

namespace tandem::test {

double fma_peak();  // flop/s of the calling thread, over about a millisecond

}  // namespace tandem::test
