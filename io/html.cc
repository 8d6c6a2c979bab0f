#include "io/html.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>

#include "io/results.h"
#include "io/write_png.h"

namespace tandem::io::html {
namespace {

constexpr std::string_view kStyle =
    ":root{--text:#1b1f24;--soft:#59636e;--line:#d5dae0;--box:#f5f7f9;--back:#fff;color-scheme:light dark}"
    "@media(prefers-color-scheme:dark){:root{--text:#e4e7eb;--soft:#a3adb8;--line:#3d444d;--box:#21262d;--back:#15191e}}"
    "*{box-sizing:border-box}body{font:15px/1.45 system-ui,sans-serif;margin:0 auto;max-width:72em;padding:1.5em 1em 4em;color:var(--text);"
    "background:var(--back);overflow-wrap:anywhere}"
    "h1{font-size:1.5em;margin:.2em 0 1em}h2{font-size:1.15em;margin:2em 0 .6em}p{margin:.5em 0;color:var(--soft)}"
    ".columns{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,24em),1fr));gap:0 2.5em}section{min-width:0}"
    ".wide{overflow-x:auto}table{border-collapse:collapse}td,th{padding:.25em .9em .25em 0;text-align:left;vertical-align:top}"
    "th{border-bottom:1px solid var(--line);font-weight:600;white-space:nowrap;overflow-wrap:normal}td{border-bottom:1px solid var(--line)}"
    "td.n,th.n{text-align:right;white-space:nowrap;font-variant-numeric:tabular-nums}"
    ".matrix td,.matrix th{border:1px solid var(--line);padding:.35em .6em;text-align:right;max-width:11em;overflow:hidden;text-overflow:ellipsis;"
    "white-space:nowrap}.matrix th:first-child{text-align:left}"
    ".cards{display:grid;grid-template-columns:repeat(auto-fit,minmax(9.5em,1fr));gap:.7em;margin:0}"
    ".cards div{background:var(--box);border-radius:6px;padding:.6em .8em}dt{font-size:.85em;color:var(--soft)}"
    "dd{margin:.1em 0 0;font-size:1.15em;font-weight:600}"
    "details{margin-top:2em}summary{font-size:1.15em;font-weight:600;cursor:pointer;margin-bottom:.6em}"
    ".plain td:first-child:not(.n){min-width:7em}svg{display:block;width:100%;height:auto}svg text{font:13px "
    "system-ui,sans-serif;fill:var(--text)}svg .grid{stroke:var(--line)}"
    ".key{display:inline-block;margin-right:1.2em;color:var(--text)}.key i{display:inline-block;width:.8em;height:.8em;border-radius:2px;"
    "margin-right:.4em}"
    ".bars{display:grid;grid-template-columns:minmax(5em,max-content) 1fr;gap:.25em .9em;align-items:center}"
    ".bars b{font-weight:400;max-width:16em;overflow:hidden;text-overflow:ellipsis;white-space:nowrap}.bars span{display:flex;align-items:center;"
    "gap:.5em;font-variant-numeric:tabular-nums}.bars i{height:1em;background:#2563eb;border-radius:2px}"
    ".parts{display:flex;height:1.6em;border-radius:4px;overflow:hidden;margin:.4em 0}"
    ".tiles{display:grid;grid-template-columns:repeat(auto-fill,minmax(9.5em,1fr));gap:1em}.tiles figure{margin:0;background:var(--box);"
    "border-radius:6px;padding:.6em;font-size:.85em}.tiles img{display:block;width:100%;height:9em;object-fit:contain;image-rendering:pixelated;"
    "margin-bottom:.4em}.path{color:var(--soft)}";
constexpr std::array kColours = {"#2563eb", "#dc2626", "#059669", "#9333ea", "#d97706", "#0891b2"};

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

// With or without a unit of time or memory.
bool is_number(std::string_view cell) {
  for (const std::string_view unit : {" s", " B", " KiB", " MiB", " GiB"}) {
    if (cell.ends_with(unit)) {
      cell.remove_suffix(unit.size());
      break;
    }
  }
  return !cell.empty() && cell.find_first_not_of("0123456789.,+-e% ") == std::string::npos && cell.find_first_of("0123456789") != std::string::npos;
}

struct Range {
  double low = std::numeric_limits<double>::infinity(), high = -std::numeric_limits<double>::infinity();
  bool whole = true;  // every value is a whole number
  void take(double v) {
    low = std::min(low, v);
    high = std::max(high, v);
    whole = whole && v == std::floor(v);
  }
  bool empty() const { return low > high; }
  // Halves: the difference of two large numbers may be infinite.
  double part(double v) const { return (v / 2 - low / 2) / (high / 2 - low / 2); }
};

struct Ticks {
  std::vector<double> at;
  double step = 1;
  // With as many digits as the step needs.
  std::string text(double v) const {
    if (std::abs(v) < step / 2) return "0";
    const double power = std::floor(std::log10(step)), scaled = step / std::pow(10, power);
    const bool half = std::abs(scaled - std::round(scaled)) > 0.1;  // 2.5
    const int last = static_cast<int>(power) - static_cast<int>(half);
    if (std::abs(v) < 1e6 && step >= 1e-5) return fmt::format("{:.{}f}", v, std::max(0, -last));
    return fmt::format("{:.{}g}", v, std::clamp(static_cast<int>(std::floor(std::log10(std::abs(v)))) - last + 1, 1, 15));
  }
};

// Round numbers in the range, about `wanted`; a range of one value becomes wider, and `covers` makes it end at ticks.
Ticks round_ticks(Range& range, int wanted, bool covers) {
  constexpr double kLeast = 1e-300, kMost = std::numeric_limits<double>::max();
  const double largest = std::max(std::abs(range.low), std::abs(range.high));
  if (range.high / 2 - range.low / 2 <= 1e-9 * largest + kLeast) {
    const double more = (range.whole && largest < 1e6) || largest <= kLeast ? 0.5 : largest / 2;
    range.low = std::max(range.low - more, -kMost);
    range.high = std::min(range.high + more, kMost);
  }
  const double raw = (range.high / wanted - range.low / wanted), power = std::pow(10, std::floor(std::log10(raw)));
  Ticks ticks;
  for (const double factor : {1.0, 2.0, 2.5, 5.0, 10.0}) {
    ticks.step = factor * power;
    if (range.whole && (ticks.step < 1 || factor == 2.5)) continue;
    if (ticks.step >= raw * (1 - 1e-9)) break;
  }
  if (range.whole) ticks.step = std::max(1.0, std::round(ticks.step));
  if (covers) {
    range.low = std::max(std::floor(range.low / ticks.step + 1e-9) * ticks.step, -kMost);
    range.high = std::min(std::ceil(range.high / ticks.step - 1e-9) * ticks.step, kMost);
  }
  const double first = std::ceil(range.low / ticks.step - 1e-9), last = std::floor(range.high / ticks.step + 1e-9);
  for (int k = 0; k <= 2 * wanted + 2 && first + k <= last; ++k) ticks.at.push_back((first + k) * ticks.step);
  return ticks;
}

std::string key(std::size_t colour, std::string_view text) {
  return fmt::format("<span class=\"key\"><i style=\"background:{}\"></i>{}</span>", kColours[colour % kColours.size()], escape(text));
}

// The curve of one series: a pen that is lifted over gaps, and its points while they are few.
std::string curve(const Line& line, const char* colour, const std::function<std::pair<double, double>(double, double)>& at) {
  constexpr std::size_t kMarked = 60;
  std::string path, marks;
  bool pen = false;
  for (const auto& [x, y] : line.points) {
    const bool drawn = std::isfinite(x) && std::isfinite(y);
    if (drawn) {
      const auto [right, down] = at(x, y);
      path += fmt::format("{}{:.1f} {:.1f}", pen ? 'L' : 'M', right, down);
      marks += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3\" fill=\"{}\"><title>{}: {:.6g}</title></circle>", right, down, colour,
                           escape(line.name), y);
    }
    pen = drawn;
  }
  return fmt::format("<path d=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"2\" stroke-linejoin=\"round\"/>{}\n", path, colour,
                     line.points.size() <= kMarked ? marks : "");
}

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
      "<meta name=\"viewport\" content=\"width=device-width\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; img-src data:; style-src 'unsafe-inline'\">\n"
      "<title>{0}</title>\n<style>{1}</style></head>\n<body><h1>{0}</h1>\n{2}</body></html>\n",
      escape(title), kStyle, body);
}

