# What most sources include, parsed once per configuration instead of once per source: about half of a small source's compile time.
# Headers of the standard library and of vendors only: a change of ours must not compile everything again.
# Sources still include what they use; -DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON builds without (and lets checkouts in several folders share compiler results).
set(TANDEM_PRECOMPILED
  <algorithm> <array> <atomic> <chrono> <cmath> <cstddef> <cstdint> <cstring> <filesystem> <fstream> <functional> <limits> <map> <memory>
  <mutex> <optional> <set> <span> <sstream> <stdexcept> <string> <string_view> <thread> <tuple> <utility> <variant> <vector> <fmt/format.h>)
