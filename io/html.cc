#include "io/html.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "io/results.h"
#include "io/write_png.h"

namespace tandem::io::html {
namespace {

constexpr std::string_view kStyle =
    "body{font:15px/1.4 system-ui,sans-serif;margin:2em auto;max-width:70em;padding:0 1em;color:#222;background:#fff}"
    "h1{font-size:1.5em}h2{font-size:1.15em;margin-top:2em}table{border-collapse:collapse}"
    "td,th{padding:.2em .8em .2em 0;text-align:left;vertical-align:top;overflow-wrap:anywhere}th{border-bottom:1px solid #999}"
    "td.n,th.n{text-align:right;font-variant-numeric:tabular-nums}svg text{font:12px system-ui,sans-serif;fill:#222}"
    ".tiles{display:flex;flex-wrap:wrap;gap:1em}.tiles figure{margin:0;width:9em;font-size:.85em;overflow-wrap:anywhere}"
    "img{max-width:100%;image-rendering:pixelated}"
    "@media(prefers-color-scheme:dark){body{color:#ddd;background:#181818}svg text{fill:#ddd}}";
constexpr std::array kColours = {"#3366cc", "#dc3912", "#109618", "#990099", "#ff9900", "#0099c6"};

std::string base64(std::span<const std::byte> bytes) {
  constexpr char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::size_t n = std::min<std::size_t>(3, bytes.size() - i);
    std::uint32_t group = 0;
    for (std::size_t k = 0; k < 3; ++k) group = group << 8 | (k < n ? std::to_integer<std::uint32_t>(bytes[i + k]) : 0u);
    for (std::size_t k = 0; k < 4; ++k) out += k <= n ? kDigits[group >> (18 - 6 * k) & 63] : '=';
  }
  return out;
}

bool is_number(const std::string& cell) {
  return !cell.empty() && cell.find_first_not_of("0123456789.,+-e% ") == std::string::npos && cell.find_first_of("0123456789") != std::string::npos;
}

struct Range {
  double low = std::numeric_limits<double>::infinity(), high = -std::numeric_limits<double>::infinity();
  void take(double v) {
    low = std::min(low, v);
    high = std::max(high, v);
  }
  double part(double v) const { return high > low ? (v - low) / (high - low) : 0.5; }
};

}  // namespace

std::string escape(std::string_view text) {
  std::string out;
  for (const char c : percent_encoded(std::string(text))) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f)
          out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
        else
          out += c;
    }
  }
  return out;
}

std::string page(std::string_view title, std::string_view body) {
  return fmt::format(
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; img-src data:; style-src 'unsafe-inline'\">\n"
      "<title>{0}</title>\n<style>{1}</style></head>\n<body><h1>{0}</h1>\n{2}</body></html>\n",
      escape(title), kStyle, body);
}

std::string section(std::string_view heading, std::string_view body) { return fmt::format("<h2>{}</h2>\n{}\n", escape(heading), body); }

std::string table(std::span<const std::string> header, std::span<const std::vector<std::string>> rows) {
  std::vector<char> numbers(header.size(), rows.empty() ? 0 : 1);
  for (const auto& row : rows) {
    for (std::size_t c = 0; c < numbers.size(); ++c) numbers[c] = numbers[c] && c < row.size() && is_number(row[c]);
  }
  const auto line = [&](std::span<const std::string> cells, const char* tag) {
    std::string out = "<tr>";
    for (std::size_t c = 0; c < cells.size(); ++c)
      out += fmt::format("<{0}{1}>{2}</{0}>", tag, c < numbers.size() && numbers[c] ? " class=\"n\"" : "", cells[c]);
    return out + "</tr>\n";
  };
  std::string out = "<table>\n" + line(header, "th");
  for (const auto& row : rows) out += line(row, "td");
  return out + "</table>\n";
}

std::string image(const Pixels& pixels, std::string_view alt) {
  return fmt::format("<img width=\"{}\" height=\"{}\" alt=\"{}\" src=\"data:image/png;base64,{}\">", pixels.width, pixels.height, escape(alt),
                     base64(encode_png(pixels)));
}

