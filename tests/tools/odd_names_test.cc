// File names with blanks, newlines, bytes that are no UTF-8 and leading dashes, through every command that takes files.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "io/write_png.h"
#include "tests/support/files.h"
#include "tests/support/subprocess.h"

namespace tandem::test {
namespace {

namespace fs = std::filesystem;

io::Pixels picture(std::uint8_t seed) {
  io::Pixels p{48, 40, 3, std::vector<std::uint8_t>(48 * 40 * 3)};
  for (std::size_t i = 0; i < p.data.size(); ++i) p.data[i] = static_cast<std::uint8_t>(i * seed % 251);
  return p;
}

const std::vector<std::string> kNames = {"a b",         "-dash",        "--help",    "new\nline", "tab\t", "\xff\xfe",
                                         "caf\xc3\xa9", "\xe5\x9b\xbe", "q\"uo'te,", "[a]*?",     "$HOME", "a=b"};

Finished run_in(const std::string& folder, std::vector<std::string> words) {
  std::vector<std::string> argv{"/bin/sh", "-c", "cd \"$1\" && shift && exec \"$@\"", "sh", folder, TANDEM_BINARY_DIR "/bin/tandem"};
  argv.insert(argv.end(), words.begin(), words.end());
  return run_program(argv);
}

TEST(OddNames, ModelsAndWeights) {
  for (const std::string name : {"-a b\n\xff", "--help", "q\"'[a]*?,$HOME=\xe5\x9b\xbe"}) {
    SCOPED_TRACE(name);
    const TemporaryFolder folder;
    const std::string model = name + ".onnx", copy = name + "2.onnx", weights = name + ".h5";
    fs::copy_file(trained_network(), folder / model);
    const auto ok = [&](const std::vector<std::string>& words) {
      const Finished r = run_in(folder.path(), words);
      EXPECT_EQ(r.code, 0) << r.err;
      return r;
    };
    EXPECT_EQ(nlohmann::json::parse(ok({"inspect", "--json", "--", model}).out).at("parameters"),
              nlohmann::json::parse(run_tandem({"inspect", "--json", trained_network()}).out).at("parameters"));
    ok({"convert", "--output=" + copy, "--", model});
    EXPECT_TRUE(fs::exists(folder / copy));
    ok({"weights", "save", "--output=" + weights, "--", model});
    ok({"weights", "show", "--", weights});
    ok({"inspect", "--", weights});
    ok({"weights", "load", "--output=" + copy, "--", model, weights});
    EXPECT_TRUE(ok({"weights", "diff", "--", model, weights}).out.ends_with("\nequal\n"));
    EXPECT_EQ(std::distance(fs::directory_iterator(folder.path()), {}), 3);
    // A name that is wrong comes back readable: one line for it, one for the place.
    const Finished none = run_in(folder.path(), {"inspect", "--", name + ".none.onnx"});
    EXPECT_EQ(none.code, 4);
    EXPECT_EQ(std::count(none.err.begin(), none.err.end(), '\n'), 2) << none.err;
  }
}

// The rows' order: by bytes of the name.
TEST(OddNames, PredictionsKeepEveryByte) {
  const TemporaryFolder folder;
  fs::create_directories(folder / "set");
  std::vector<std::string> names;
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    names.push_back(kNames[i] + ".png");
    io::write_png(folder / "set/" + names.back(), picture(static_cast<std::uint8_t>(i + 3)));
  }
  std::sort(names.begin(), names.end());
  const Finished csv = run_in(folder / "set", {"predict", "--preprocess=tf", "--out=-r \xff\n.csv", "-q", "--", trained_network(), "."});
  ASSERT_EQ(csv.code, 0) << csv.err;
  std::string found = read_text(folder / "set/-r \xff\n.csv");
  ASSERT_TRUE(found.starts_with("path,top1,prob1\n"));
  std::size_t at = found.find('\n') + 1;
  for (const std::string& name : names) {
    const bool quote = name.find_first_of("\",\n\r") != std::string::npos;
    std::string field = quote ? "\"" : "";
    for (const char c : name) field += c == '"' ? std::string("\"\"") : std::string(1, c);
    field += quote ? "\"," : ",";
    ASSERT_EQ(found.substr(at, field.size()), field) << name;
    at = found.find('\n', at + field.size()) + 1;
  }
  EXPECT_EQ(at, found.size());

  const Finished jsonl = run_tandem({"predict", trained_network(), folder / "set", "--preprocess", "tf", "--out", folder / "r.jsonl", "-q"});
  ASSERT_EQ(jsonl.code, 0) << jsonl.err;
  std::ifstream lines(folder / "r.jsonl");
  std::vector<std::string> paths;
  for (std::string line; std::getline(lines, line);) paths.push_back(nlohmann::json::parse(line).at("path"));
  ASSERT_EQ(paths.size(), names.size());
  for (std::size_t i = 0; i < names.size(); ++i) {
    const bool text = names[i].find('\xff') == std::string::npos;
    EXPECT_EQ(paths[i], text ? names[i] : "%FF%FE.png");
  }
}

TEST(OddNames, OneFileAndAListAndAGlob) {
  const TemporaryFolder folder;
  fs::create_directories(folder / "\xd6/");
  const std::string name = "\xd6/-\xe5\x9b\xbe \xff.jpg";  // a PNG by its content
  io::write_png(folder / name, picture(9));
  folder.write("list.txt", name + "\n");
  for (const std::string& input : {name, std::string("list.txt"), std::string("\xd6/*.jpg")}) {
    const Finished r = run_in(folder.path(), {"predict", trained_network(), input, "--preprocess", "tf", "--out", "r.csv", "-q", "--strict"});
    EXPECT_EQ(r.code, 0) << r.err;
    EXPECT_NE(read_text(folder / "r.csv").find("\xe5\x9b\xbe \xff.jpg,"), std::string::npos) << read_text(folder / "r.csv");
    fs::remove(folder / "r.csv.state");
  }
}

TEST(OddNames, ClassesOfASet) {
  const TemporaryFolder folder;
  const std::vector<std::string> classes = {"-a", "b c", "n\nl", "\xff", "\xe5\x9b\xbe"};
  for (std::size_t i = 0; i < classes.size(); ++i) {
    fs::create_directories(folder / "set/" + classes[i]);
    io::write_png(folder / "set/" + classes[i] + "/--x \xfe\n.png", picture(static_cast<std::uint8_t>(i + 3)));
  }
  const Finished r = run_in(folder.path(), {"evaluate", trained_network(), "set", "--preprocess", "tf", "--json", "-q"});
  ASSERT_EQ(r.code, 0) << r.err;
  EXPECT_EQ(nlohmann::json::parse(r.out).at("samples"), 5);
}

}  // namespace
}  // namespace tandem::test
