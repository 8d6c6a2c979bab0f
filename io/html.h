// Pieces of an HTML report: one file that holds everything (styles, images, charts), opens nothing and runs nothing. Pieces are HTML already; text
// that comes from outside (names, labels, errors) goes through escape() first, or is taken by the functions that say so.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "io/resize.h"

namespace tandem::io::html {

// Text as HTML shows it: & < > and quotes as entities, bytes that are not UTF-8 as %XX (results.h), control characters as \xNN.
std::string escape(std::string_view text);

// A whole page: `title` is text, `body` pieces.
std::string page(std::string_view title, std::string_view body);
// A heading (text) above pieces.
std::string section(std::string_view heading, std::string_view body);
// Pieces beside each other where the window is wide enough, each a section.
std::string columns(std::span<const std::string> sections);
// Cells are pieces; columns whose cells look like numbers stand on the right. What is wider than the window scrolls.
std::string table(std::span<const std::string> header, std::span<const std::vector<std::string>> rows);
// The same around rows made by hand; `kind` becomes the table's class.
std::string table(std::string_view kind, std::string_view rows);
// Names and values (pieces) as the first thing to be seen.
std::string cards(std::span<const std::pair<std::string, std::string>> values);
// Shown only when asked for; `summary` is text.
std::string folded(std::string_view summary, std::string_view body);

// Pixels as an <img> with its PNG inside. `alt` is text.
std::string image(const Pixels& pixels, std::string_view alt);
// Pixels (RGB) made smaller so that the longer side has at most `side` pixels.
Pixels thumbnail(PixelView in, int side);

// Horizontal bars, in the order given; names are text, values at least 0.
std::string bars(std::span<const std::pair<std::string, double>> values);
// One bar cut in parts, with their percentages of the sum; likewise.
std::string parts(std::span<const std::pair<std::string, double>> values);
// Lines over a common x axis in an inline SVG, as training draws its losses. Values that are not finite leave a gap.
struct Line {
  std::string name;                               // text
  std::vector<std::pair<double, double>> points;  // x, y; x increases
};
std::string lines(std::span<const Line> series, std::string_view x_name);

}  // namespace tandem::io::html