Pixels thumbnail(PixelView in, int side) {
  const double scale = std::min(1.0, static_cast<double>(side) / std::max(in.width, in.height));
  const auto scaled = [&](int n) { return std::max(1, static_cast<int>(std::lround(n * scale))); };
  return resize(ResizeKind::kPilBilinear, in, scaled(in.height), scaled(in.width));
}

std::string bars(std::span<const std::pair<std::string, double>> values) {
  constexpr double kRow = 20, kName = 220, kLength = 460;
  double most = 0;
  for (const auto& [name, value] : values) most = std::max(most, value);
  std::string out = fmt::format("<svg width=\"{}\" height=\"{}\" role=\"img\">\n", kName + kLength + 90, kRow * static_cast<double>(values.size()));
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto& [name, value] = values[i];
    const double y = kRow * static_cast<double>(i), length = most > 0 ? kLength * value / most : 0;
    // The clip keeps a long name out of the bars.
    out += fmt::format(
        "<svg x=\"0\" y=\"{0}\" width=\"{1}\" height=\"{2}\"><title>{3}</title><text x=\"0\" y=\"14\">{3}</text></svg>"
        "<rect x=\"{4}\" y=\"{5}\" width=\"{6:.1f}\" height=\"14\" fill=\"{7}\"/><text x=\"{8:.1f}\" y=\"{9}\">{10:.6g}</text>\n",
        y, kName - 8, kRow, escape(name), kName, y + 3, length, kColours[0], kName + length + 6, y + 14, value);
  }
  return out + "</svg>\n";
}

std::string lines(std::span<const Line> series, std::string_view x_name) {
  constexpr double kWidth = 720, kHeight = 280, kLeft = 70, kBottom = 40, kTop = 24;
  Range xs, ys;
  for (const Line& line : series) {
    for (const auto& [x, y] : line.points) {
      if (!std::isfinite(x) || !std::isfinite(y)) continue;
      xs.take(x);
      ys.take(y);
    }
  }
  if (xs.low > xs.high) return "<p>no values</p>\n";
  const auto at_x = [&](double x) { return kLeft + xs.part(x) * (kWidth - kLeft - 10); };
  const auto at_y = [&](double y) { return kHeight - kBottom - ys.part(y) * (kHeight - kBottom - kTop); };
  std::string out = fmt::format("<svg width=\"{}\" height=\"{}\" role=\"img\">\n", kWidth, kHeight);
  for (int tick = 0; tick <= 4; ++tick) {
    const double x = xs.low + (xs.high - xs.low) * tick / 4, y = ys.low + (ys.high - ys.low) * tick / 4;
    out += fmt::format("<path d=\"M{0} {1:.1f}H{2}\" stroke=\"#9994\"/><text x=\"{3}\" y=\"{4:.1f}\" text-anchor=\"end\">{5:.4g}</text>", kLeft,
                       at_y(y), kWidth - 10, kLeft - 6, at_y(y) + 4, y);
    out += fmt::format("<text x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\">{:.5g}</text>\n", at_x(x), kHeight - kBottom + 16, x);
  }
  out += fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n", (kLeft + kWidth) / 2, kHeight - 6, escape(x_name));
  for (std::size_t s = 0; s < series.size(); ++s) {
    std::string path;
    bool pen = false;
    for (const auto& [x, y] : series[s].points) {
      const bool drawn = std::isfinite(x) && std::isfinite(y);
      if (drawn) path += fmt::format("{}{:.1f} {:.1f}", pen ? 'L' : 'M', at_x(x), at_y(y));
      pen = drawn;
    }
    const char* colour = kColours[s % kColours.size()];
    out += fmt::format("<path d=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"1.5\" stroke-linecap=\"round\"/>", path, colour);
    out += fmt::format("<rect x=\"{0}\" y=\"4\" width=\"12\" height=\"12\" fill=\"{1}\"/><text x=\"{2}\" y=\"14\">{3}</text>\n",
                       kLeft + 150 * static_cast<double>(s), colour, kLeft + 150 * static_cast<double>(s) + 18, escape(series[s].name));
  }
  return out + "</svg>\n";
}

}  // namespace tandem::io::html
