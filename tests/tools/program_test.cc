// The program as its users meet it: exit codes, what goes to stdout and what to stderr.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/support/subprocess.h"

namespace tandem::test {
namespace {

TEST(Program, SaysItsVersion) {
  const Finished r = run_tandem({"--version"});
  EXPECT_EQ(r.code, 0);
  EXPECT_TRUE(r.out.starts_with("tandem 0.1.0\n")) << r.out;
  for (const char* library : {"protobuf 3.", "HDF5 1.", "libjpeg 2.", "libspng 0.", "libwebp 1.", "zlib 1.", "libzip 1.", "Highway 1.", "fmt 9",
                              "CLI11 2.", "nlohmann-json 3."})
    EXPECT_NE(r.out.find(std::string("\n") + library), std::string::npos) << library << " in " << r.out;
  EXPECT_EQ(r.err, "");
}

TEST(Program, ErrorsGoToStderrInTheFixedForm) {
  for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{{}, {"bogus"}, {"devices", "--bogus"}, {"devices", "word"}}) {
    const Finished r = run_tandem(words);
    EXPECT_EQ(r.code, 2);
    EXPECT_EQ(r.out, "");
    EXPECT_TRUE(r.err.starts_with("tandem: error: ")) << r.err;
    EXPECT_LE(std::count(r.err.begin(), r.err.end(), '\n'), 5) << r.err;
  }
}

TEST(Program, ColoursOnlyWhereAsked) {
  EXPECT_EQ(run_tandem({"bogus"}).err.find('\033'), std::string::npos);
  EXPECT_NE(run_tandem({"bogus"}, {.environment = {{"CLICOLOR_FORCE", "1"}}}).err.find('\033'), std::string::npos);
  EXPECT_EQ(run_tandem({"bogus"}, {.environment = {{"CLICOLOR_FORCE", "1"}, {"NO_COLOR", "1"}}}).err.find('\033'), std::string::npos);
}

TEST(Program, EveryCommandHasHelpWithAnExample) {
  const std::string help = run_tandem({"--help"}).out;
  std::size_t commands = 0;
  std::istringstream lines(help.substr(help.find("Commands:\n") + 10, help.find("\nOptions:") - help.find("Commands:\n") - 10));
  for (std::string line; std::getline(lines, line);) {
    if (line.size() < 3 || line[2] == ' ') continue;  // the second line of a summary
    const std::string name = line.substr(2, line.find(' ', 2) - 2);
    const Finished r = run_tandem({name, "--help"});
    EXPECT_EQ(r.code, 0) << name;
    EXPECT_TRUE(r.out.starts_with("Usage: tandem " + name)) << r.out;
    EXPECT_NE(r.out.find("\nExample:\n  "), std::string::npos) << r.out;
    ++commands;
  }
  EXPECT_GE(commands, 2u);
}

TEST(Program, ListsDevices) {
  const Finished text = run_tandem({"devices"});
  EXPECT_EQ(text.code, 0);
  EXPECT_NE(text.out.find("cores"), std::string::npos);
  const auto json = nlohmann::json::parse(run_tandem({"devices", "--json"}).out);
  const auto& cpu = json.at("devices").at(0);
  EXPECT_EQ(cpu.at("device"), "cpu");
  EXPECT_GE(cpu.at("threads").get<int>(), 1);
  EXPECT_GT(cpu.at("memory_total").get<std::size_t>(), 1u << 20);
  EXPECT_EQ(cpu.at("precisions").at("f32"), "native");
}

TEST(Program, CompletesInBash) {
  const Finished script = run_tandem({"completion", "bash"});
  EXPECT_EQ(script.code, 0);
  const auto complete = [&](const std::string& words, int at) {
    const std::string command = script.out + "COMP_WORDS=(" + words + "); COMP_CWORD=" + std::to_string(at) + "; _tandem; echo \"${COMPREPLY[@]}\"";
    return run_program({"/bin/bash", "-c", command}).out;
  };
  EXPECT_EQ(complete("tandem dev", 1), "devices\n");
  EXPECT_EQ(complete("tandem devices --js", 2), "--json\n");
  EXPECT_EQ(complete("tandem completion ''", 2), "bash zsh fish\n");
  EXPECT_EQ(run_tandem({"completion", "tcsh"}).code, 2);
}

TEST(Program, FailsWhenItsOutputCannotBeWritten) {
  const Finished r = run_program({"/bin/sh", "-c", "exec " TANDEM_BINARY_DIR "/bin/tandem devices > /dev/full"});
  EXPECT_EQ(r.code, 1);
  EXPECT_NE(r.err.find("cannot write"), std::string::npos);
}

}  // namespace
}  // namespace tandem::test
