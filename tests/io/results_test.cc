#include "io/results.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>

#include "io/hdf5.h"
#include "runtime/base/error.h"
#include "runtime/base/safe_file.h"
#include "tests/io/message_of.h"
#include "tests/support/files.h"

namespace tandem::io {
namespace {

namespace fs = std::filesystem;

class Results : public testing::Test {
 protected:
  std::string at(const std::string& name) const { return folder_ / name; }
  ResultOptions options(const std::string& name, bool go_on = false) const {
    ResultOptions o;
    o.file = at(name);
    o.top_k = 2;
    o.settings = {{"model", "1234"}, {"layer", "a \"b\"\n"}};
    o.go_on = go_on;
    o.record_seconds = 0;
    return o;
  }
  // Predicts inputs [writer.done(), end): every third fails.
  void run(ResultWriter& w, std::size_t end) const {
    for (std::size_t i = w.done(); i < end; ++i) {
      if (i % 3 == 2) {
        w.failure(inputs_[i], "cut, \"short\"");
      } else {
        const std::string labels[] = {"cat, \"big\"\n", "dog" + std::to_string(i)};
        const float values[] = {0.1f + static_cast<float>(i), 1.0f / 3};
        w.row(inputs_[i], labels, values);
      }
      w.flush();
    }
  }
  void run_all(const ResultOptions& o) const {
    ResultWriter w(o, inputs_);
    run(w, inputs_.size());
    w.finish();
  }

