// A model in a cache of Hugging Face that is adopted.
#include <gmock/gmock.h>

#include "tests/unit/fleet/adopted/adopted_fixture.hpp"

using namespace spark;
using namespace spark::fleet;
using spark::fleet::test::AdoptedFixture;
using testing::HasSubstr;

namespace {

class ModelAdoptionTest : public AdoptedFixture {
 protected:
  staging::test::MadeHub hub_{folder_ / "hub"};
  ModelAdoptionTest() {
    hub_.make("org/tiny", staging::test::HubLayout::Shared);
    path_ = adopted_.path = hub_.folder();
    adopted_.model = staging::ModelOptions{"org/tiny"};
  }
  void expect_failed(const std::string& named) {
    Adoption adoption(adopted_, state_dir_, clock_);
    look(adoption);
    clock_.now += Adoption::kRest;
    look(adoption);
    EXPECT_EQ(adoption.state(), AdoptionState::Failed);
    EXPECT_THAT(adoption.reason(), HasSubstr(named));
    EXPECT_FALSE(std::filesystem::exists(offer()));
  }
};

TEST_F(ModelAdoptionTest, AModelInACacheIsOfferedAsItsCopyWouldBe) {
  Adoption adoption(adopted_, state_dir_, clock_);
  adopt(adoption);
  const auto offered = read_offer(offer(), definition_of(adopted_));
  const auto record = staging::parse_model_record(offered->model);
  ASSERT_TRUE(record);
  EXPECT_EQ(record->revision, hub_.commit);
  EXPECT_EQ(record->sha256, 2u);
  EXPECT_EQ(record->git_sha1, 2u);
  EXPECT_TRUE(record->pin.starts_with("sha256:"));
  EXPECT_EQ(adoption.summary().hash, hash_of_copy());
}

TEST_F(ModelAdoptionTest, ADigestThatDiffersAndAPinThatDiffersAreNotOffered) {
  adopted_.model->expect = "sha256:" + std::string(64, 'a');
  expect_failed("'expect' pins");
  adopted_.model->expect.clear();
  flip(hub_.payload("org/tiny", "model-00002-of-00002.safetensors"));
  expect_failed("model-00002-of-00002.safetensors");
}

TEST_F(ModelAdoptionTest, AMissingShardIsNotOffered) {
  std::filesystem::remove(hub_.payload("org/tiny", "model-00001-of-00002.safetensors"));
  expect_failed("model-00001-of-00002.safetensors");
}

TEST_F(ModelAdoptionTest, WhatFailedIsReadAgainAfterAWhileOrAChange) {
  adopted_.model->expect = "sha256:" + std::string(64, 'a');
  Adoption adoption(adopted_, state_dir_, clock_);
  int readings = 0;
  const auto pass = [&](std::chrono::seconds time) {
    clock_.now += time;
    adoption.look(stop_);
    readings += adoption.reading() ? 1 : 0;
    look(adoption);
  };
  pass({});
  pass(Adoption::kRest);
  EXPECT_EQ(readings, 1);
  pass(Adoption::kRest);
  EXPECT_EQ(readings, 1);
  EXPECT_EQ(adoption.state(), AdoptionState::Failed);
  pass(Adoption::kAgain);
  EXPECT_EQ(readings, 2);
  flip(hub_.payload("org/tiny", "config.json"));
  pass({});
  pass(Adoption::kRest);
  EXPECT_EQ(readings, 3);
}

// As `echo COMMIT > refs/main` writes it: a copy has it without the line end.
TEST_F(ModelAdoptionTest, ARefWithALineEndIsOfferedAsInACopy) {
  staging::test::write_text(hub_.model("org/tiny") / "refs/main", hub_.commit + "\n");
  Adoption adoption(adopted_, state_dir_, clock_);
  adopt(adoption);
  EXPECT_EQ(adoption.summary().hash, hash_of_copy());
}

// A download of a newer revision names it first, and takes hours.
TEST_F(ModelAdoptionTest, ARevisionIsOfferedUntilTheNextOneCanBe) {
  Adoption adoption(adopted_, state_dir_, clock_);
  adopt(adoption);
  const std::string before = adoption.summary().hash;
  const OfferVersion written = version_of(offer());
  std::string next(40, 'd');
  staging::test::write_text(hub_.model("org/tiny") / "refs/main", next);
  look(adoption);
  EXPECT_THAT(adoption.reason(), HasSubstr(next));
  EXPECT_EQ(version_of(offer()), written) << "peers get what is there";
  Adoption restarted(adopted_, state_dir_, clock_);
  look(restarted);
  EXPECT_EQ(version_of(offer()), written);
  std::swap(hub_.commit, next);
  for (auto& [name, content] : hub_.files)  // else their blobs would be written again
    (name.ends_with(".json") ? content += " " : content).back() = name.ends_with(".json") ? ' ' : 'z';
  hub_.make("org/tiny", staging::test::HubLayout::Old);
  look(restarted);
  EXPECT_EQ(restarted.state(), AdoptionState::Changing);
  EXPECT_EQ(version_of(offer()), written);
  adopt(restarted);
  EXPECT_NE(restarted.summary().hash, before);
  const auto offered = read_offer(offer(), definition_of(adopted_));
  EXPECT_EQ(staging::parse_model_record(offered->model)->revision, hub_.commit);
}

TEST_F(ModelAdoptionTest, ARevisionWhoseFilesHaveChangedIsNotKept) {
  Adoption adoption(adopted_, state_dir_, clock_);
  adopt(adoption);
  staging::test::write_text(hub_.model("org/tiny") / "refs/main", std::string(40, 'd'));
  flip(hub_.payload("org/tiny", "model-00002-of-00002.safetensors"));
  look(adoption);
  EXPECT_EQ(adoption.state(), AdoptionState::Failed);
  EXPECT_FALSE(std::filesystem::exists(offer()));
}

}  // namespace
