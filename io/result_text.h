// The text forms of result rows, and finding them again. Inside of io/results.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tandem::io {

struct ResultOptions;

// One text format: how a file begins, how a row of it begins and looks.
class ResultText {
 public:
  ResultText(bool json, const ResultOptions&);
  const std::string& header() const { return header_; }
  std::string beginning(const std::string& path) const;  // of the path's row
  std::string row(const std::string& path, std::span<const std::string> labels, std::span<const float> values) const;
  // Length of the complete row at the start of `text`, its line end included; none when it is torn.
  std::optional<std::size_t> length(std::string_view text) const;
  // Calls `take` with the first label (empty without top_k) and value of a complete row; not at all for what is none.
  void with_best(std::string_view row, const std::function<void(const std::string& label, float value)>& take) const;

 private:
  bool json_;
  int top_k_;
  std::string value_, header_;
};

std::string result_number(float);  // the shortest text that reads back to the same value
std::string error_row(const std::string& path, const std::string& error);
inline constexpr std::string_view kErrorHeader = "path,error\n";
// Length of the complete CSV record at the start of `text`; none when it is torn.
std::optional<std::size_t> csv_length(std::string_view text);
// The fields of one complete CSV record, unquoted.
std::vector<std::string> csv_fields(std::string_view record);

}  // namespace tandem::io
