#include "tools/console.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <vector>

namespace tandem::cli {
namespace {

constexpr std::size_t kMaxErrorLines = 5;

void log_line(std::string_view text) {
  const std::string line = printable(text) + "\n";
  std::fwrite(line.data(), 1, line.size(), stderr);
}

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    if (end > 0) lines.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

}  // namespace

Environment process_environment() {
  return [](const std::string& name) -> std::optional<std::string> {
    const char* value = std::getenv(name.c_str());
    return value ? std::optional<std::string>(value) : std::nullopt;
  };
}

Console Console::detect(const Environment& environment) {
  Console console;
  const auto is_set = [&](const char* name) {
    const auto value = environment(name);
    return value && !value->empty();
  };
  const bool dumb = environment("TERM").value_or("") == "dumb";
  const bool terminal = isatty(STDERR_FILENO) == 1;
  console.live = terminal && !dumb;
  console.colour = !is_set("NO_COLOR") && ((terminal && !dumb) || is_set("CLICOLOR_FORCE"));
  const int columns = std::atoi(environment("COLUMNS").value_or("").c_str());
  if (columns >= 40 && columns <= 1000) console.columns = static_cast<std::size_t>(columns);
  return console;
}

void Console::info(std::string_view text) const {
  if (!quiet) log_line(text);
}

void Console::detail(std::string_view text) const {
  if (!quiet && verbose) log_line(text);
}

void Console::progress(std::string_view text, bool last) const {
  if (quiet) return;
  const std::string line = fmt::format("{}{}{}", live ? "\r\033[K" : "", printable(text), last || !live ? "\n" : "");
  std::fwrite(line.data(), 1, line.size(), stderr);
  std::fflush(stderr);
}

std::string Console::bar(double share) const {
  constexpr int kCells = 20;
  const int done = std::clamp(static_cast<int>(share * kCells), 0, kCells);
  std::string text;
  for (int i = 0; i < kCells; ++i) text += i < done ? "\u2501" : live ? " " : "";
  return text;
}

void Console::warn(std::string_view text) const { log_line(fmt::format("tandem: warning: {}", text)); }

void Console::error(std::string_view text) const {
  std::vector<std::string_view> lines = lines_of(text);
  if (lines.empty()) lines.push_back("unknown error");
  // The innermost place and the outermost (the file) matter most.
  if (lines.size() > kMaxErrorLines) lines.erase(lines.begin() + kMaxErrorLines - 1, lines.end() - 1);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const std::string_view prefix = i > 0 ? "" : colour ? "\033[1;31mtandem: error:\033[0m " : "tandem: error: ";
    const std::string line = fmt::format("{}{}\n", prefix, printable(lines[i]));
    std::fwrite(line.data(), 1, line.size(), stderr);
  }
}

void print(std::string_view text) { std::fwrite(text.data(), 1, text.size(), stdout); }

void finish_output() {
  errno = 0;
  if (std::fflush(stdout) != 0 || std::ferror(stdout)) {
    throw std::runtime_error(fmt::format("cannot write to standard output: {}", std::strerror(errno ? errno : EIO)));
  }
}

std::string printable(std::string_view text, std::size_t limit) {
  std::string out;
  std::size_t line_start = 0;
  bool cut = false;
  for (const char c : text) {
    if (c == '\n') {
      out += c;
      line_start = out.size();
      cut = false;
    } else if (cut) {
      continue;
    } else if (out.size() - line_start >= limit) {
      out += "...";
      cut = true;
    } else if ((static_cast<unsigned char>(c) < 0x20 && c != '\t') || c == 0x7f) {
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    } else {
      out += c;
    }
  }
  return out;
}

std::string wrap(std::string_view text, std::size_t indent, std::size_t columns) {
  const std::size_t width = columns > indent + 20 ? columns - indent : 20;
  std::string out;
  std::size_t used = 0;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    const std::string_view word = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (used > 0 && used + 1 + word.size() > width) {
      out += "\n" + std::string(indent, ' ');
      used = 0;
    } else if (used > 0) {
      out += ' ';
      ++used;
    }
    out += word;
    used += word.size();
  }
  return out;
}

}  // namespace tandem::cli