std::string section(std::string_view heading, std::string_view body) {
  return fmt::format("<section><h2>{}</h2>\n{}</section>\n", escape(heading), body);
}

std::string columns(std::span<const std::string> sections) {
  std::string out = "<div class=\"columns\">\n";
  for (const std::string& s : sections) out += s;
  return out + "</div>\n";
}

std::string cards(std::span<const std::pair<std::string, std::string>> values) {
  std::string out = "<dl class=\"cards\">\n";
  for (const auto& [name, value] : values) out += fmt::format("<div><dt>{}</dt><dd>{}</dd></div>\n", name, value);
  return out + "</dl>\n";
}

std::string folded(std::string_view summary, std::string_view body) {
  return fmt::format("<details><summary>{}</summary>\n{}</details>\n", escape(summary), body);
}

std::string table(std::string_view kind, std::string_view rows) {
  return fmt::format("<div class=\"wide\"><table class=\"{}\">\n{}</table></div>\n", kind, rows);
}

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
  const bool named = std::any_of(header.begin(), header.end(), [](const std::string& name) { return !name.empty(); });
  std::string out = named ? line(header, "th") : "";
  for (const auto& row : rows) out += line(row, "td");
  return table("plain", out);
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
  double most = 0;
  for (const auto& [name, value] : values) most = std::max(most, value);
  std::string out = "<div class=\"bars\">\n";
  for (const auto& [name, value] : values) {
    out += fmt::format("<b title=\"{0}\">{0}</b><span><i style=\"width:{1:.1f}%\"></i>{2:.6g}</span>\n", escape(name),
                       most > 0 ? 85 * value / most : 0.0, value);
  }
  return out + "</div>\n";
}

