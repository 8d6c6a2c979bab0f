#include "io/html.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "io/image.h"
#include "tests/support/files.h"
#include "tests/support/subprocess.h"

namespace tandem::io::html {
namespace {

TEST(Html, TextFromOutsideIsNeverMarkup) {
  EXPECT_EQ(escape("<b a=\"x\" b='y'>&\n\x7f Ö \xff"), "&lt;b a=&quot;x&quot; b=&#39;y&#39;&gt;&amp;\\x0a\\x7f Ö %FF");
  const std::string evil = "</title><script>x</script>";
  const Line line{evil, {{0, 1}}};
  const std::pair<std::string, double> bar{evil, 1};
  const Pixels pixel{1, 1, 3, {1, 2, 3}};
  const std::string all = page(evil, section(evil, bars({&bar, 1}) + lines({&line, 1}, evil) + image(pixel, evil)));
  EXPECT_EQ(all.find("<script"), std::string::npos) << all;
}

// The picture inside is a PNG of these pixels: decoded by base64(1) and our own reader.
TEST(Html, APictureIsAPngInBase64) {
  const std::string made = image({1, 2, 3, {255, 0, 0, 0, 0, 255}}, "red, blue");
  EXPECT_TRUE(made.starts_with("<img width=\"2\" height=\"1\" alt=\"red, blue\" src=\"data:image/png;base64,iVBORw0KGgo")) << made;
  const std::size_t begin = made.find("base64,") + 7, end = made.find('"', begin);
  EXPECT_EQ((end - begin) % 4, 0u);
  const test::TemporaryFolder folder;
  folder.write("b64", made.substr(begin, end - begin));
  const auto decoded = test::run_program({"/bin/sh", "-c", "base64 -d " + (folder / "b64") + " > " + (folder / "p.png")});
  EXPECT_EQ(decoded.code, 0) << decoded.err;
  const Image back = load_image(folder / "p.png");
  EXPECT_EQ(back.width, 2);
  EXPECT_EQ(back.rgb, (std::vector<std::uint8_t>{255, 0, 0, 0, 0, 255}));
}

TEST(Html, ThumbnailsKeepTheirProportionsAndNeverGrow) {
  const std::vector<std::uint8_t> pixels(300 * 100 * 3, 7);
  const Pixels small = thumbnail({pixels.data(), 100, 300, 3}, 60);
  EXPECT_EQ(small.width, 60);
  EXPECT_EQ(small.height, 20);
  EXPECT_EQ(small.data.at(100), 7);
  EXPECT_EQ(thumbnail({pixels.data(), 1, 300, 3}, 60).height, 1);
  EXPECT_EQ(thumbnail({pixels.data(), 10, 20, 3}, 60).width, 20);
}

TEST(Html, NumbersStandOnTheRight) {
  const std::vector<std::string> header = {"a", "b"};
  const std::vector<std::vector<std::string>> rows = {{"1.5 MiB", "1.5"}, {"-2e3", "x"}};
  EXPECT_EQ(
      table(header, rows),
      "<div class=\"wide\"><table class=\"plain\">\n<tr><th class=\"n\">a</th><th>b</th></tr>\n<tr><td class=\"n\">1.5 MiB</td><td>1.5</td></tr>\n"
      "<tr><td class=\"n\">-2e3</td><td>x</td></tr>\n</table></div>\n");
  const std::vector<std::string> unnamed = {"", ""};
  EXPECT_EQ(table(unnamed, rows).find("<th"), std::string::npos);
}

TEST(Html, APartIsItsShareOfTheSum) {
  const std::vector<std::pair<std::string, double>> values = {{"a<b", 1}, {"c", 3}}, nothing = {{"a", 0}};
  const std::string made = parts(values);
  for (const char* text : {"width:25.00%", "width:75.00%", "a&lt;b 25.0 %", "c 75.0 %"}) EXPECT_NE(made.find(text), std::string::npos) << made;
  EXPECT_NE(parts(nothing).find("a 0.0 %"), std::string::npos);
}

// What stands at the axes: upwards, to the right, the name.
std::string at_axes(std::vector<std::pair<double, double>> points) {
  const Line line{"a", std::move(points)};
  const std::string svg = lines({&line, 1}, "x");
  std::string all;
  for (std::size_t at = svg.find("<text"); at != std::string::npos; at = svg.find("<text", at + 1)) {
    const std::size_t begin = svg.find('>', at) + 1;
    all += svg.substr(begin, svg.find('<', begin) - begin) + " ";
  }
  return all;
}

TEST(Html, AxesHaveRoundNumbers) {
  EXPECT_EQ(at_axes({{1, 0.091}, {4, 1.65}}), "0 0.5 1.0 1.5 2.0 1 2 3 4 x ");
  EXPECT_EQ(at_axes({{1, 0.5}}), "0.2 0.3 0.4 0.5 0.6 0.7 0.8 1 x ");
  EXPECT_EQ(at_axes({{1, 10}, {100, 250}}), "0 50 100 150 200 250 20 40 60 80 100 x ");
  EXPECT_EQ(at_axes({{1, 1e-7}, {2, 3e-7}}), "1e-07 1.5e-07 2e-07 2.5e-07 3e-07 1 2 x ");
}

TEST(Html, LinesHaveGapsAndOddRangesAreDrawn) {
  const std::vector<Line> gap = {{"loss", {{0, 1}, {1, NAN}, {2, 0.5}, {3, 0.25}}}};
  const std::string drawn = lines(gap, "epoch");
  const std::size_t path = drawn.find("fill=\"none\"");
  const std::string points = drawn.substr(drawn.rfind("d=\"", path), path - drawn.rfind("d=\"", path));
  EXPECT_EQ(std::count(points.begin(), points.end(), 'M'), 2) << points;
  EXPECT_EQ(std::count(points.begin(), points.end(), 'L'), 1) << points;
  const std::vector<Line> flat = {{"a", {{5, 1}}}}, nothing = {{"a", {}}}, infinite = {{"a", {{0, INFINITY}}}};
  EXPECT_EQ(lines(flat, "x").find("nan"), std::string::npos);
  constexpr double kMost = std::numeric_limits<double>::max(), kLeast = std::numeric_limits<double>::denorm_min();
  for (const auto& [low, high] :
       {std::pair(-kMost, kMost), {kMost, kMost}, {1e17, 1e17}, {0.0, kLeast}, {0.0, 0.0}, {1.0, 1 + 1e-15}, {1.0, 1e300}}) {
    const std::vector<Line> odd = {{"a", {{1, low}, {2, high}, {kMost, low}}}};
    const std::string svg = lines(odd, "x");
    EXPECT_EQ(svg.find("nan"), std::string::npos) << svg;
    EXPECT_EQ(svg.find("inf"), std::string::npos) << svg;
    EXPECT_LT(svg.size(), 10000u);
  }
  EXPECT_NE(lines(nothing, "x").find("no values"), std::string::npos);
  EXPECT_NE(lines(infinite, "x").find("no values"), std::string::npos);
  const std::vector<std::pair<std::string, double>> zero = {{"a", 0}, {"b", 0}};
  EXPECT_EQ(bars(zero).find("nan"), std::string::npos);
}

}  // namespace
}  // namespace tandem::io::html
