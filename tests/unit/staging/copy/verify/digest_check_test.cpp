#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "staging/copy/copy.hpp"
#include "staging/copy/verify/published_digests.hpp"
#include "staging/models/sha256.hpp"
#include "staging/models/sums.hpp"
#include "tests/unit/staging/copy/copy_fixture.hpp"

namespace spark::staging {
namespace {

using namespace test;

using testing::AllOf;
using testing::HasSubstr;

// sha256sum of "abc" and of the empty input (FIPS 180-2 and its errata).
constexpr const char* kAbc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
constexpr const char* kEmpty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

class DigestCheck : public CopyTest {
 protected:
  DigestCheck() { options_.sha256 = true; }
};

TEST(Sha256, MatchesTheStandardsTestVectors) {
  Sha256 some, none;
  some.add(std::as_bytes(std::span("abc", 3)));
  EXPECT_EQ(some.hex(), kAbc);
  EXPECT_EQ(none.hex(), kEmpty);
}

TEST(SumLine, IsReadAsSha256sumWritesIt) {
  const std::string abc = kAbc;
  const auto text = parse_sum_line(abc + "  a file  ");
  ASSERT_TRUE(text);
  EXPECT_EQ(text->name, "a file  ");
  EXPECT_EQ(text->sha256, kAbc);
  EXPECT_EQ(parse_sum_line(abc + " *binary")->name, "binary");
  EXPECT_EQ(parse_sum_line(abc + " one space")->name, "one space");
  EXPECT_EQ(parse_sum_line("\\" + abc + "  new\\nline\\\\")->name, "new\nline\\");
  EXPECT_EQ(parse_sum_line("SHA256 (a) b) = " + abc)->name, "a) b");
  EXPECT_EQ(parse_sum_line(abc + "\r")->name, "");
  std::string upper = abc;
  upper[0] = 'B';
  EXPECT_EQ(parse_sum_line(upper + "  x")->sha256, kAbc);
  for (const std::string& none : {std::string(), std::string("# comment"), abc + "  ", abc.substr(1) + "  x",
                                  abc + "x", "MD5 (x) = " + abc}) {
    const auto parsed = parse_sum_line(none);
    EXPECT_TRUE(!parsed || parsed->name.empty()) << none;
  }
}

TEST_F(DigestCheck, FilesThatMatchTheirPublishedDigestsAreCounted) {
  const std::string abc = kAbc, empty = kEmpty;
  write_text(source_ / "a", "abc");
  write_text(source_ / "deep/SHA256SUMS", empty + "  ./none\n" + abc + " *more/b\n# signed\n");
  write_text(source_ / "deep/none", "");
  write_text(source_ / "deep/more/b", "abc");
  write_text(source_ / "a.sha256", abc + "\n");
  write_text(source_ / "models--x/blobs" / abc, "abc");
  write_text(source_ / "models--x/blobs" / std::string(40, 'a'), "small files have git's hash");
  write_text(source_ / ".cache/huggingface/download/deep/more/b.metadata", "commit\n" + abc + "\n17.5\n");
  write_text(source_ / ".cache/huggingface/download/a.metadata",
             "commit\n" + std::string(40, 'b') + "\n17.5\n");
  write_text(source_ / ".git/lfs/objects/ba/78" / abc, "abc");
  const auto report = copy_now();
  ASSERT_OK(report);
  EXPECT_EQ(report->sha256_files, 6U);
  const auto again = copy_now();
  ASSERT_OK(again);
  EXPECT_TRUE(again->unchanged);
  EXPECT_EQ(again->sha256_files, 6U);
}

// Each file that is there matches its digest.
TEST_F(DigestCheck, AModelWithoutAShardIsNotPublished) {
  const std::string abc = kAbc;
  write_text(source_ / "SHA256SUMS", abc + "  a\n");
  write_text(source_ / "a", "abc");
  write_text(source_ / "m-1.bin", "weights");
  write_text(source_ / "model.bin.index.json", R"({"weight_map":{"x":"m-1.bin","y":"m-2.bin"}})");
  const auto report = copy_now();
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().kind, Errc::Mismatch);
  EXPECT_NE(report.error().what.find("model.bin.index.json: it names m-2.bin, which is not there"),
            std::string::npos)
      << report.error().what;
  write_text(source_ / "m-2.bin", "weights");
  ASSERT_OK(copy_now());
}

TEST_F(DigestCheck, ADifferingOrMissingFileIsNamedAndNothingIsPublished) {
  const std::string abc = kAbc;
  write_text(source_ / "SHA256SUMS", abc + "  right\n" + abc + "  wrong\n" + abc + "  missing\n" + abc +
                                         "  ../out\n" + abc + "  link\n" + abc + "  folder\n");
  write_text(source_ / "right", "abc");
  write_text(source_ / "wrong", "abd");
  write_text(source_ / "folder/x", "abc");
  write_text(folder_ / "out", "abc");
  std::filesystem::create_symlink("right", source_ / "link");
  const auto report = copy_now();
  EXPECT_KIND(report, Errc::Mismatch);
  EXPECT_THAT(report.error().what, AllOf(HasSubstr("wrong does not match SHA256SUMS"),
                                         HasSubstr("missing is missing"), HasSubstr("../out is missing"),
                                         HasSubstr("link is a symlink"), HasSubstr("folder is no file")));
  EXPECT_FALSE(std::filesystem::exists(copy_));
}

TEST_F(DigestCheck, ASetWithoutDigestsIsRefusedBeforeItIsCopied) {
  write_text(source_ / "a", "abc");
  bool began = false;
  const auto look = [&](const CopyProgress& now) { began |= now.phase == CopyPhase::Copying; };
  EXPECT_KIND(copy(source_, copy_, options_, look, stop_), Errc::NotFound);
  EXPECT_FALSE(began);
  EXPECT_FALSE(std::filesystem::exists(copy_));
}

TEST_F(DigestCheck, AnUnchangedCopyWithoutDigestsIsNotCalledChecked) {
  write_text(source_ / "a", "abc");
  options_.sha256 = false;
  ASSERT_OK(copy_now());
  options_.sha256 = true;
  EXPECT_KIND(copy_now(), Errc::NotFound);
}

// Each file was booked with 4 MiB.
TEST_F(DigestCheck, ARateLimitCountsTheBytesThatAreRead) {
  const std::string abc = kAbc;
  std::string sums;
  for (int i = 0; i < 20; ++i) {
    write_text(source_ / std::to_string(i), "abc");
    sums += abc + "  " + std::to_string(i) + "\n";
  }
  write_text(source_ / "SHA256SUMS", sums);
  options_.rate.most = 1'000;  // with one block of 4 KiB for each file, this would take 80 s
  const auto began = std::chrono::steady_clock::now();
  const auto look = [&](const CopyProgress&) {
    if (std::chrono::steady_clock::now() - began > std::chrono::seconds(30)) stop_ = true;
  };
  ASSERT_OK(copy(source_, copy_, options_, look, stop_));
}

TEST_F(DigestCheck, AfterAMismatchTheRepairedFileAloneIsCopiedAgain) {
  const std::string abc = kAbc;
  write_text(source_ / "SHA256SUMS", abc + "  a\n");
  write_text(source_ / "a", "abd");
  write_text(source_ / "b", noise(3'000'000, 1));
  EXPECT_KIND(copy_now(), Errc::Mismatch);
  write_text(source_ / "a", "abc");
  const auto report = copy_now();
  ASSERT_OK(report);
  EXPECT_GE(report->resumed_bytes, 3'000'000U);
  EXPECT_EQ(read_text(copy_ / "a"), "abc");
}

}  // namespace
}  // namespace spark::staging
