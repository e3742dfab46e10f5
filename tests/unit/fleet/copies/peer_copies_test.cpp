#include "fleet/copies/peer_copies.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace spark;
using namespace spark::fleet;
using testing::ElementsAre;
using testing::HasSubstr;

namespace {

const std::string kOne(32, '1'), kTwo(32, '2'), kCommit(40, 'c'), kOther(40, 'd');

PeerCopy model_copy(const std::string& hash, const std::string& revision, const std::string& pin = "") {
  staging::ModelRecord record;
  record.name = "org/tiny";
  record.revision = revision;
  record.check = staging::ModelCheck::Published;
  record.pin = pin;
  return {"any", hash, record};
}
PeerAnswer has(const std::string& peer, std::vector<PeerCopy> copies) {
  return {peer, std::move(copies), {}, ""};
}
PeerAnswer is_silent(const std::string& peer) {
  return {peer, {}, {}, "it does not answer"};
}
WantedCopy model(const std::string& revision = "", const std::string& expect = "") {
  staging::ModelOptions options{"org/tiny"};
  options.revision = revision;
  options.expect = expect;
  return {"tiny", options};
}
Errc why(const WantedCopy& wanted, const std::vector<PeerAnswer>& answers) {
  const auto chosen = choose_copy(wanted, answers);
  EXPECT_FALSE(chosen);
  return chosen ? Errc::Failed : chosen.error().kind;
}

TEST(ChooseCopy, ADatasetIsFoundByItsNameAndAllPeersWithTheSameContentAreNamed) {
  const std::vector<PeerAnswer> answers = {has("a", {{"x", kOne}, {"photos", kTwo}}), has("b", {}),
                                           has("c", {{"photos", kTwo}})};
  const auto chosen = choose_copy({"photos"}, answers);
  ASSERT_TRUE(chosen) << chosen.error().message();
  EXPECT_EQ(chosen->hash, kTwo);
  EXPECT_THAT(chosen->peers, ElementsAre("a", "c"));
}

TEST(ChooseCopy, AModelIsFoundUnderAnyDatasetsName) {
  const auto chosen =
      choose_copy(model(), std::vector{has("a", {{"tiny", kOne}, model_copy(kTwo, kCommit)})});
  ASSERT_TRUE(chosen) << chosen.error().message();
  EXPECT_EQ(chosen->hash, kTwo);
}

TEST(ChooseCopy, ACopyOfAnotherModelOrRevisionIsNotIt) {
  const std::vector<PeerAnswer> answers = {has("a", {model_copy(kOne, kOther)})};
  EXPECT_EQ(why(model(kCommit), answers), Errc::NotFound);
  EXPECT_EQ(why({"x", staging::ModelOptions{"org/other"}}, answers), Errc::NotFound);
}

TEST(ChooseCopy, ACopyThatWasCheckedLessThanAskedForIsNotIt) {
  PeerCopy copy = model_copy(kOne, kCommit);
  copy.model->check = staging::ModelCheck::None;
  EXPECT_EQ(why(model(), {has("a", {copy})}), Errc::NotFound);
}

TEST(ChooseCopy, IfNoneHasItASilentPeerMay) {
  EXPECT_EQ(why({"photos"}, {has("a", {})}), Errc::NotFound);
  EXPECT_EQ(why({"photos"}, {}), Errc::NotFound);
  EXPECT_EQ(why({"photos"}, {has("a", {}), is_silent("b")}), Errc::Unavailable);
  const auto silent = choose_copy({"photos"}, std::vector{is_silent("b")});
  EXPECT_TRUE(silent.error().is_away) << "a copy that is here may stand in";
  EXPECT_THAT(silent.error().message(), HasSubstr("b: it does not answer"));
  EXPECT_TRUE(choose_copy({"photos"}, std::vector{has("a", {{"photos", kOne}}), is_silent("b")}));
}

TEST(ChooseCopy, APeerThatDoesNotOfferItsFolderNowIsNamed) {
  PeerAnswer adopter = has("spark1", {});
  adopter.withheld = {{"photos"}, {"llama", "org/tiny"}};
  for (const WantedCopy& wanted : {WantedCopy{"photos"}, model()}) {
    const auto chosen = choose_copy(wanted, std::vector{has("a", {}), adopter});
    ASSERT_FALSE(chosen);
    EXPECT_EQ(chosen.error().kind, Errc::Unavailable);
    EXPECT_TRUE(chosen.error().is_away) << "a copy that is here may stand in";
    EXPECT_THAT(chosen.error().message(), HasSubstr("spark1: it has adopted"));
  }
  EXPECT_EQ(why({"llama"}, {adopter}), Errc::Unavailable);
  EXPECT_EQ(why({"other"}, {adopter}), Errc::NotFound);
  EXPECT_EQ(why({"llama", staging::ModelOptions{"org/other"}}, {adopter}), Errc::NotFound);
  EXPECT_TRUE(choose_copy({"photos"}, std::vector{adopter, has("b", {{"photos", kOne}})}));
}

TEST(ChooseCopy, PeersThatDisagreeAreNamedAndNothingIsChosen) {
  const std::vector<PeerAnswer> answers = {has("a", {model_copy(kOne, kCommit)}),
                                           has("b", {model_copy(kTwo, kOther)})};
  const auto chosen = choose_copy(model(), answers);
  ASSERT_FALSE(chosen);
  EXPECT_EQ(chosen.error().kind, Errc::Mismatch);
  EXPECT_THAT(chosen.error().message(), HasSubstr("a 111111111111… (revision " + kCommit));
  EXPECT_THAT(chosen.error().message(), HasSubstr("b 222222222222…"));
  EXPECT_EQ(choose_copy(model(kOther), answers)->hash, kTwo) << "a commit decides";
}

TEST(ChooseCopy, APinDecidesBetweenPeersThatDisagree) {
  const std::vector<PeerAnswer> answers = {has("a", {model_copy(kOne, kCommit, "sha256:1")}),
                                           has("b", {model_copy(kTwo, kCommit, "sha256:2")})};
  EXPECT_EQ(choose_copy(model("", "sha256:2"), answers)->hash, kTwo);
  EXPECT_EQ(why(model("", "sha256:3"), answers), Errc::Mismatch);
}

// Downloads with another umask have other modes, and so another hash.
TEST(ChooseCopy, CopiesOfThePinnedFilesDoNotDisagree) {
  const std::vector<PeerAnswer> answers = {has("a", {model_copy(kOne, kCommit, "sha256:1")}),
                                           has("b", {model_copy(kTwo, kCommit, "sha256:1")})};
  EXPECT_EQ(why(model(), answers), Errc::Mismatch);
  const auto chosen = choose_copy(model("", "sha256:1"), answers);
  ASSERT_TRUE(chosen) << chosen.error().message();
  EXPECT_EQ(chosen->hash, kOne);
  EXPECT_THAT(chosen->peers, ElementsAre("a"));
}

TEST(ChooseCopy, ACopyWithoutAPinIsComparedOnceItIsHere) {
  EXPECT_EQ(choose_copy(model("", "sha256:3"), std::vector{has("a", {model_copy(kOne, kCommit)})})->hash,
            kOne);
}

TEST(CopiesIn, LeavesOutWhatNoContentNames) {
  const auto list = parse_json(R"([1, {"name": "a", "hash": "../x"}, {"name": "c", "hash": ")" + kOne +
                               R"(", "model": "{"}, {"hash": 1}])");
  ASSERT_TRUE(list);
  const auto copies = copies_in(list->as_array());
  ASSERT_EQ(copies.size(), 1u);
  EXPECT_EQ(copies.front().dataset, "c");
  EXPECT_FALSE(copies.front().model);
}

}  // namespace
