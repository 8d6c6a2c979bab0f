# What most sources include, parsed once per configuration instead of once per source.
# Headers of the standard library and of vendors only: a change of ours must not compile everything again.
# Sources still include what they use; -DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON builds without (and lets checkouts in several folders share compiler results).
set(TANDEM_PRECOMPILED
  <algorithm> <array> <atomic> <chrono> <cmath> <cstddef> <cstdint> <cstring> <filesystem> <fstream> <functional> <limits> <map> <memory>
  <mutex> <optional> <set> <span> <sstream> <stdexcept> <string> <string_view> <thread> <tuple> <utility> <variant> <vector> <fmt/format.h>)

# Has `target` use precompiled headers, those of target `from`, or its own where that is itself.
function(tandem_share_precompiled target from)
  if(target STREQUAL from)
    target_precompile_headers(${target} PRIVATE ${TANDEM_PRECOMPILED} ${ARGN})
  else()
    target_precompile_headers(${target} REUSE_FROM ${from})
  endif()
  # ccache needs it with GCC.
  target_compile_options(${target} PRIVATE $<$<AND:$<CXX_COMPILER_ID:GNU>,$<NOT:$<BOOL:${CMAKE_DISABLE_PRECOMPILE_HEADERS}>>>:-fpch-preprocess>)
endfunction()

# For the folders of the product. Only under sanitizers: with these headers precompiled, GCC 12's optimiser warns of overruns that are none
# (-Warray-bounds in std::string), and in release warnings are errors.
function(tandem_precompile target)
  if(TANDEM_SANITIZE)
    tandem_share_precompiled(${target} tandem_base)
  endif()
endfunction()
