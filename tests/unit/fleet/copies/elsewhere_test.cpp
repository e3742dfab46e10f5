// A host without the folder stages a copy that another host has.
#include "fleet/copies/elsewhere.hpp"

#include <gtest/gtest.h>

#include <fstream>

#include "tests/unit/fleet/serve/host.hpp"
#include "tests/unit/staging/models/made_weights.hpp"

using namespace spark;
using namespace spark::fleet;
using spark::fleet::test::FleetHost;

namespace {

constexpr Bytes kLarge = 20 * kMiB, kMiddle = 5 * kMiB;

class ElsewhereTest : public testing::Test {
 protected:
  const std::string key_ = new_key().value();
  spark::test::TempFolder folder_;
  FleetHost first_{key_, "nqn.a"}, second_{key_, "nqn.b"}, third_{key_, "nqn.c"};
  staging::Source source_{"set", folder_ / "source", {}};

  ElsewhereTest() {
    std::filesystem::create_directories(source_.path / "sub");
    write("large", std::string(kLarge, 'l'));
    write("middle", std::string(kMiddle, 'm'));
    for (int i = 0; i < 20; ++i) write("sub/" + std::to_string(i), std::string(100 + i, 's'));
    write("empty", "");
  }
  void write(const std::string& name, const std::string& text) {
    ASSERT_TRUE(write_file_atomically(source_.path / name, text));
  }
  static PeerAddress named(const std::string& name, const FleetHost& host) {
    return {name, host.address().endpoints};
  }
  // On the first host, as a plain folder that the configuration does not exchange with peers.
  staging::CopyReport staged_there() {
    const auto staged = first_.stage(source_, {});
    EXPECT_TRUE(staged) << staged.error().message();
    return staged ? staged->report : staging::CopyReport{};
  }
  void damage(const FleetHost& host, const std::string& file) {
    const auto copy = staging::CacheFolder(host.cache_path()).place("set", 1).path();
    std::fstream bytes(copy / file, std::ios::in | std::ios::out | std::ios::binary);
    bytes.seekp(10).put('x');
    EXPECT_TRUE(bytes.flush());
  }
};

TEST_F(ElsewhereTest, TheCopyHasTheSameContentAndAllOfItIsFromPeers) {
  const auto there = staged_there();
  const auto here = second_.stage_elsewhere(source_, {named("a", first_)});
  ASSERT_TRUE(here) << here.error().message();
  EXPECT_EQ(here->report.hash, there.hash);
  EXPECT_EQ(here->report.bytes, there.bytes);
  EXPECT_EQ(here->report.bytes_from_peers, there.bytes);
  EXPECT_EQ(read_file(here->path / "sub/7").value(), std::string(107, 's'));
}

TEST_F(ElsewhereTest, ASecondRequestCopiesNothing) {
  staged_there();
  ASSERT_TRUE(second_.stage_elsewhere(source_, {named("a", first_)}));
  const auto again = second_.stage_elsewhere(source_, {named("a", first_)});
  ASSERT_TRUE(again) << again.error().message();
  EXPECT_EQ(again->served_from, staging::ServedFrom::Cache);
  EXPECT_EQ(again->generation, 1u);
}

TEST_F(ElsewhereTest, AHostThatGotItFromAPeerGivesItToTheNext) {
  const auto there = staged_there();
  ASSERT_TRUE(second_.stage_elsewhere(source_, {named("a", first_)}));
  const auto here = third_.stage_elsewhere(source_, {named("b", second_)});
  ASSERT_TRUE(here) << here.error().message();
  EXPECT_EQ(here->report.hash, there.hash);
}

// As of two downloads: the times differ, the content does not.
TEST_F(ElsewhereTest, HostsThatHaveItFromDifferentPlacesDoNotDisagree) {
  const auto there = staged_there();
  for (const auto& one : std::filesystem::recursive_directory_iterator(source_.path))
    std::filesystem::last_write_time(one,
                                     std::filesystem::file_time_type::clock::now() - std::chrono::hours(9));
  ASSERT_TRUE(second_.stage(source_, {}));
  const auto here = third_.stage_elsewhere(source_, {named("a", first_), named("b", second_)});
  ASSERT_TRUE(here) << here.error().message();
  EXPECT_EQ(here->report.hash, there.hash);
  EXPECT_EQ(here->report.bytes_from_peers, there.bytes);
}

TEST_F(ElsewhereTest, ASparseFileComesInPieces) {
  write("sparse", "");
  std::filesystem::resize_file(source_.path / "sparse", 30 * kMiB);
  const auto there = staged_there();
  const auto here = second_.stage_elsewhere(source_, {named("a", first_)});
  ASSERT_TRUE(here) << here.error().message();
  EXPECT_EQ(here->report.hash, there.hash);
}

TEST_F(ElsewhereTest, NoPeerHasItOrNoneThatAnswers) {
  const auto none = second_.stage_elsewhere(source_, {named("a", first_)});
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().kind, Errc::NotFound);
  const auto away = second_.stage_elsewhere(source_, {{"gone", {{"127.0.0.1", 1}}}});
  ASSERT_FALSE(away);
  EXPECT_EQ(away.error().kind, Errc::Unavailable);
}

