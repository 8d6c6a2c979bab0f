// The parser, with commands of its own: sources and their order, odd words, errors.
#include "tools/command_line.h"

#include <gtest/gtest.h>

#include <limits>
#include <map>
#include <memory>

#include "runtime/base/error.h"
#include "tests/support/files.h"
#include "tests/support/subprocess.h"

namespace tandem::cli {
namespace {

struct Seen {
  std::string model, colour = "red";
  std::vector<std::string> inputs, rest;
  std::int64_t threads = 2;
  double rate = 0.5;
  bool fast = false;
  int runs = 0;
};

Command paint(Seen& seen) {
  return {.name = "paint",
          .summary = "Paints.",
          .example = "tandem paint x",
          .declare =
              [&seen](OptionSet& o) {
                o.positional("MODEL", seen.model, "what to paint");
                o.positionals("REST", seen.rest, "more").required = false;
                o.texts("--input,-i", "NAME=FILE", seen.inputs, "inputs");
                o.choice("--colour", {"red", "green"}, seen.colour, "colour");
                o.integer("--max-threads,--threads,-t", "N", seen.threads, 1, std::numeric_limits<std::int64_t>::max(), "threads");
                o.number("--rate", "R", seen.rate, 0, 1, "rate");
                o.flag("--fast", seen.fast, "be fast");
              },
          .run =
              [&seen](const Console&) {
                ++seen.runs;
                return 0;
              },
          .subcommands = {}};
}

struct Result {
  int code;
  std::string out, err;
};

Result run(Seen& seen, std::vector<std::string> words, std::map<std::string, std::string> environment = {}) {
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  const Command group{.name = "group", .summary = "A group.", .example = "", .declare = {}, .run = {}, .subcommands = {paint(seen)}};
  const int code = run_command_line({paint(seen), group}, std::move(words), [&](const std::string& name) -> std::optional<std::string> {
    const auto it = environment.find(name);
    return it == environment.end() ? std::nullopt : std::optional(it->second);
  });
  std::string out = testing::internal::GetCapturedStdout();
  return {code, out, testing::internal::GetCapturedStderr()};
}

void expect_usage_error(std::vector<std::string> words, const std::string& part) {
  Seen seen;
  const Result r = run(seen, std::move(words));
  EXPECT_EQ(r.code, 2);
  EXPECT_EQ(seen.runs, 0);
  EXPECT_EQ(r.out, "");
  EXPECT_TRUE(r.err.starts_with("tandem: error: ")) << r.err;
  EXPECT_NE(r.err.find(part), std::string::npos) << r.err;
}

TEST(CommandLine, FlagsBeatEnvironmentBeatsFileBeatsDefaults) {
  const test::TemporaryFolder folder;
  const std::string file = folder.write("a.toml", "colour = \"green\"\nmax_threads = 7\nrate = 0.25\n");
  Seen seen;
  EXPECT_EQ(run(seen, {"paint", "m", "--config", file}).code, 0);
  EXPECT_EQ(seen.colour, "green");
  EXPECT_EQ(seen.threads, 7);
  EXPECT_EQ(seen.rate, 0.25);
  EXPECT_FALSE(seen.fast);
  EXPECT_EQ(run(seen, {"paint", "m", "--config", file}, {{"TANDEM_MAX_THREADS", "5"}, {"TANDEM_FAST", "1"}}).code, 0);
  EXPECT_EQ(seen.threads, 5);
  EXPECT_TRUE(seen.fast);
  EXPECT_EQ(run(seen, {"paint", "m", "-t3", "--config", file}, {{"TANDEM_MAX_THREADS", "5"}}).code, 0);
  EXPECT_EQ(seen.threads, 3);
  Seen fresh;
  EXPECT_EQ(run(fresh, {"paint", "m"}, {{"TANDEM_CONFIG", file}, {"TANDEM_COLOUR", ""}}).code, 0);
  EXPECT_EQ(fresh.colour, "green");
}

TEST(CommandLine, SectionsOfTheFileBelongToCommands) {
  const test::TemporaryFolder folder;
  const std::string file = folder.write("a.toml", "rate = 0.25\n[paint]\nthreads = 3\n[group.paint]\nthreads = 4\nrate = 1\n");
  Seen seen;
  EXPECT_EQ(run(seen, {"paint", "m", "--config", file}).code, 0);
  EXPECT_EQ(seen.threads, 3);
  EXPECT_EQ(seen.rate, 0.25);
  EXPECT_EQ(run(seen, {"group", "paint", "m", "--config", file}).code, 0);
  EXPECT_EQ(seen.threads, 4);
  EXPECT_EQ(seen.rate, 1);
}

TEST(CommandLine, RefusesWhatAFileMayNotSay) {
  const test::TemporaryFolder folder;
  expect_usage_error({"paint", "m", "--config", folder.write("a", "colr = 1\n")}, "unknown option \"colr\"");
  expect_usage_error({"paint", "m", "--config", folder.write("b", "[pant]\nrate = 1\n")}, "did you mean paint?");
  expect_usage_error({"paint", "m", "--config", folder.write("c", "rate = [0.1, 0.2]\n")}, "expected one value, found 2");
  expect_usage_error({"paint", "m", "--config", folder.write("d", "rate = 2\n")}, "expected a number from 0 to 1, found \"2\"");
  expect_usage_error({"paint", "m", "--config", folder / "absent"}, "absent");
}

TEST(CommandLine, TakesOddWordsAsTheyAre) {
  Seen seen;
  EXPECT_EQ(run(seen, {"paint", "--input", "[a]=b c", "-i", "d=", "[1,2]", "--", "-x", "--rate", "caf\xe9\n"}).code, 0);
  EXPECT_EQ(seen.inputs, (std::vector<std::string>{"[a]=b c", "d="}));
  EXPECT_EQ(seen.model, "[1,2]");
  EXPECT_EQ(seen.rest, (std::vector<std::string>{"-x", "--rate", "caf\xe9\n"}));
  EXPECT_EQ(run(seen, {"paint", "paint", "group"}).code, 0);  // names of commands are ordinary words after the command
  EXPECT_EQ(seen.model, "paint");
  EXPECT_EQ(seen.rest, std::vector<std::string>{"group"});
  EXPECT_EQ(run(seen, {"paint", "--rate=0.5", "m", "--rate", "0.75"}).code, 0);  // the last one wins
  EXPECT_EQ(seen.rate, 0.75);
}

TEST(CommandLine, NamesWhatIsWrong) {
  expect_usage_error({}, "expects a command");
  expect_usage_error({"pint"}, "did you mean paint?");
  expect_usage_error({"group"}, "tandem group expects a command");
  expect_usage_error({"group", "x"}, "unknown command \"group x\"");
  expect_usage_error({"--colour", "paint"}, "unknown option --colour");
  expect_usage_error({"paint"}, "argument MODEL is missing");
  expect_usage_error({"paint", "m", "--color=green"}, "unknown option --color; did you mean --colour?");
  expect_usage_error({"paint", "m", "--colour", "blue"}, "option --colour: expected one of red, green, found \"blue\"");
  expect_usage_error({"paint", "m", "--threads", "0"}, "option --max-threads: expected an integer of at least 1, found \"0\"");
  expect_usage_error({"paint", "m", "--threads", "2x"}, "found \"2x\"");
  expect_usage_error({"paint", "m", "--threads", "99999999999999999999"}, "integer");
  expect_usage_error({"paint", "m", "--rate", "nan"}, "expected a number from 0 to 1");
  expect_usage_error({"paint", "m", "--rate"}, "--rate");
}

TEST(CommandLine, HelpNamesEveryOptionAndItsDefault) {
  Seen seen;
  const Result r = run(seen, {"paint", "--help"}, {{"COLUMNS", "60"}});
  EXPECT_EQ(r.code, 0);
  EXPECT_EQ(r.err, "");
  for (const char* part : {"Usage: tandem paint MODEL [REST...] [options]", "--colour red|green", "(default: red)", "--max-threads, --threads, -t N",
                           "(default: 2)", "Example:\n  tandem paint x", "--config FILE.toml"}) {
    EXPECT_NE(r.out.find(part), std::string::npos) << part << " is not in\n" << r.out;
  }
  EXPECT_NE(run(seen, {"group", "--help"}).out.find("Paints."), std::string::npos);
  EXPECT_NE(run(seen, {"--help"}).out.find("group paint"), std::string::npos);
}

TEST(Console, WrapsAndEscapes) {
  EXPECT_EQ(wrap("aa bb cc", 2, 25), "aa bb cc");
  EXPECT_EQ(wrap(std::string(15, 'a') + " " + std::string(15, 'b'), 2, 24), std::string(15, 'a') + "\n  " + std::string(15, 'b'));
  EXPECT_EQ(printable("a\x1b[31m\tb\nc"), "a\\x1b[31m\tb\nc");
  EXPECT_EQ(printable("abcdef\nxy", 3), "abc...\nxy");
}

TEST(Console, ErrorsHaveAtMostFiveLines) {
  testing::internal::CaptureStderr();
  Console().error("one\ntwo\nthree\nfour\nfive\nsix\nlast");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "tandem: error: one\ntwo\nthree\nfour\nlast\n");
}

}  // namespace
}  // namespace tandem::cli