  const test::TemporaryFolder folder_;
  std::vector<std::string> inputs_ = {"a b.png", "x,\"y\".png", "bad\n1", "\xff\xfe.png", "Ö/图.jpg", ".hidden", "same", "same", "line\nbreak", "z"};
};

TEST_F(Results, CsvKeepsPathBytesAndQuotesThem) {
  run_all(options("r.csv"));
  const std::string text = test::read_text(at("r.csv"));
  EXPECT_TRUE(text.starts_with("path,top1,prob1,top2,prob2\na b.png,\"cat, \"\"big\"\"\n\",0.1,dog0,0.33333334\n\"x,\"\"y\"\".png\",")) << text;
  EXPECT_NE(text.find("\n\xff\xfe.png,"), std::string::npos);
  EXPECT_EQ(test::read_text(at("r.csv.errors.csv")),
            "path,error\n\"bad\n1\",\"cut, \"\"short\"\"\"\n.hidden,\"cut, \"\"short\"\"\"\n\"line\nbreak\",\"cut, \"\"short\"\"\"\n");
}

TEST_F(Results, JsonEncodesWhatIsNoText) {
  run_all(options("r.jsonl"));
  const std::string text = test::read_text(at("r.jsonl"));
  EXPECT_TRUE(text.starts_with("{\"path\":\"a b.png\",\"top\":[\"cat, \\\"big\\\"\\n\",\"dog0\"],\"prob\":[0.1,0.33333334]}\n")) << text;
  EXPECT_NE(text.find("\"%FF%FE.png\""), std::string::npos);
  EXPECT_NE(text.find("\"Ö/图.jpg\""), std::string::npos);
  EXPECT_EQ(percent_encoded("\xc0\x80\xed\xa0\x80\xf4\x90\x80\x80 ok"), "%C0%80%ED%A0%80%F4%90%80%80 ok");
}

TEST_F(Results, FeaturesAndOddNumbers) {
  ResultOptions o = options("f.csv");
  o.top_k = 0;
  o.values = 4;
  o.value = "feature";
  const float values[] = {std::numeric_limits<float>::infinity(), std::nanf(""), 1e-45f, -0.0f};
  {
    ResultWriter w(o, inputs_);
    w.row("p", {}, values);
    w.finish();
  }
  EXPECT_EQ(test::read_text(at("f.csv")), "path,feature1,feature2,feature3,feature4\np,inf,nan,1e-45,-0\n");
  o.file = at("f.jsonl");
  ResultWriter w(o, inputs_);
  w.row("p", {}, values);
  w.finish();
  EXPECT_EQ(test::read_text(at("f.jsonl")), "{\"path\":\"p\",\"feature\":[null,null,1e-45,-0]}\n");
}

TEST_F(Results, Hdf5HasOneDataSetForEachColumn) {
  run_all(options("r.h5"));
  EXPECT_FALSE(fs::exists(at("r.h5.part")));
  const H5File file(at("r.h5"));
  EXPECT_EQ(file.root().need("path").is_dataset(), true);
  const auto probabilities = file.root().need("prob1").read().to_doubles();
  ASSERT_EQ(probabilities.size(), 7u);
  EXPECT_FLOAT_EQ(static_cast<float>(probabilities[1]), 1.1f);
  EXPECT_NE(test::read_text(at("r.h5")).find("%FF%FE.png"), std::string::npos);
}

// Cut anywhere, a continued run gives the bytes of an uninterrupted one.
TEST_F(Results, ContinuesAfterAKillAtAnyByte) {
  for (const char* name : {"r.csv", "r.jsonl", "r.h5"}) {
    run_all(options(name));
    const std::string rows_name = std::string(name) + (std::string(name) == "r.h5" ? ".part" : "");
    const std::string whole = test::read_text(at(name)), errors = test::read_text(at(std::string(name) + ".errors.csv"));
    std::string rows = whole;
    if (rows_name != name) {  // the rows on the way, as the writer keeps them
      ResultWriter w(options(name), inputs_);
      run(w, inputs_.size());
      w.flush();
      rows = test::read_text(at(rows_name));
    }
    for (std::size_t cut = 0; cut <= rows.size(); cut += 67) {
      for (const std::size_t error_cut : {std::size_t{0}, errors.size() / 2, errors.size()}) {
        save_file(at(rows_name), std::string_view(rows).substr(0, cut));
        save_file(at(std::string(name) + ".errors.csv"), std::string_view(errors).substr(0, error_cut));
        run_all(options(name, true));
        ASSERT_EQ(test::read_text(at(name)), whole) << name << " cut at " << cut;
        ASSERT_EQ(test::read_text(at(std::string(name) + ".errors.csv")), errors) << name << " cut at " << cut;
      }
    }
  }
}

TEST_F(Results, ContinuingKeepsWhatIsDone) {
  {
    ResultWriter w(options("r.csv"), inputs_);
    run(w, 5);
    w.flush();
    run(w, 6);
  }
  ResultWriter w(options("r.csv", true), inputs_);
  EXPECT_EQ(w.done(), 6u);
  EXPECT_EQ(w.failed(), 2u);
  run(w, inputs_.size());
  w.finish();
  const std::string text = test::read_text(at("r.csv"));
  run_all(options("again.csv"));
  EXPECT_EQ(text, test::read_text(at("again.csv")));
}

TEST_F(Results, RefusesToContinueSomethingElse) {
  run_all(options("r.csv"));
  ResultOptions other = options("r.csv", true);
  other.settings[0].second = "5678";
  const std::string said = test::message_of<UsageError>([&] { ResultWriter(other, inputs_); });
  EXPECT_NE(said.find("then \"model\" \"1234\", now \"model\" \"5678\""), std::string::npos) << said;
  EXPECT_EQ(said.find("layer"), std::string::npos) << "only what differs";
  other = options("r.csv", true);
  other.top_k = 3;
  EXPECT_THROW(ResultWriter(other, inputs_), UsageError);
  fs::remove(at("r.csv.state"));
  EXPECT_THROW(ResultWriter(options("r.csv", true), inputs_), UsageError);
  EXPECT_THROW(ResultWriter(options("r.txt"), inputs_), UsageError);
  EXPECT_THROW(ResultWriter(options("no/r.csv"), inputs_), InvalidData);
}

TEST_F(Results, WhatSomebodyChangedIsNotKept) {
  for (const char* name : {"r.csv", "r.jsonl"}) {
    run_all(options(name));
    for (const std::string& file : {std::string(name), std::string(name) + ".errors.csv"}) {
      const std::string whole = test::read_text(at(file));
      std::string changed = whole;
      changed[changed.size() / 2] ^= 1;
      save_file(at(file), std::string_view(changed));
      const std::string said = test::message_of<UsageError>([&] { ResultWriter(options(name, true), inputs_); });
      EXPECT_NE(said.find(file), std::string::npos) << said;
      EXPECT_EQ(test::read_text(at(file)), changed) << "not touched";
      save_file(at(file), std::string_view(whole + "added,by hand,1\n"));
      run_all(options(name, true));
      EXPECT_EQ(test::read_text(at(file)), whole);
    }
  }
}

TEST_F(Results, WhatIsKeptIsTold) {
  for (const char* name : {"r.csv", "r.jsonl", "r.h5"}) {
    {
      ResultWriter w(options(name), inputs_);
      run(w, 6);
    }
    std::vector<std::string> told;
    ResultOptions o = options(name, true);
    o.kept_row = [&](std::size_t i, const std::string& label, float value) { told.push_back(fmt::format("{} {} {:.1f}", i, label, value)); };
    o.kept_failure = [&](std::size_t i, const std::string& error) { told.push_back(fmt::format("{} {}", i, error)); };
    const ResultWriter w(o, inputs_);
    const std::string label = "cat, \"big\"\n", error = "cut, \"short\"";
    EXPECT_EQ(told, (std::vector<std::string>{"0 " + label + " 0.1", "1 " + label + " 1.1", "2 " + error, "3 " + label + " 3.1",
                                              "4 " + label + " 4.1", "5 " + error}))
        << name;
  }
}

TEST_F(Results, StartsAnewWithoutTheOption) {
  run_all(options("r.csv"));
  ResultWriter w(options("r.csv"), inputs_);
  EXPECT_EQ(w.done(), 0u);
  w.finish();
  EXPECT_EQ(test::read_text(at("r.csv")), "path,top1,prob1,top2,prob2\n");
  EXPECT_FALSE(fs::exists(at("r.csv.errors.csv")));
  ResultWriter first(options("new.csv", true), inputs_);  // nothing there yet
  EXPECT_EQ(first.done(), 0u);
}

TEST_F(Results, TwoRunsDoNotWriteOneFile) {
  const ResultWriter first(options("r.csv"), inputs_);
  EXPECT_THROW(ResultWriter(options("r.csv"), inputs_), InvalidData);
  EXPECT_THROW(ResultWriter(options("r.csv", true), inputs_), InvalidData);
}

TEST(SaveFile, ADeviceStaysADevice) {
  const std::string folder = testing::TempDir() + "tandem-save-" + std::to_string(::getpid());
  fs::create_directories(folder);
  fs::create_symlink("/dev/null", folder + "/null");
  save_file(folder + "/null", std::string_view("text"));
  EXPECT_TRUE(fs::is_symlink(folder + "/null"));
  fs::create_symlink("/dev/full", folder + "/full");
  EXPECT_THROW(save_file(folder + "/full", std::string_view("text")), InvalidData);
  EXPECT_TRUE(fs::is_symlink(folder + "/full"));
  fs::remove_all(folder);
}

}  // namespace
}  // namespace tandem::io
