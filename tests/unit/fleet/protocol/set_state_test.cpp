#include "fleet/protocol/set_state.hpp"

#include <gtest/gtest.h>

using namespace spark::fleet;

namespace {

SetState staging_state() {
  SetState state;
  state.kind = SetState::Kind::Staging;
  state.node = 77;
  state.units = {UnitState::Absent, UnitState::Reading, UnitState::HasPiece, UnitState::HasFile,
                 UnitState::HasPiece};
  state.unit_count = state.units.size();
  return state;
}

TEST(SetState, IsParsedAsWritten) {
  EXPECT_EQ(parse_set_state(to_text(staging_state()), 5).value(), staging_state());
  SetState none;
  none.node = 1;
  EXPECT_EQ(parse_set_state(to_text(none), 0).value(), none);
  SetState published;
  published.kind = SetState::Kind::Published;
  published.unit_count = 5;
  EXPECT_EQ(parse_set_state(to_text(published), 5).value(), published);
}

TEST(SetState, FieldsOfALaterVersionAreIgnored) {
  std::string text = to_text(staging_state());
  text.insert(1, R"("new": {"of": ["a", "later", "version"]}, )");
  EXPECT_EQ(parse_set_state(text, 5).value(), staging_state());
}

TEST(SetState, AHostSaysHowItReadsTheSourceAndSilenceMeansNormally) {
  SetState state = staging_state();
  EXPECT_EQ(to_text(state).find("reads"), std::string::npos) << "as hosts of an earlier version write it";
  for (const auto reads : {SetState::Reads::Slowly, SetState::Reads::Never}) {
    state.reads = reads;
    EXPECT_EQ(parse_set_state(to_text(state), 5).value().reads, reads);
  }
  EXPECT_EQ(parse_set_state(to_text(staging_state()), 5).value().reads, SetState::Reads::Normally);
}

TEST(SetState, AnUnknownWayToReadTheSourceCountsAsNormal) {
  for (const char* later : {R"("reads": "sometimes", )", R"("reads": 3, )"}) {
    std::string text = to_text(staging_state());
    text.insert(1, later);
    EXPECT_EQ(parse_set_state(text, 5).value(), staging_state()) << later;
  }
}

TEST(SetState, AWrongNumberOfUnitsOrBitsIsRefused) {
  const std::string text = to_text(staging_state());
  EXPECT_FALSE(parse_set_state(text, 4));
  EXPECT_FALSE(parse_set_state(text.substr(0, text.size() - 1), 5));
  EXPECT_FALSE(parse_set_state(text + "x", 5));
  EXPECT_FALSE(parse_set_state("", 5));
  EXPECT_FALSE(parse_set_state("{}\n", 5));
}

}  // namespace