TEST_F(ElsewhereTest, PeersWithOtherContentUnderTheNameDisagree) {
  staged_there();
  write("sub/7", "other");
  ASSERT_TRUE(second_.stage(source_, {}));
  const auto here = third_.stage_elsewhere(source_, {named("a", first_), named("b", second_)});
  ASSERT_FALSE(here);
  EXPECT_EQ(here.error().kind, Errc::Mismatch);
}

// The peer's own digest of what it sends counts for nothing.
TEST_F(ElsewhereTest, DamageAtTheOnlyPeerIsFoundAndNothingIsPublished) {
  staged_there();
  damage(first_, "middle");
  const auto here = second_.stage_elsewhere(source_, {named("a", first_)});
  ASSERT_FALSE(here);
  EXPECT_EQ(here.error().kind, Errc::Mismatch) << here.error().message();
  EXPECT_NE(here.error().message().find("peer a sent wrong bytes of middle"), std::string::npos)
      << here.error().message();
  EXPECT_TRUE(second_.cache()->list()->empty());
}

TEST_F(ElsewhereTest, WhatIsDamagedAtOnePeerComesFromAnother) {
  const auto there = staged_there();
  ASSERT_TRUE(second_.stage_elsewhere(source_, {named("a", first_)}));
  for (const char* file : {"large", "middle", "sub/7"}) damage(first_, file);
  const auto here = third_.stage_elsewhere(source_, {named("a", first_), named("b", second_)});
  ASSERT_TRUE(here) << here.error().message();
  EXPECT_EQ(here->report.hash, there.hash);
}

class ModelElsewhereTest : public ElsewhereTest {
 protected:
  ModelElsewhereTest() {
    std::filesystem::remove_all(source_.path);
    std::filesystem::create_directories(source_.path);
    write("model.safetensors", staging::whole_safetensors());
    write("config.json", "{}");
    source_.model = staging::ModelOptions{"org/tiny"};
  }
  std::string pin() {
    staging::Source pinned = source_;
    pinned.model->expect = "sha256:" + std::string(64, 'a');
    const auto wrong = first_.stage(pinned, {});
    const std::string text = wrong ? "" : wrong.error().message();
    const std::size_t at = text.find("it is sha256:");
    EXPECT_NE(at, std::string::npos) << text;
    return at == std::string::npos ? "" : text.substr(at + 6, 7 + 64);
  }
};

TEST_F(ModelElsewhereTest, AModelIsFoundByItsNameWhateverTheDatasetIsCalledThere) {
  const auto there = staged_there();
  const auto here = second_.stage_elsewhere(source_, {named("a", first_)});
  ASSERT_TRUE(here) << here.error().message();
  ASSERT_TRUE(here->model);
  EXPECT_EQ(here->model->record.name, "org/tiny");
  EXPECT_EQ(here->report.hash, there.hash);
  source_.model->name = "org/other";
  const auto other = second_.stage_elsewhere(source_, {named("a", first_)});
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().kind, Errc::NotFound);
}

TEST_F(ModelElsewhereTest, AWrongPinIsRefusedAndARightOneServesWithoutAnyPeer) {
  const std::string right = pin();
  staged_there();
  source_.model->expect = "sha256:" + std::string(64, 'b');
  const auto wrong = second_.stage_elsewhere(source_, {named("a", first_)});
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().kind, Errc::Mismatch) << wrong.error().message();
  source_.model->expect = right;
  const auto here = second_.stage_elsewhere(source_, {named("a", first_)});
  ASSERT_TRUE(here) << here.error().message();
  const auto again = second_.stage_elsewhere(source_, {});
  ASSERT_TRUE(again) << again.error().message();
  EXPECT_EQ(again->served_from, staging::ServedFrom::Cache);
}

TEST_F(ModelElsewhereTest, ACopyWithoutItsWeightsIsNotServed) {
  source_.model->check = staging::ModelCheck::None;
  write("model.safetensors", "short");
  staged_there();
  source_.model->check = staging::ModelCheck::Structure;
  const auto here = second_.stage_elsewhere(source_, {named("a", first_)});
  ASSERT_FALSE(here);
  EXPECT_EQ(here.error().kind, Errc::NotFound) << "it was checked less there";
}

}  // namespace
