#include "io/listing.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "runtime/base/error.h"
#include "tests/io/message_of.h"
#include "tests/support/files.h"

namespace tandem::io {
namespace {

using test::message_of;
using Names = std::vector<std::string>;

class ListingTest : public testing::Test {
 protected:
  Listing list(const std::string& name, const std::string& text) { return list_inputs(folder_.write(name, text), false); }
  test::TemporaryFolder folder_;
};

TEST_F(ListingTest, FolderIsSortedByBytesAndNamesAreRaw) {
  const std::string odd = "a\n\xff b.JPEG";
  for (const std::string& name : {std::string("b.png"), std::string("B.jpg"), odd, std::string("notes.md"), std::string("x.gif"),
                                  std::string("y.tif"), std::string("sub/c.webp"), std::string("sub/deep/d.bmp"), std::string("noext")})
    folder_.write(name);
  EXPECT_EQ(list_inputs(folder_.path(), false).paths, (Names{"B.jpg", odd, "b.png", "x.gif", "y.tif"}));
  const Listing all = list_inputs(folder_.path(), true);
  EXPECT_EQ(all.paths, (Names{"B.jpg", odd, "b.png", "sub/c.webp", "sub/deep/d.bmp", "x.gif", "y.tif"}));
  EXPECT_EQ(all.full(3), folder_ / "sub/c.webp");
  EXPECT_TRUE(all.labels.empty());
}

TEST_F(ListingTest, LinksAreFollowedButNotInCircles) {
  folder_.write("a/1.png");
  std::filesystem::create_directory_symlink("..", folder_ / "a/up");
  std::filesystem::create_directory_symlink("a", folder_ / "b");
  EXPECT_EQ(list_inputs(folder_.path(), true).paths, (Names{"a/1.png", "b/1.png"}));
}

TEST_F(ListingTest, NothingThereIsAnError) {
  EXPECT_THROW(list_inputs(folder_ / "none", false), InvalidData);
  EXPECT_THROW(list_inputs(folder_ / std::string(5000, 'x'), false), InvalidData);
  folder_.write("sub/a.png");
  EXPECT_NE(message_of<InvalidData>([&] { list_inputs(folder_.path(), false); }).find("--recursive"), std::string::npos);
  EXPECT_THROW(list_inputs(folder_ / "*.png", false), InvalidData);
  EXPECT_THROW(list("empty.txt", "\n\n"), InvalidData);
}

TEST_F(ListingTest, GlobsAndSingleFiles) {
  for (const char* name : {"b1.png", "a1.png", "a2.jpg", "[x].png"}) folder_.write(name);
  std::filesystem::create_directory(folder_ / "c1.png");
  EXPECT_EQ(list_inputs(folder_ / "?1.png", false).paths, (Names{folder_ / "a1.png", folder_ / "b1.png"}));
  EXPECT_EQ(list_inputs(folder_ / "[x].png", false).paths, Names{folder_ / "[x].png"});  // a file of that name goes before the pattern
  EXPECT_EQ(list_inputs(folder_ / "a2.jpg", false).full(0), folder_ / "a2.jpg");
}

TEST_F(ListingTest, TextLists) {
  const Listing plain = list("p.txt", "a b.jpg\r\n/abs/c.jpg\n\nlast.png");
  EXPECT_EQ(plain.paths, (Names{"a b.jpg", "/abs/c.jpg", "last.png"}));
  EXPECT_TRUE(plain.labels.empty());
  EXPECT_EQ(plain.full(0), folder_ / "a b.jpg");
  EXPECT_EQ(plain.full(1), "/abs/c.jpg");
  const Listing caffe = list("c.txt",
                             "\xef\xbb\xbf"
                             "a b.jpg 3\nc.jpg\t12 \nd 5.jpg  0\ne.jpg cat\nf g.jpg\nh.jpg");
  EXPECT_EQ(caffe.paths, (Names{"a b.jpg", "c.jpg", "d 5.jpg", "e.jpg", "f g.jpg", "h.jpg"}));
  EXPECT_EQ(caffe.labels, (Names{"3", "12", "0", "cat", "", ""}));
}

TEST_F(ListingTest, Csv) {
  const Listing named = list("n.csv", "Path,Label\n\"a, \"\"b\"\"\n.jpg\",cat\r\nc.jpg,\n");
  EXPECT_EQ(named.paths, (Names{"a, \"b\"\n.jpg", "c.jpg"}));
  EXPECT_EQ(named.labels, (Names{"cat", ""}));
  EXPECT_EQ(list("b.csv", "a.jpg,1\nb.jpg,0").labels, (Names{"1", "0"}));
  EXPECT_EQ(list("h.CSV", "picture,label\na.jpg,1\n").paths, Names{"a.jpg"});
  EXPECT_TRUE(list("u.csv", "a.jpg\nb.jpg\n").labels.empty());
  EXPECT_NE(message_of<InvalidData>([&] { list("q.csv", "a.jpg,1\n\"b.jpg,2\n"); }).find("q.csv"), std::string::npos);
}

using Rows = std::vector<std::vector<std::string>>;

TEST_F(ListingTest, SeveralNumbersBehindAPath) {
  const Listing text = list("s.txt", "a b.jpg 0 1 1\n\nc.png\t1.5 -2e3 \nd 5.jpg 7\ne 1 2.jpg\nf 3 4\ng.png dog 1\n");
  EXPECT_EQ(text.paths, (Names{"a b.jpg", "c.png", "d 5.jpg", "e 1 2.jpg", "f 3", "g.png dog"}));
  EXPECT_EQ(text.labels, (Names{"0", "1.5", "7", "", "4", "1"}));
  EXPECT_EQ(text.fields, (Rows{{"0", "1", "1"}, {"1.5", "-2e3"}, {"7"}, {""}, {"4"}, {"1"}}));
  EXPECT_EQ(text.lines, (std::vector<std::int64_t>{1, 3, 4, 5, 6, 7}));
  const Listing csv = list("s.csv", "x,cat,dog\n\"a\nb.jpg\",0,1\nc.jpg,1,,\n\nd.jpg,1,word\n");
  EXPECT_EQ(csv.header, (Names{"cat", "dog"}));
  EXPECT_EQ(csv.paths, (Names{"a\nb.jpg", "c.jpg", "d.jpg"}));
  EXPECT_EQ(csv.labels, (Names{"0", "1", "1"}));
  EXPECT_EQ(csv.fields, (Rows{{"0", "1"}, {"1"}, {"1", "word"}}));
  EXPECT_EQ(csv.lines, (std::vector<std::int64_t>{2, 4, 6}));
  EXPECT_TRUE(list("n.csv", "a.jpg,0,1\n").header.empty());
  EXPECT_EQ(list("p.csv", "path,label\na.jpg,1\n").header, Names{"label"});
}

TEST_F(ListingTest, ClassFolders) {
  for (const char* name : {"class10/a.png", "class2/b.png", "class2/deep/a.png", "class2/a.png", "notes.png", "empty/readme.md"}) folder_.write(name);
  const ClassFolders plain = list_class_folders(folder_.path(), false);
  EXPECT_EQ(plain.classes, (Names{"class10", "class2"}));
  EXPECT_EQ(plain.paths, (Names{folder_ / "class10/a.png", folder_ / "class2/a.png", folder_ / "class2/b.png", folder_ / "class2/deep/a.png"}));
  EXPECT_EQ(plain.class_index, (std::vector<std::int64_t>{0, 1, 1, 1}));
  EXPECT_EQ(plain.empty, Names{"empty"});
  EXPECT_EQ(list_class_folders(folder_.path(), true).classes, (Names{"class2", "class10"}));
  EXPECT_TRUE(has_class_folders(folder_.path()));
  EXPECT_FALSE(has_class_folders(folder_ / "empty"));
  EXPECT_FALSE(has_class_folders(folder_ / "none"));
  EXPECT_THROW(list_class_folders(folder_ / "empty", false), InvalidData);
  EXPECT_THROW(list_class_folders(folder_ / "none", false), InvalidData);
}

TEST_F(ListingTest, HiddenFoldersAreNoClasses) {
  for (const char* name : {"cat/a.png", "cat/.ipynb_checkpoints/a.png", "cat/deep/.thumbs/b.png", "dog/b.png", ".cache/deep/c.png", ".git/HEAD"})
    folder_.write(name);
  const ClassFolders found = list_class_folders(folder_.path(), false);
  EXPECT_EQ(found.classes, (Names{"cat", "dog"}));
  EXPECT_EQ(found.paths, (Names{folder_ / "cat/a.png", folder_ / "dog/b.png"}));
  EXPECT_EQ(found.hidden, (Names{".cache", "cat/.ipynb_checkpoints", "cat/deep/.thumbs"}));
  EXPECT_TRUE(found.empty.empty());
  test::TemporaryFolder hidden;  // nothing else is there
  hidden.write(".cache/a.png");
  EXPECT_FALSE(has_class_folders(hidden.path()));
  EXPECT_THROW(list_class_folders(hidden.path(), false), InvalidData);
  EXPECT_EQ(list_inputs(folder_ / "cat", true).paths.size(), 3u);  // a folder to predict is taken as it is
}

TEST_F(ListingTest, NaturalOrder) {
  for (const char* name : {"1/a.png", "01/a.png", "10/a.png", "9/a.png", "a2b/a.png", "a10b/a.png", "a2/a.png", "B/a.png"}) folder_.write(name);
  EXPECT_EQ(list_class_folders(folder_.path(), true).classes, (Names{"01", "1", "9", "10", "B", "a2", "a2b", "a10b"}));
}

TEST_F(ListingTest, TheValidationHalf) {
  for (const char* name : {"train/cat/a.png", "train/dog/b.png", "val/cat/c.png"}) folder_.write(name);
  EXPECT_EQ(list_class_folders(folder_.path(), false).paths, Names{folder_ / "val/cat/c.png"});
  test::TemporaryFolder other;  // a class called "val"
  other.write("val/a.png");
  other.write("test/b.png");
  EXPECT_EQ(list_class_folders(other.path(), false).classes, (Names{"test", "val"}));
}

}  // namespace
}  // namespace tandem::io