std::string parts(std::span<const std::pair<std::string, double>> values) {
  double sum = 0;
  for (const auto& [name, value] : values) sum += value;
  std::string bar, keys;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double percent = sum > 0 ? 100 * values[i].second / sum : 0;
    bar += fmt::format("<div style=\"width:{:.2f}%;background:{}\"></div>", percent, kColours[i % kColours.size()]);
    keys += key(i, fmt::format("{} {:.1f} %", values[i].first, percent)) + " ";
  }
  return fmt::format("<div class=\"parts\">{}</div>\n<p>{}</p>\n", bar, keys);
}

std::string lines(std::span<const Line> series, std::string_view x_name) {
  constexpr double kWidth = 480, kHeight = 270, kRight = 470, kTop = 10, kBottom = 226, kLetter = 8.5;
  Range xs, ys;
  for (const Line& line : series) {
    for (const auto& [x, y] : line.points) {
      if (!std::isfinite(x) || !std::isfinite(y)) continue;
      xs.take(x);
      ys.take(y);
    }
  }
  if (xs.empty()) return "<p>no values</p>\n";
  ys.whole = false;
  const Ticks below = round_ticks(xs, 7, false), beside = round_ticks(ys, 5, true);
  std::size_t longest = 4;
  for (const double y : beside.at) longest = std::max(longest, beside.text(y).size());
  const double left = 16 + kLetter * static_cast<double>(longest);
  const auto at_x = [&](double x) { return left + xs.part(x) * (kRight - left); };
  const auto at_y = [&](double y) { return kBottom - ys.part(y) * (kBottom - kTop); };
  std::string keys, out = fmt::format("<svg viewBox=\"0 0 {} {}\" role=\"img\">\n", kWidth, kHeight);
  for (const double y : beside.at)
    out += fmt::format("<path class=\"grid\" d=\"M{0} {1:.1f}H{2}\"/><text x=\"{3}\" y=\"{4:.1f}\" text-anchor=\"end\">{5}</text>\n", left, at_y(y),
                       kRight, left - 8, at_y(y) + 4, beside.text(y));
  for (const double x : below.at)
    out += fmt::format("<text x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n", at_x(x), kBottom + 18, below.text(x));
  out += fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n", (left + kRight) / 2, kHeight - 6, escape(x_name));
  for (std::size_t s = 0; s < series.size(); ++s) {
    out += curve(series[s], kColours[s % kColours.size()], [&](double x, double y) { return std::pair(at_x(x), at_y(y)); });
    keys += key(s, series[s].name) + " ";
  }
  return fmt::format("{}</svg>\n<p>{}</p>\n", out, keys);
}

}  // namespace tandem::io::html
