// Cases in the layout of ONNX's backend tests, run and compared: a folder with model.onnx and test_data_set_*/input_K.pb and output_K.pb, or
// the .pb files beside the model.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tools/tandem.h"

namespace tandem::cli {

enum class Verdict { kPass, kFail, kRefused };
const char* word_of(Verdict);  // "PASS", "FAIL", "REFUSED"

struct CaseOutcome {
  std::string name;  // of the folder
  Verdict verdict = Verdict::kPass;
  std::string reason;     // where it differs, or what was thrown
  std::string tolerance;  // in words, where it is not the one for float32
};

struct CaseOptions {
  // Equal means |got - want| <= atol + rtol * |want|, NaN equal to NaN, of one type and shape. Without a value rtol is 1e-3 and atol 1e-7; where the
  // file's weights are half precision (FileRecord::weights; the answers then come from arithmetic that rounds to it, tandem's do not) both are 16
  // of the type's roundings (0.8 % for float16, 6.3 % for bfloat16), atol times the largest value of the output.
  std::optional<double> rtol, atol;
  std::string wanted = "output";  // the wanted values lie in <wanted>_K.pb
};

// Folders that hold a model.onnx, among `folder` and what lies up to `depth` levels below, sorted. Throws InvalidData when one cannot be read.
std::vector<std::filesystem::path> find_cases(const std::filesystem::path& folder, int depth = 3);

// Runs the file as the standard reads it (ImportOptions::as_written) on each data set. Unsupported is kRefused, any other error kFail.
//
// Two ways of published data are understood. Data that hold the bits of bfloat16 as uint16 are taken as bfloat16 where the graph declares it;
// such bits were cut off, not rounded, so a wanted value may be one unit in the last place away. And where the shape of an input contradicts
// the graph's declaration, the data decide (ONNX's own runner does not look at declared shapes).
// `planned`, where it is given, sees the plan of each data set after its run.
CaseOutcome run_case(const std::filesystem::path& folder, const CaseOptions& options, const RunOptions& run,
                     const std::function<void(const RunReport&)>& planned = nullptr);

}  // namespace tandem::cli
