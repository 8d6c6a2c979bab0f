// report.html of a run of the program as a browser shows it. Skipped where there is no Chromium; tests/peers/chromium.sh is the same on real images.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <sstream>

#include "io/write_png.h"
#include "tests/support/files.h"
#include "tests/support/subprocess.h"

namespace tandem::test {
namespace {

namespace fs = std::filesystem;

// The path of Chromium or Chrome; empty where there is none.
std::string browser() {
  const char* path = std::getenv("PATH");
  for (const char* name : {"chromium", "chromium-browser", "google-chrome"}) {
    std::istringstream folders(path ? path : "");
    for (std::string folder; std::getline(folders, folder, ':');) {
      if (std::error_code failed; fs::is_regular_file(folder + "/" + name, failed)) return folder + "/" + name;
    }
  }
  return {};
}

struct Seen {
  std::string facts;  // as tests/peers/report_page.html says them
  bool complained = false;
};

Seen look_at(const std::string& page, int width, const TemporaryFolder& folder) {
  const Finished r = run_program({browser(), "--headless", "--no-sandbox", "--disable-gpu", "--user-data-dir=" + (folder / "profile"),
                                  "--allow-file-access-from-files", "--enable-logging=stderr", "--virtual-time-budget=10000", "--dump-dom",
                                  "file://" TANDEM_SOURCE_DIR "/tests/peers/report_page.html#" + std::to_string(width) + "|file://" + page});
  EXPECT_EQ(r.code, 0) << r.err;
  const std::size_t begin = r.out.find("facts: "), end = r.out.find(" end", begin);
  EXPECT_NE(end, std::string::npos) << r.out << r.err;
  return {begin == std::string::npos ? r.out : r.out.substr(begin + 7, end - begin - 7), r.err.find("CONSOLE") != std::string::npos};
}

TEST(ReportPage, IsShownWholeByABrowser) {
  if (browser().empty()) GTEST_SKIP() << "there is no chromium on this machine";
  const TemporaryFolder folder;
  const std::string names[] = {"<b>bold & \"co\"", "a class with a rather long name that goes on and on", "c"};
  for (int i = 0; i < 36; ++i) {
    const std::string name = folder / ("data/" + names[i % 3] + "/" + std::to_string(i) + ".png");
    fs::create_directories(fs::path(name).parent_path());
    io::write_png(name, {16, 16, 3, std::vector<std::uint8_t>(16 * 16 * 3, static_cast<std::uint8_t>(i * 7))});
  }
  const auto trained =
      run_tandem({"train", TANDEM_SOURCE_DIR "/tests/data/training/net_a_softmax.onnx", folder / "data", "--epochs", "4", "--batch-size", "6",
                  "--val-split", "0.5", "--preprocess", "tf", "--devices", "cpu:3", "--output", folder / "run"});
  ASSERT_EQ(trained.code, 0) << trained.err;
  for (const int width : {400, 1280}) {
    const Seen seen = look_at(folder / "run/report.html", width, folder);
    // Loss and accuracy of training and validation, learning rate, images a second; nobody learns these grey images.
    EXPECT_NE(seen.facts.find("curves=6 cells=9 figures="), std::string::npos) << seen.facts;
    EXPECT_NE(seen.facts.find("devices=3 scripts=0 too_wide=0 texts_outside=0 "), std::string::npos) << width << ": " << seen.facts;
    EXPECT_FALSE(seen.complained) << width;
    const auto number = [&](const std::string& name) { return std::atof(seen.facts.c_str() + seen.facts.find(name + "=") + name.size() + 1); };
    EXPECT_GT(number("figures"), 0);
    EXPECT_EQ(number("figures"), number("pictures"));
    EXPECT_GE(number("least_text"), 10);
  }
  // The console is listened to: a script is refused aloud.
  std::string page = read_text(folder / "run/report.html");
  page.insert(page.find("</body>"), "<script>alert(1)</script>");
  const Seen broken = look_at(folder.write("broken.html", page), 1280, folder);
  EXPECT_NE(broken.facts.find("scripts=1"), std::string::npos) << broken.facts;
  EXPECT_TRUE(broken.complained);
}

}  // namespace
}  // namespace tandem::test
